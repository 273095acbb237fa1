package provider_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/provider"
)

// mirror makes a directory of a social provider, with mapping rules.
func mirror(t *testing.T, svc *app.Service, tenant id.ID, kind string, rules ...mappingrule.NewRule) id.ID {
	t.Helper()
	d, err := svc.CreateDirectoryIn(t.Context(), tenant, newDirectory(kind, provider.NewProvider{
		ProviderID: field.Some(kind), ClientID: field.Some("client"), ClientSecret: field.Some("secret"),
		RedirectURI:          field.Some("https://app.localhost/cb"),
		UserInfoMappingRules: field.Some(mappingrule.Change{Items: field.Some(rules)}),
	}))
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

func rule(name string, to ...string) mappingrule.NewRule {
	return mappingrule.NewRule{Name: field.Some(name), AccountAttributes: field.Some(to)}
}

// user is a login of the user 108 of a provider.
func user(tenant, at id.ID, userInfo string, with ...func(*directoryapi.ProviderUser)) directoryapi.ProviderUser {
	in := directoryapi.ProviderUser{
		Tenant: tenant, Directory: at, ExternalID: "108", Email: "jo@example.test", EmailVerified: true, GivenName: "Jo",
		UserInfo: json.RawMessage(userInfo),
	}
	for _, change := range with {
		change(&in)
	}
	return in
}

func TestMappingRulesRunAtEachLogin(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google", rule("locale", "customData.locale", "customData.profile.locale"),
		rule("work.mail[0]", "email"),
		rule("nick", "username"), rule("names.first", "givenName", "customData.first"), rule("all", "customData.all"),
		rule("bad", "customData.bad"))
	login := func(userInfo string, with ...func(*directoryapi.ProviderUser)) directoryapi.Account {
		t.Helper()
		out, err := svc.ProviderAccount(t.Context(), user(tenant, at, userInfo, with...))
		if err != nil {
			t.Fatal(err)
		}
		return out.Account
	}
	data := func(account id.ID) string {
		t.Helper()
		resource, err := svc.CustomData().Accounts.Read(t.Context(), id.Ref{Tenant: tenant, ID: account})
		if err != nil {
			t.Fatal(err)
		}
		return string(resource.Document)
	}
	a := login(
		`{"locale":"en","work":{"mail":["jo@work.test"]},"nick":"jojo","names":{"first":"Joanna"},"all":{"n":1.50,"list":[1,"x"]},"bad":{"":1}}`)
	if a.Email != "jo@work.test" || a.EmailVerificationStatus != directoryapi.Unverified || a.Username != "jojo" ||
		*a.GivenName != "Joanna" {
		t.Errorf("the account is %+v", a)
	}
	if got, want := data(a.ID),
		`{"locale":"en","profile":{"locale":"en"},"first":"Joanna","all":{"list":[1,"x"],"n":1.50}}`; got != want {
		t.Errorf("the customData is %s, want %s", got, want)
	}
	if a.Locale == nil || *a.Locale != "en" {
		t.Errorf("the locale of the account is %v, want the provider's en", a.Locale)
	}
	// What a client keeps beside the mapped keys stays, and so does what the provider does not state this time.
	if _, err := pg.Exec(t.Context(), db,
		`UPDATE custom_data SET document = '{"own":1,"profile":{"own":true,"locale":"en"},"locale":"en"}' WHERE tenant_id = $1`, tenant); err != nil {
		t.Fatal(err)
	}
	b := login(`{"locale":"fr","work":{},"nick":null}`)
	if b.ID != a.ID || b.Email != "jo@example.test" || b.EmailVerificationStatus != directoryapi.Verified ||
		b.Username != "jojo" || *b.GivenName != "Jo" {
		t.Errorf("the account is %+v", b)
	}
	if b.Locale == nil || *b.Locale != "en" {
		t.Errorf("the locale of the account is %v, want en, which it had", b.Locale)
	}
	if got, want := data(a.ID), `{"own":1,"profile":{"locale":"fr","own":true},"locale":"fr"}`; got != want {
		t.Errorf("the customData is %s, want %s", got, want)
	}
}

func TestTheEmailOfARuleIsVerifiedWhereTheProviderSaysSo(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google", rule("mail", "email"))
	out, err := svc.ProviderAccount(t.Context(), user(tenant, at, `{"mail":"JO@example.test"}`))
	if err != nil || out.Account.EmailVerificationStatus != directoryapi.Verified {
		t.Errorf("the same address: %+v, %v", out.Account, err)
	}
	out, err = svc.ProviderAccount(t.Context(),
		user(tenant, at, `{"mail":"sam@example.test"}`, func(in *directoryapi.ProviderUser) { in.ExternalID = "2" }))
	if err != nil || out.Account.EmailVerificationStatus != directoryapi.Unverified {
		t.Errorf("another address: %+v, %v", out.Account, err)
	}
}

func TestAttributesOfAnAssertionAreMappedAndShown(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	in := user(tenant, at, "", func(in *directoryapi.ProviderUser) {
		in.Attributes = []directoryapi.ProviderAttribute{
			{Name: "role", Values: []string{"a", "b"}}, {Name: "unit", Values: []string{"x"}},
		}
	})
	out, err := svc.ProviderAccount(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := svc.ProviderData(t.Context(), id.Ref{Tenant: tenant, ID: out.Account.ID})
	if err != nil || string(shown.Claims["role"]) != `["a", "b"]` || string(shown.Claims["unit"]) != `"x"` {
		t.Errorf("the provider data is %v, %v", shown.Claims, err)
	}
}

func TestTokensOfAProviderAreSealedAndARefreshTokenIsKept(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	login := func(tokens directoryapi.ProviderTokens) directoryapi.Account {
		t.Helper()
		out, err := svc.ProviderAccount(t.Context(),
			user(tenant, at, `{"id":"108"}`, func(in *directoryapi.ProviderUser) { in.Tokens = tokens }))
		if err != nil {
			t.Fatal(err)
		}
		return out.Account
	}
	a := login(directoryapi.ProviderTokens{AccessToken: "first-token", RefreshToken: "refresh-token"})
	login(directoryapi.ProviderTokens{AccessToken: "second-token"})
	shown, err := svc.ProviderData(t.Context(), id.Ref{Tenant: tenant, ID: a.ID})
	if err != nil || string(shown.Claims["accessToken"]) != `"second-token"` ||
		string(shown.Claims["refreshToken"]) != `"refresh-token"` {
		t.Errorf("the provider data is %v, %v", shown.Claims, err)
	}
	row, err := pg.Value[string](t.Context(), db,
		`SELECT p::text || encode(tokens_sealed, 'escape') FROM provider_data p WHERE tenant_id = $1`, tenant)
	if err != nil || strings.Contains(row, "token-") || strings.Contains(row, "-token") {
		t.Errorf("the row shows tokens: %s, %v", row, err)
	}
}

// The answers of a provider do not keep its users from logging in, as far as
// PostgreSQL can hold them, and are refused where it cannot.
func TestUserObjectsThatNobodyExpects(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google", rule("x", "username", "givenName", "customData.x"))
	for _, c := range []struct {
		userInfo string
		want     error
	}{
		{`{"x":"a\u0000b","\u0000":{"\u0000k":"\u0000"}}`, nil},
		{`{"x":"` + strings.Repeat("é", 4000) + `"}`, nil},
		{`{"x":"\ud800"}`, nil},
		{`{"x":1e308}`, nil},
		{`{"x":1e400000}`, apierr.ProviderRefused},
		{`{"x":[-1e-308,0.5,2E+3]}`, nil},
		{`{"x":1e-400000}`, apierr.ProviderRefused},
		{`{"x":0E-99999999999999999999}`, apierr.ProviderRefused},
		{`{"x":` + strings.Repeat("9", 400) + `}`, apierr.ProviderRefused},
		{`{"x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `}`, apierr.ProviderRefused},
		{`{"x":"` + strings.Repeat("x", 1<<20) + `"}`, apierr.ProviderRefused},
		{`[]`, apierr.ProviderRefused}, {`null`, apierr.ProviderRefused}, {`{} {}`, apierr.ProviderRefused},
		{`{`, apierr.ProviderRefused},
	} {
		if _, err := svc.ProviderAccount(t.Context(), user(tenant, at, c.userInfo)); !errors.Is(err, c.want) {
			t.Errorf("%.40s: %v, want %v", c.userInfo, err, c.want)
		}
	}
	for email, want := range map[string]error{"": apierr.ProviderIncomplete, "nobody": apierr.ProviderIncomplete,
		"a@b.test\x00": apierr.ProviderIncomplete,
		strings.Repeat("a", 60) + "@" + strings.Repeat("b.", 120) + "test": apierr.ProviderIncomplete,
		" sam@example.test ":    nil,
		"j\u00a0o@example.test": apierr.ProviderIncomplete, "sam..doe@example.test": nil} {
		in := user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) {
			in.Email, in.ExternalID = email, "of "+email[:min(len(email), 5)]
		})
		if _, err := svc.ProviderAccount(t.Context(), in); !errors.Is(err, want) && !strings.Contains(in.ExternalID, "\x00") {
			t.Errorf("the email %q: %v, want %v", email, err, want)
		}
	}
	for _, external := range []string{strings.Repeat("x", 2000), "a\x00"} {
		_, err := svc.ProviderAccount(t.Context(),
			user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) { in.ExternalID = external }))
		if !errors.Is(err, apierr.ProviderIncomplete) {
			t.Errorf("an id of %d bytes: %v", len(external), err)
		}
	}
}

func TestAUserOfAProviderIsRefusedByTheStatusOfTheAccount(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	out, err := svc.ProviderAccount(t.Context(), user(tenant, at, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	for status, want := range map[string]error{
		"DISABLED": apierr.AccountDisabled, "UNVERIFIED": apierr.AccountUnverified, "LOCKED": apierr.AccountLocked,
	} {
		if _, err := svc.UpdateAccount(t.Context(), id.Ref{Tenant: tenant, ID: out.Account.ID},
			directoryapi.NewAccount{Status: field.Some(status)}); err != nil {
			t.Fatal(err)
		}
		if _, err := svc.ProviderAccount(t.Context(), user(tenant, at, `{}`)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", status, err, want)
		}
	}
}

// An account that the provider does not know by the user's id is found by its email
// where both sides have verified it, and nowhere else: another may have made it.
func TestAnAccountIsFoundByAnEmailThatBothSidesHaveVerified(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	for what, verified := range map[string]struct{ before, now bool }{
		"both": {true, true}, "the provider alone": {false, true}, "the account alone": {true, false}, "neither": {},
	} {
		t.Run(what, func(t *testing.T) {
			login := func(externalID string, isVerified bool) (directoryapi.ProviderAccountResult, error) {
				return svc.ProviderAccount(t.Context(), user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) {
					in.ExternalID, in.EmailVerified = what+externalID, isVerified
					in.Email = strings.ReplaceAll(what, " ", "-") + "@example.test"
				}))
			}
			first, err := login("1", verified.before)
			if err != nil || !first.IsNew {
				t.Fatalf("the first login is %+v, %v", first, err)
			}
			second, err := login("2", verified.now)
			switch {
			case verified.before && verified.now:
				if err != nil || second.IsNew || second.Account.ID != first.Account.ID {
					t.Errorf("the second login is %+v, %v", second, err)
				}
			case !errors.Is(err, apierr.Exists):
				t.Errorf("the second login is %+v, %v", second, err)
			}
		})
	}
}

func TestALoginThatStatesNothingNewWritesNothing(t *testing.T) {
	t.Parallel()
	svc, db, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	written := func(userInfo string) (versions string) {
		t.Helper()
		if _, err := svc.ProviderAccount(t.Context(), user(tenant, at, userInfo)); err != nil {
			t.Fatal(err)
		}
		versions, err := pg.Value[string](t.Context(), db, `SELECT a.xmin::text || ' ' || p.xmin::text FROM accounts a
			JOIN provider_data p ON p.tenant_id = a.tenant_id AND p.account_id = a.id WHERE a.tenant_id = $1 AND a.directory_id = $2`, tenant, at)
		if err != nil {
			t.Fatal(err)
		}
		return versions
	}
	first := written(`{"a":1,"b":"x"}`)
	if again := written(`{"b":"x", "a":1}`); again != first {
		t.Errorf("the rows were written: %s, and before %s", again, first)
	}
	if other := written(`{"a":2,"b":"x"}`); other == first {
		t.Error("another user object is not kept")
	}
}

func TestALoginNameOfAnotherAccountIsLeftToIt(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google")
	for _, in := range []directoryapi.ProviderUser{
		user(tenant, at, `{}`),
		user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) {
			in.ExternalID, in.Email, in.Username = "2", "sam@example.test", "jo@example.test"
		}),
		user(tenant, at, `{}`, func(in *directoryapi.ProviderUser) { in.ExternalID, in.Email = "2", "jo@example.test" }),
	} {
		out, err := svc.ProviderAccount(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if in.ExternalID == "2" && (out.Account.Email != "sam@example.test" || out.Account.Username != "sam@example.test") {
			t.Errorf("the account is %+v", out.Account)
		}
	}
}

func TestTheCustomDataOfALoginIsThatOfANewAccount(t *testing.T) {
	t.Parallel()
	svc, _, _, tenant := sealing(t)
	at := mirror(t, svc, tenant, "google", rule("locale", "customData.locale"))
	for _, each := range []struct {
		isNew bool
		data  customdata.Document
	}{{true, `{"plan":"gold","locale":"fr"}`}, {false, `{"plan":"silver"}`}} {
		out, err := svc.ProviderAccount(t.Context(), user(tenant, at, `{"locale":"en"}`, func(in *directoryapi.ProviderUser) {
			in.CustomData = field.Some(each.data)
		}))
		if err != nil || out.IsNew != each.isNew {
			t.Fatalf("the login returns %+v, %v", out, err)
		}
		resource, err := svc.CustomData().Accounts.Read(t.Context(), id.Ref{Tenant: tenant, ID: out.Account.ID})
		if want := `{"plan":"gold","locale":"en"}`; err != nil || string(resource.Document) != want {
			t.Errorf("the customData is %s, %v, want %s", resource.Document, err, want)
		}
	}
}
