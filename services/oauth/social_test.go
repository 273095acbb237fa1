package oauth_test

import (
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestTheSocialGrant(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	organizationOf(d)
	other := d.Site
	other.Application = d.NewApplication(d.Tenant, d.Directory)
	for _, provider := range []string{"google", "facebook", "github", "linkedin", "twitter", "our-login"} {
		s := d.Site
		s.Application = d.NewApplication(d.Tenant, d.Directory)
		d.MapSocial(d.Tenant, s.Application, provider)
		oneOfTwo := map[string]bool{"google": true, "linkedin": true, "github": true, "our-login": true}[provider]
		for _, c := range []struct {
			fields []string
			want   *apierr.Error
			code   string
		}{
			{nil, apierr.Required, "invalid_request"},
			{[]string{"accessToken", "a", "code", "c"}, apierr.Required, "invalid_request"},
			{[]string{"accessToken", "a", "accessTokenSecret", "s"}, apierr.ProviderRefused, "invalid_client"},
			{[]string{"accessToken", "a", "accessTokenSecret", "s", "redirectUri", "https://app.localhost/cb"}, apierr.ProviderRefused,
				"invalid_client"},
			{[]string{"accessToken", "a"}, pick(provider == "twitter", apierr.Required, apierr.ProviderRefused),
				pick(provider == "twitter", "invalid_request", "invalid_client")},
			{[]string{"code", "c"}, pick(oneOfTwo, apierr.ProviderRefused, apierr.Required), pick(oneOfTwo, "invalid_client", "invalid_request")},
			{[]string{"accessToken", "a", "accessTokenSecret", "s", "accountStore", oauthtest.Base.To("directories", d.Account)},
				apierr.Reference, "invalid_request"},
			{[]string{"accessToken", "a", "accessTokenSecret", "s", "organizationNameKey", "nobody"}, apierr.Reference, "invalid_request"},
			{[]string{"accessToken", "a", "accessTokenSecret", "s", "nameKey", "acme"}, apierr.NotMapped, "invalid_request"},
		} {
			issued, err := d.Service.Token(t.Context(), s.Request(append([]string{"grant_type", "service_social", "providerId", provider},
				c.fields...)...))
			if !errors.Is(err, c.want) || apierr.From(err).Fields["error"] != c.code || issued != (oauth.IssuedTokens{}) {
				t.Errorf("%s with %v returns %v with %v, want %v", provider, c.fields, err, apierr.From(err).Fields, c.want)
			}
		}
		_, err := d.Service.Token(t.Context(), other.Request("grant_type", "service_social", "providerId", provider, "accessToken", "a",
			"accessTokenSecret", "s"))
		if !errors.Is(err, apierr.DirectoryTypeUnavailable) || apierr.From(err).Fields["error"] != "invalid_request" {
			t.Errorf("%s, which is not mapped, returns %v", provider, err)
		}
	}
	d.MapSocial(d.Tenant, d.Application, "google")
	t.Run("the email of another account", func(t *testing.T) {
		d.Applications.Break("ProviderLogin", fault.Before, func() error { return apierr.Exists })
		defer d.Applications.Break("ProviderLogin", fault.Before, func() error { return nil })
		_, err := d.Service.Token(t.Context(), d.Request("grant_type", "service_social", "providerId", "google", "code", "c"))
		if refusal := apierr.From(err); refusal.Code != apierr.Exists.Code || refusal.Status != 400 || refusal.Fields["error"] != "invalid_request" {
			t.Errorf("the grant is refused with %v, %+v", err, refusal)
		}
	})
	t.Run("a provider in any letters", func(t *testing.T) {
		if _, err := d.Service.Token(t.Context(), d.Request("grant_type", "service_social", "providerId", "Google", "code",
			"c")); !errors.Is(err, apierr.ProviderRefused) {
			t.Error(err)
		}
	})
	t.Run("a disabled application answers as to a password", func(t *testing.T) {
		s := d.Site
		s.Application = d.NewApplication(d.Tenant, d.Directory)
		d.MapSocial(d.Tenant, s.Application, "google")
		d.SetStatus(d.Tenant, s.Application, directoryapi.Disabled)
		for want, form := range map[string][]string{
			"invalid_request": {"grant_type", "service_social", "providerId", "google", "code", "c"},
			"invalid_grant":   {"grant_type", "password", "username", "jo@example.test", "password", "Changeme1!"},
		} {
			_, err := d.Service.Token(t.Context(), s.Request(form...))
			if refusal := apierr.From(err); !errors.Is(err, apierr.NoSuchAccount) || refusal.Fields["error"] != want {
				t.Errorf("%s is refused with %v, %v, want %s", form[1], err, refusal.Fields, want)
			}
		}
	})
	t.Run("no provider", func(t *testing.T) {
		if _, err := d.Service.Token(t.Context(), d.Request("grant_type", "service_social", "code", "c")); !errors.Is(err, apierr.Required) {
			t.Error(err)
		}
	})
}

func pick[T any](first bool, one, other T) T {
	if first {
		return one
	}
	return other
}
