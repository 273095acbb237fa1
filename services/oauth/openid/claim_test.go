package openid_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

// join adds the site's account to new groups of its directory.
func join(t *testing.T, d *oauthtest.Deployment, names ...string) {
	t.Helper()
	for _, name := range names {
		group, err := d.Directories.CreateGroup(t.Context(), directoryapi.CreateGroup{
			Tenant: d.Tenant, ID: id.New(d.Clock.Now()), Directory: d.Directory,
			Group: directoryapi.NewGroup{Name: field.Some(name)},
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Directories.Join(t, id.Ref{Tenant: d.Tenant, ID: d.Account}, group.ID)
	}
}

func TestClaimsOfScopes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	account := id.Ref{Tenant: d.Tenant, ID: d.Account}
	var data customdata.Change
	if err := json.Unmarshal([]byte(`{"address":{"country":"DE"},"picture":"https://x.test/p","n":12345678901234567890}`),
		&data); err != nil {
		t.Fatal(err)
	}
	d.Directories.Change(t, account, directoryapi.NewAccount{CustomData: data})
	d.Enroll(d.Tenant, d.Account, "sms", "xxx-xxx-0959")
	join(t, d, "Staff", "Admins")
	organization := d.NewOrganization(d.Tenant, d.Application, "acme", d.Directory)
	mapping := func(claim, source, scope string, in ...string) openid.MappingChange {
		return openid.MappingChange{Claim: claim, Source: source, Scopes: []string{scope}, In: in}
	}
	_, err := d.Service.UpdateProvider(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application}, openid.ProviderChange{
		Claims: field.Some([]openid.MappingChange{
			mapping("address", "customData.address", "address", "USERINFO"),
			mapping("picture", "customData.picture", "profile", "USERINFO"),
			mapping("country", "customData.address.country", "address", "ID_TOKEN"),
			mapping("nothing", "customData.address.none.at.all", "address", "ID_TOKEN"),
			mapping("number", "customData.n", "address", "ACCESS_TOKEN"),
			mapping("groups", "groups.name", "groups", "ACCESS_TOKEN"),
			mapping("org_key", "organization.nameKey", "openid", "ACCESS_TOKEN"),
			mapping("store", "directory.id", "openid", "ACCESS_TOKEN"),
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	p := newParty(t, d, d.Site, relyingparty.Change{})
	all := func(in *oauthapi.IssueCode) {
		in.Scopes = []string{"openid", "profile", "email", "phone", "address", "groups", "organization"}
		in.Organization = organization
	}
	issued := p.token(p.redeem(p.code(all)))
	info, err := d.Service.UserInfo(t.Context(), p.bearer(issued.AccessToken))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(info.Claims)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{}
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"address": "map[country:DE]", "picture": "https://x.test/p", "phone_number": "+18883910959",
		"phone_number_verified": "true", "groups": "[Admins Staff]", "email_verified": "false",
		"organization": "map[id:" + organization.String() + " name:acme nameKey:acme]",
	} {
		if fmt.Sprint(claims[name]) != want {
			t.Errorf("UserInfo has %s %v, want %s", name, claims[name], want)
		}
	}
	_, access := p.claims(issued.AccessToken)
	if fmt.Sprint(access["groups"]) != "[Admins Staff]" || access["org_key"] != "acme" || access["number"] == nil ||
		access["store"] != d.Directory.String() || access["org"] == nil || access["groups_overage"] != nil {
		t.Errorf("the access token has %v", access)
	}
	_, idToken := p.claims(issued.IDToken)
	if idToken["country"] != "DE" || idToken["nothing"] != nil || idToken["groups"] != nil || idToken["phone_number"] != nil {
		t.Errorf("the ID token has %v", idToken)
	}
	t.Run("a hundred groups stand in a token, more in UserInfo alone", func(t *testing.T) {
		for n := range 98 {
			join(t, d, fmt.Sprintf("Group %03d", n))
		}
		_, full := p.claims(p.token(p.redeem(p.code(all))).AccessToken)
		if groups, _ := full["groups"].([]any); len(groups) != 100 || full["groups_overage"] != nil {
			t.Errorf("the access token has %v", full["groups"])
		}
		join(t, d, "One more")
		issued := p.token(p.redeem(p.code(all)))
		_, over := p.claims(issued.AccessToken)
		info, err := d.Service.UserInfo(t.Context(), p.bearer(issued.AccessToken))
		if err != nil {
			t.Fatal(err)
		}
		if groups, _ := info.Claims["groups"].([]string); over["groups"] != nil || over["groups_overage"] != true ||
			len(groups) != 101 {
			t.Errorf("the access token has %v, %v, UserInfo %d groups", over["groups"], over["groups_overage"], len(groups))
		}
	})
	t.Run("groups of another application's stores are left out", func(t *testing.T) {
		app := d.NewApplication(d.Tenant)
		groups, err := d.Directories.Profile(t.Context(), directoryapi.ProfileRequest{Ref: account, Groups: true})
		if err != nil {
			t.Fatal(err)
		}
		staff := groups.Groups[slices.IndexFunc(groups.Groups, func(g directoryapi.Group) bool { return g.Name == "Staff" })]
		d.Applications.AddGroup(id.Ref{Tenant: d.Tenant, ID: app}, staff.ID)
		elsewhere := d.Site
		elsewhere.Application = app
		other := newParty(t, d, elsewhere, relyingparty.Change{})
		issued := other.token(other.redeem(other.code(func(in *oauthapi.IssueCode) { in.Scopes = []string{"openid", "groups"} })))
		info, err := d.Service.UserInfo(t.Context(), other.bearer(issued.AccessToken))
		if err != nil || fmt.Sprint(info.Claims["groups"]) != "[Staff]" {
			t.Errorf("UserInfo has %v, %v", info.Claims, err)
		}
	})
}

func TestPairwiseSubjects(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	pairwise := relyingparty.Change{SubjectType: field.Some("pairwise"), PostLogoutRedirectURIs: field.Some([]string{})}
	p := newParty(t, d, d.Site, pairwise)
	subject := func(p *party) any {
		t.Helper()
		issued := p.token(p.redeem(p.code(nil)))
		_, claims := p.claims(issued.IDToken)
		info, err := p.Service.UserInfo(t.Context(), p.bearer(issued.AccessToken))
		if err != nil || info.Claims["sub"] != claims["sub"] {
			t.Errorf("UserInfo has the subject %v, the ID token %v, %v", info.Claims["sub"], claims["sub"], err)
		}
		return claims["sub"]
	}
	first := subject(p)
	if first == d.Account.String() {
		t.Error("the pairwise subject is the account")
	}
	same := newParty(t, d, d.Site, pairwise)
	if subject(same) != first {
		t.Error("two clients of one sector have different subjects")
	}
	pairwise.RedirectURIs = field.Some([]string{"https://elsewhere.test/cb"})
	elsewhere := newParty(t, d, d.Site, pairwise)
	logout, err := d.Service.LogoutRequest(t.Context(), oauthapi.AskLogout{Application: d.Application,
		Parameters: map[string][]string{"id_token_hint": {p.token(p.redeem(p.code(nil))).IDToken}}})
	if err != nil || logout.Subject != first || !logout.Account.IsZero() {
		t.Errorf("the logout has the subject %q of %s, %v", logout.Subject, logout.Account, err)
	}
	token := elsewhere.token(elsewhere.redeem(elsewhere.code(func(in *oauthapi.IssueCode) {
		in.RedirectURI = "https://elsewhere.test/cb"
		in.RedirectURINamed = false
	}), "https://elsewhere.test/cb")).IDToken
	if _, claims := elsewhere.claims(token); claims["sub"] == first {
		t.Error("two sectors have the same subject")
	}
	t.Run("another master key changes no subject", func(t *testing.T) {
		again := *p
		moved := *d
		moved.Service = d.WithMasterKey(t, secure.NewMasterKey("k2")+","+d.Master)
		again.Deployment = &moved
		if now := subject(&again); now != first {
			t.Errorf("the subject is %v now, and was %v", now, first)
		}
	})
}
