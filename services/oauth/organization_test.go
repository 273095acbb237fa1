package oauth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

// organizationOf adds an organization with the site's directory.
func organizationOf(d *oauthtest.Deployment) (organization id.ID, href string) {
	organization = d.NewOrganization(d.Tenant, d.Application, "acme", d.Directory)
	return organization, oauthtest.Base.To("organizations", organization)
}

func logInTo(d *oauthtest.Deployment, pairs ...string) oauth.TokenRequest {
	return d.Request(append([]string{"grant_type", "password", "username", oauthtest.Login, "password", oauthtest.Password.Reveal()},
		pairs...)...)
}

func TestTokensNameTheOrganizationOfTheirLogin(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	_, href := organizationOf(d)
	header, claims := selfMade(d, d.Site)
	assertion := signForgedJWT(t, header, with(claims, "org", href), d.Secret).Reveal()
	for name, request := range map[string]oauth.TokenRequest{
		"by its href":           logInTo(d, "accountStore", href),
		"by its key":            logInTo(d, "nameKey", "acme"),
		"by its key's name":     logInTo(d, "organizationNameKey", "acme"),
		"by its key, twice":     logInTo(d, "organizationNameKey", "acme", "nameKey", "acme"),
		"that an assertion has": d.Request("grant_type", "service_token", "token", assertion),
	} {
		t.Run(name, func(t *testing.T) {
			issued, err := d.Service.Token(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			d.Clock.Move(time.Second)
			next, err := d.Service.Token(t.Context(), refreshWith(d.Site, issued.Refresh))
			if err != nil {
				t.Fatal(err)
			}
			for kind, token := range map[string]secure.Secret{"access": issued.Access, "refresh": issued.Refresh, "refreshed": next.Access} {
				if _, claims := decodeJWT(t, token); claims["org"] != href {
					t.Errorf("the claims of the %s token are %v", kind, claims)
				}
			}
			live, err := d.Service.LiveToken(t.Context(), store.Access, d.Tenant, next.AccessTokenID)
			if err != nil || live.JWT != next.Access {
				t.Errorf("the resource has another JWT: %v", err)
			}
			validate(t, d, d.Site, next.Access, nil)
			header, claims := decodeJWT(t, next.Access)
			validate(t, d, d.Site, signForgedJWT(t, header, with(claims, "org", nil), d.Secret), apierr.TokenSignature)
			validate(t, d, d.Site, signForgedJWT(t, header, with(claims, "org", oauthtest.Base.To("organizations", d.Account)), d.Secret),
				apierr.TokenSignature)
		})
	}
	t.Run("and no other login does", func(t *testing.T) {
		header, claims := decodeJWT(t, d.LogIn(t, d.Site).Access)
		if claims["org"] != nil {
			t.Errorf("the claims are %v", claims)
		}
		validate(t, d, d.Site, signForgedJWT(t, header, with(claims, "org", href), d.Secret), apierr.TokenSignature)
	})
}

func TestALoginThatNamesTwoAccountStoresIsRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	_, href := organizationOf(d)
	for _, pairs := range [][]string{
		{"accountStore", href, "nameKey", "acme"}, {"organizationNameKey", "acme", "nameKey", "other"},
		{"accountStore", oauthtest.Base.To("directories", d.Directory), "organizationNameKey", "acme"},
	} {
		_, err := d.Service.Token(t.Context(), logInTo(d, pairs...))
		if !errors.Is(err, apierr.Invalid) || apierr.From(err).Fields["error"] != "invalid_request" {
			t.Errorf("%v returns %v", pairs, err)
		}
	}
}

// A token whose login named an organization is refused without the organization, though its account
// is in another store of the application.
func TestTokensOfAnOrganizationThatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*oauthtest.Deployment, id.ID)
		want   *apierr.Error
	}{
		"disabled": {func(d *oauthtest.Deployment, o id.ID) { d.SetStatus(d.Tenant, o, directoryapi.Disabled) }, apierr.TokenStoreDisabled},
		"deleted":  {func(d *oauthtest.Deployment, o id.ID) { d.Delete(d.Tenant, o) }, apierr.TokenAccountUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			d := oauthtest.Open(t)
			organization, href := organizationOf(d)
			through, err := d.Service.Token(t.Context(), logInTo(d, "nameKey", "acme"))
			if err != nil {
				t.Fatal(err)
			}
			without := d.LogIn(t, d.Site)
			c.change(d, organization)
			validate(t, d, d.Site, through.Access, c.want)
			if _, err := d.Service.Token(t.Context(), refreshWith(d.Site, through.Refresh)); !errors.Is(err, c.want) {
				t.Errorf("the refresh returns %v", err)
			}
			validate(t, d, d.Site, without.Access, nil)
			header, claims := selfMade(d, d.Site)
			if _, err := exchange(t.Context(), d.Service, d.Site, signForgedJWT(t, header, with(claims, "org", href), d.Secret)); err == nil {
				t.Error("an assertion of it gives tokens")
			}
		})
	}
}
