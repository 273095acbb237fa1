package oauth_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

// requireFactor makes the logins of the site's application require a second factor, of these types.
func requireFactor(t *testing.T, d *oauthtest.Deployment, types ...string) {
	t.Helper()
	_, err := d.Service.UpdateWebConfig(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)},
		oauth.WebConfigChange{
			MFA: field.Some(oauth.MFAChange{Required: field.Some(true), FactorTypes: field.Some(types)}),
		})
	if err != nil {
		t.Fatal(err)
	}
}

// demanded checks that the answer to a request demands a second factor, and returns the members of
// its body.
func demanded(t *testing.T, d *oauthtest.Deployment, in oauth.TokenRequest, action string) map[string]any {
	t.Helper()
	access, refresh := count(t, d, store.Access), count(t, d, store.Refresh)
	issued, err := d.Service.Token(t.Context(), in)
	refusal := apierr.From(err)
	if err == nil || refusal.Status != 400 || issued != (oauth.IssuedTokens{}) {
		t.Fatalf("the answer is %v, %v", issued, err)
	}
	if count(t, d, store.Access) != access || count(t, d, store.Refresh) != refresh {
		t.Error("tokens were issued before the second step")
	}
	fields := refusal.Fields
	if fields["error"] != "access_denied" || fields["error_description"] != "Action required" || fields["action"] != action {
		t.Errorf("the members are %v", fields)
	}
	return fields
}

func TestASecondFactorIsDemanded(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	requireFactor(t, d, mfaapi.SMS, mfaapi.Authenticator)
	text := func(fields map[string]any, name string) string {
		value, _ := fields[name].(string)
		return value
	}
	redeem := func(t *testing.T, state string) {
		t.Helper()
		issued, err := d.Service.Token(t.Context(), d.Request("grant_type", "service_factor_challenge", "state", state, "code",
			d.Code(d.Tenant, d.Account)))
		if err != nil || issued.Refresh == "" {
			t.Fatalf("the second step returns %v, %v", issued, err)
		}
		validate(t, d, d.Site, issued.Access, nil)
	}
	t.Run("of a user without one: to enroll one", func(t *testing.T) {
		fields := demanded(t, d, logInTo(d), mfaapi.Enroll)
		if len(fields) != 5 || text(fields, "state") == "" || !reflect.DeepEqual(fields["allowedFactorTypes"],
			[]string{mfaapi.SMS, mfaapi.Authenticator}) {
			t.Errorf("the members are %v", fields)
		}
	})
	t.Run("of a user with one: its code", func(t *testing.T) {
		d.Enroll(d.Tenant, d.Account, mfaapi.SMS, "xxx-xxx-0959")
		fields := demanded(t, d, logInTo(d), mfaapi.Challenge)
		if len(fields) != 5 || !reflect.DeepEqual(fields["factor"], map[string]string{"type": "sms", "hint": "xxx-xxx-0959"}) {
			t.Errorf("the members are %v", fields)
		}
		redeem(t, text(fields, "state"))
	})
	t.Run("of a user with several: to select", func(t *testing.T) {
		d.Enroll(d.Tenant, d.Account, mfaapi.Authenticator, "Shop")
		fields := demanded(t, d, logInTo(d), mfaapi.Select)
		factors, _ := fields["factors"].([]map[string]string)
		if len(fields) != 4 || len(factors) != 2 || factors[1]["type"] != mfaapi.Authenticator || factors[1]["hint"] != "Shop" {
			t.Fatalf("the members are %v", fields)
		}
		redeem(t, factors[1]["state"])
	})
	t.Run("of a user whose factor the application does not allow: its code, and then to enroll one", func(t *testing.T) {
		d := oauthtest.Open(t)
		requireFactor(t, d, mfaapi.SMS)
		d.Enroll(d.Tenant, d.Account, mfaapi.Authenticator, "Shop")
		fields := demanded(t, d, logInTo(d), mfaapi.Challenge)
		if !reflect.DeepEqual(fields["factor"], map[string]string{"type": mfaapi.Authenticator, "hint": "Shop"}) {
			t.Errorf("the members are %v", fields)
		}
		code := d.Request("grant_type", "service_factor_challenge", "state", text(fields, "state"), "code", d.Code(d.Tenant, d.Account))
		fields = demanded(t, d, code, mfaapi.Enroll)
		if text(fields, "state") == "" || !reflect.DeepEqual(fields["allowedFactorTypes"], []string{mfaapi.SMS}) {
			t.Errorf("after the code the members are %v", fields)
		}
	})
	t.Run("of the types that the application allows", func(t *testing.T) {
		requireFactor(t, d, mfaapi.Authenticator)
		demanded(t, d, logInTo(d), mfaapi.Challenge)
		demands := d.Demands(t)
		want := mfaapi.BeginSecondStep{Tenant: d.Tenant, Application: d.Application, Account: d.Account, Types: []string{mfaapi.Authenticator}}
		if last := demands[len(demands)-1]; !reflect.DeepEqual(last, want) {
			t.Errorf("the demand is %+v, want %+v", last, want)
		}
	})
	t.Run("with the organization that the login named", func(t *testing.T) {
		organization, href := organizationOf(d)
		fields := demanded(t, d, logInTo(d, "nameKey", "acme"), mfaapi.Challenge)
		demands := d.Demands(t)
		if last := demands[len(demands)-1]; last.Organization != organization {
			t.Errorf("the demand is %+v", last)
		}
		issued, err := d.Service.Token(t.Context(), d.Request("grant_type", "service_factor_challenge", "state", text(fields, "state"), "code",
			d.Code(d.Tenant, d.Account)))
		if err != nil {
			t.Fatal(err)
		}
		if _, claims := decodeJWT(t, issued.Refresh); claims["org"] != href {
			t.Errorf("the claims are %v", claims)
		}
	})
	t.Run("not before the first step has succeeded", func(t *testing.T) {
		before := len(d.Demands(t))
		_, err := d.Service.Token(t.Context(), d.Request("grant_type", "password", "username", oauthtest.Login, "password", "Wrong1234"))
		if !errors.Is(err, apierr.WrongPassword) || len(d.Demands(t)) != before {
			t.Errorf("got %v", err)
		}
	})
	t.Run("also of an assertion", func(t *testing.T) {
		header, claims := selfMade(d, d.Site)
		demanded(t, d, d.Request("grant_type", "service_token", "token", signForgedJWT(t, header, claims, d.Secret).Reveal()), mfaapi.Challenge)
	})
	t.Run("but not of an assertion that says one was shown", func(t *testing.T) {
		header, claims := selfMade(d, d.Site)
		exchanged(t, d, d.Site, signForgedJWT(t, header, with(claims, "amr", []string{"pwd", "mfa"}), d.Secret))
	})
	t.Run("never of a refresh or of client credentials", func(t *testing.T) {
		other := oauthtest.Open(t)
		login := other.LogIn(t, other.Site)
		requireFactor(t, other, mfaapi.SMS)
		key, err := other.Service.CreateAPIKey(t.Context(), other.Tenant, other.Account, oauth.NewAPIKey{})
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []oauth.TokenRequest{
			refreshWith(other.Site, login.Refresh),
			other.Request("grant_type", "client_credentials", "client_id", key.ID, "client_secret", key.Secret.Reveal()),
		} {
			if _, err := other.Service.Token(t.Context(), in); err != nil {
				t.Error(err)
			}
		}
		demanded(t, other, logInTo(other), mfaapi.Enroll)
	})
	t.Run("a service that is away lets nobody in", func(t *testing.T) {
		header, claims := selfMade(d, d.Site)
		token := signForgedJWT(t, header, with(claims, "require_mfa", []string{"sms"}), d.Secret)
		d.FailMFA(apierr.Unavailable)
		defer d.FailMFA(nil)
		for _, in := range []oauth.TokenRequest{logInTo(d), d.Request("grant_type", "service_token", "token", token.Reveal())} {
			if issued, err := d.Service.Token(t.Context(), in); !errors.Is(err, apierr.Unavailable) || issued != (oauth.IssuedTokens{}) {
				t.Errorf("the answer is %v, %v", issued, err)
			}
		}
	})
}

func TestAnAssertionDemandsASecondFactor(t *testing.T) {
	for name, c := range map[string]struct {
		required, methods any
		types             []string // that are allowed
		none              bool     // is demanded
	}{
		"of one type":                  {required: []string{"sms"}, types: []string{mfaapi.SMS}},
		"in other letters":             {required: []string{"SMS", "Google-Authenticator"}, types: []string{mfaapi.SMS, mfaapi.Authenticator}},
		"of an unknown type, so any":   {required: []string{"carrier-pigeon"}},
		"that is no text, so any":      {required: []any{7}},
		"that is no list, so any":      {required: "sms"},
		"after a password":             {required: []string{"sms"}, methods: []string{"pwd"}, types: []string{mfaapi.SMS}},
		"where amr is no list":         {required: []string{"sms"}, methods: "mfa", types: []string{mfaapi.SMS}},
		"not where one was shown":      {required: []string{"sms"}, methods: []string{"pwd", "mfa"}, none: true},
		"not with an empty list":       {required: []string{}, none: true},
		"not where it asks for nobody": {none: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := oauthtest.Open(t)
			header, claims := selfMade(d, d.Site)
			token := signForgedJWT(t, header, with(with(claims, "require_mfa", c.required), "amr", c.methods), d.Secret)
			if c.none {
				exchanged(t, d, d.Site, token)
				if len(d.Demands(t)) != 0 {
					t.Error("a second step was begun")
				}
				return
			}
			demanded(t, d, d.Request("grant_type", "service_token", "token", token.Reveal()), mfaapi.Enroll)
			if got := d.Demands(t)[0].Types; !reflect.DeepEqual(got, c.types) {
				t.Errorf("the types are %v, want %v", got, c.types)
			}
		})
	}
}

func TestTheGrantOfAFactor(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	grant := func(pairs ...string) (oauth.IssuedTokens, error) {
		return d.Service.Token(t.Context(), d.Request(append([]string{"grant_type", "service_factor_challenge"}, pairs...)...))
	}
	challenge := func() string { return d.Challenge(d.Tenant, d.Account) }
	refusal := func(t *testing.T, want *apierr.Error, code string, pairs ...string) {
		t.Helper()
		issued, err := grant(pairs...)
		refusal := apierr.From(err)
		if !errors.Is(err, want) || refusal.Fields["error"] != code || refusal.Status != 400 || issued != (oauth.IssuedTokens{}) {
			t.Errorf("%v returns %v with %v", pairs, err, apierr.From(err).Fields)
		}
	}
	t.Run("takes the code of a challenge", func(t *testing.T) {
		issued, err := grant("challenge", challenge(), "code", d.Code(d.Tenant, d.Account))
		if err != nil || issued.Refresh == "" {
			t.Fatal(err)
		}
		if _, claims := decodeJWT(t, issued.Access); claims["sub"] != oauthtest.Base.To("accounts", d.Account) {
			t.Errorf("the claims are %v", claims)
		}
	})
	t.Run("takes no challenge alone at the Client API, whose callers prove nothing else", func(t *testing.T) {
		form := map[string]secure.Secret{
			"grant_type": "service_factor_challenge", "challenge": secure.Secret(challenge()), "code": secure.Secret(d.Code(d.Tenant, d.Account)),
		}
		_, err := d.Service.ClientToken(t.Context(), oauthapi.ClientForm{Tenant: d.Tenant, Application: d.Application, Form: form})
		if !errors.Is(err, apierr.Unsupported) || apierr.From(err).Fields["error"] != "invalid_request" || apierr.From(err).Status != 400 {
			t.Errorf("the Client API answers %v", err)
		}
	})
	t.Run("needs its fields", func(t *testing.T) {
		refusal(t, apierr.Required, "invalid_request", "state", "x")
		refusal(t, apierr.Required, "invalid_request", "code", d.Code(d.Tenant, d.Account))
		refusal(t, apierr.Required, "invalid_request", "code", d.Code(d.Tenant, d.Account), "state", "x", "challenge", "y")
	})
	t.Run("refuses what is no second step", func(t *testing.T) {
		foreign := d.NewSite(t)
		refusal(t, apierr.Reference, "invalid_grant", "state", "x", "code", d.Code(d.Tenant, d.Account))
		refusal(t, apierr.Reference, "invalid_grant", "challenge", oauthtest.Base.To("challenges", d.Account), "code",
			d.Code(d.Tenant, d.Account))
		refusal(t, apierr.Reference, "invalid_grant", "challenge", d.Challenge(foreign.Tenant, foreign.Account), "code",
			d.Code(d.Tenant, d.Account))
	})
	t.Run("refuses an account that the application does not reach, whatever its challenge", func(t *testing.T) {
		stranger := d.NewAccount(d.Tenant, d.NewDirectory(d.Tenant), "ann@example.test", oauthtest.Password)
		refusal(t, apierr.TokenAccountUnreachable, "invalid_grant", "challenge", d.Challenge(d.Tenant, stranger), "code",
			d.Code(d.Tenant, stranger))
	})
	t.Run("refuses a wrong code, and too many", func(t *testing.T) {
		one := challenge()
		for range 5 {
			refusal(t, apierr.CodeWrong, "invalid_grant", "challenge", one, "code", "000000")
		}
		refusal(t, apierr.ChallengeFailures, "invalid_grant", "challenge", one, "code", d.Code(d.Tenant, d.Account))
	})
	t.Run("refuses what the challenge says", func(t *testing.T) {
		for _, want := range []*apierr.Error{apierr.CodeExpired, apierr.ChallengeFinished, apierr.FactorDisabled, apierr.PhoneDisabled} {
			one := challenge()
			d.EndChallenges(want)
			refusal(t, want, "invalid_grant", "challenge", one, "code", d.Code(d.Tenant, d.Account))
			d.EndChallenges(nil)
		}
	})
	t.Run("takes a code once, of 50 tries", func(t *testing.T) {
		one, done := challenge(), 0
		for _, err := range runConcurrently(50, func(int) error {
			_, err := d.Service.Token(context.Background(), d.Request("grant_type", "service_factor_challenge", "challenge", one, "code",
				d.Code(d.Tenant, d.Account)))
			return err
		}) {
			if err == nil {
				done++
			} else if !errors.Is(err, apierr.ChallengeFinished) {
				t.Error(err)
			}
		}
		if done != 1 {
			t.Errorf("%d tries gave tokens", done)
		}
	})
	t.Run("refuses an account that was disabled since the first step", func(t *testing.T) {
		one := challenge()
		d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
		defer d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
		refusal(t, apierr.TokenAccountDisabled, "invalid_grant", "challenge", one, "code", d.Code(d.Tenant, d.Account))
	})
	t.Run("fails with its peer", func(t *testing.T) {
		d.FailMFA(apierr.Unavailable)
		defer d.FailMFA(nil)
		if _, err := grant("challenge", challenge(), "code", d.Code(d.Tenant, d.Account)); !errors.Is(err, apierr.Unavailable) {
			t.Error(err)
		}
	})
}

func TestATokenTellsWhetherItsLoginPassedASecondFactor(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	issue := func(in oauth.TokenRequest, passed bool) oauth.IssuedTokens {
		t.Helper()
		issued, err := d.Service.Token(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		valid, err := d.Service.ValidateToken(t.Context(), validation(d.Tenant, d.Application, issued.Access))
		if err != nil || valid.SecondFactor != passed {
			t.Errorf("a second factor was passed: %t, %v; want %t", valid.SecondFactor, err, passed)
		}
		return issued
	}
	withFactor := func() oauth.TokenRequest {
		state, _ := demanded(t, d, logInTo(d), mfaapi.Challenge)["state"].(string)
		return d.Request("grant_type", "service_factor_challenge", "state", state, "code", d.Code(d.Tenant, d.Account))
	}
	issue(refreshWith(d.Site, issue(logInTo(d), false).Refresh), false)
	d.Enroll(d.Tenant, d.Account, mfaapi.SMS, "xxx-xxx-0959")
	requireFactor(t, d, mfaapi.SMS)
	issue(refreshWith(d.Site, issue(withFactor(), true).Refresh), true)
	header, claims := selfMade(d, d.Site)
	assertion := signForgedJWT(t, header, with(claims, "amr", []string{"pwd", "mfa"}), d.Secret)
	issue(d.Request("grant_type", "service_token", "token", assertion.Reveal()), true)

	_, err := d.Service.UpdatePolicy(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application}, oauth.PolicyChange{RefreshTokenTTL: field.Some("PT0M")})
	if err != nil {
		t.Fatal(err)
	}
	if issued := issue(withFactor(), true); issued.Refresh != "" {
		t.Error("there is a refresh token")
	}
	requireNone := oauth.WebConfigChange{MFA: field.Some(oauth.MFAChange{Required: field.Some(false)})}
	if _, err := d.Service.UpdateWebConfig(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)}, requireNone); err != nil {
		t.Fatal(err)
	}
	issue(logInTo(d), false)
}
