package openid_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestAPreviewHasTheClaimsOfALogin(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	setScopes(t, d, openid.ScopeChange{Name: "orders", Resources: []string{api}}, openid.ScopeChange{Name: "stock"})
	p := newParty(t, d, d.Site, relyingparty.Change{})
	account := field.Some(href.Link{Href: oauthtest.Base.To("accounts", d.Account)})
	ask := func(in openid.PreviewRequest) (openid.Preview, error) {
		return d.Service.OpenID.Preview(t.Context(), id.Ref{Tenant: d.Tenant, ID: p.OpenIDClient.ID}, in)
	}
	found, err := ask(openid.PreviewRequest{Account: account})
	if err != nil {
		t.Fatal(err)
	}
	issued := p.token(p.redeem(p.code(nil)))
	_, id1 := p.claims(issued.IDToken)
	for _, name := range []string{"iss", "sub", "aud", "acr"} {
		if found.IDToken[name] != id1[name] {
			t.Errorf("%s of the ID token is %v, and %v at a login", name, found.IDToken[name], id1[name])
		}
	}
	if found.UserInfo["email"] != oauthtest.Login || found.AccessToken["client_id"] != p.ClientID {
		t.Errorf("the preview is %+v", found)
	}
	narrow, err := ask(openid.PreviewRequest{Account: account, Scopes: field.Some([]string{"orders", "stock"}),
		Resource: field.Some(api)})
	if err != nil || narrow.AccessToken["aud"] != api || narrow.AccessToken["scope"] != "orders stock" ||
		len(narrow.IDToken) != 0 || len(narrow.UserInfo) != 0 {
		t.Errorf("the preview for an API is %+v, %v", narrow, err)
	}
	stranger := d.NewAccount(d.Tenant, d.NewDirectory(d.Tenant), "stranger@example.test", oauthtest.Password)
	for name, c := range map[string]struct {
		in   openid.PreviewRequest
		want error
	}{
		"an account of no mapped directory": {openid.PreviewRequest{Account: field.Some(href.Link{
			Href: oauthtest.Base.To("accounts", stranger)})}, apierr.NotMapped},
		"an account of another tenant": {openid.PreviewRequest{Account: field.Some(href.Link{
			Href: oauthtest.Base.To("accounts", d.NewSite(t).Account)})}, apierr.NotMapped},
		"no account": {openid.PreviewRequest{}, apierr.Required},
		"a directory": {openid.PreviewRequest{Account: field.Some(href.Link{
			Href: oauthtest.Base.To("directories", d.Directory)})}, apierr.Reference},
		"an unknown API": {openid.PreviewRequest{Account: account, Resource: field.Some("https://other.test")}, apierr.Format},
	} {
		if _, err := ask(c.in); !errors.Is(err, c.want) {
			t.Errorf("%s returns %v, want %v", name, err, c.want)
		}
	}
}
