package oauth_test

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

func TestTheDemandForASecondFactor(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	demand := func(s oauthtest.Site) (bool, []string) {
		t.Helper()
		c, err := d.Service.WebConfigOf(t.Context(), s.Tenant, s.Application)
		if err != nil {
			t.Fatal(err)
		}
		return c.MFA.Required, c.MFA.FactorTypes
	}
	if required, types := demand(d.Site); required || !slices.Equal(types, []string{"sms", "google-authenticator"}) {
		t.Errorf("an application begins with %v, %v", required, types)
	}
	body := oauth.WebConfigChange{MFA: field.Some(oauth.MFAChange{Required: field.Some(true), FactorTypes: field.Some([]string{"sms"})})}
	if _, err := d.Service.UpdateWebConfig(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)},
		body); err != nil {
		t.Fatal(err)
	}
	if required, types := demand(d.Site); !required || !slices.Equal(types, []string{"sms"}) {
		t.Errorf("it is now %v, %v", required, types)
	}
	if required, _ := demand(d.NewSite(t)); required {
		t.Error("another tenant's application demands it, too")
	}
}

// The first of concurrent changes inserts the row, and the others change it.
func TestAWebConfigIsMadeOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	at := id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			in := oauth.WebConfigChange{}
			name := oauth.MeExpansions[i%len(oauth.MeExpansions)]
			in.Me = field.Some(oauth.MeChange{Expand: field.Some(map[string]field.Bool{name: field.Some(true)})})
			if _, err := d.Service.UpdateWebConfig(t.Context(), at, in); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := rows(t, d)[3]; n != 1 {
		t.Errorf("there are %d rows", n)
	}
	c, err := d.Service.WebConfig(t.Context(), at)
	if slices.Sort(c.MeExpand); err != nil || !slices.Equal(c.MeExpand, oauth.MeExpansions) {
		t.Errorf("shown are %v, %v", c.MeExpand, err)
	}
}

// A web config is read once while it does not change (cache), also a default one, which has no row. A
// change takes effect at once in the process that makes it, and in the others when PostgreSQL has
// notified them.
func TestAChangeOfAWebConfigShowsAtOnceHereAndSoonElsewhere(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	here, elsewhere := d.Replica(t), d.Replica(t)
	at := id.Ref{Tenant: d.Tenant, ID: d.Application}
	me := func(s *oauth.Service) bool {
		t.Helper()
		c, err := s.ClientConfig(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		return c.Me
	}
	for _, want := range []bool{false, true} {
		before := me(here)
		for range 100 { // until both have kept it
			if me(here) != before || me(elsewhere) != before {
				t.Fatal("it changes by itself")
			}
		}
		in := oauth.WebConfigChange{Me: field.Some(oauth.MeChange{Enabled: field.Some(want)})}
		if _, err := here.UpdateWebConfig(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)},
			in); err != nil {
			t.Fatal(err)
		}
		if me(here) != want {
			t.Error("the process that made the change does not see it")
		}
		for me(elsewhere) != want {
			runtime.Gosched()
		}
	}
}

// A former administrator still knows the secret: an assertion of that key is refused.
func TestTheKeyOfAFormerAdministratorSignsNothing(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	former := d.NewAccount(d.Tenant, d.Administrators, "former@example.test", oauthtest.Password)
	key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, former, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}
	chosen := oauth.WebConfigChange{SigningAPIKey: field.Some(href.Link{Href: oauthtest.Base.Path("apiKeys", key.ID)})}
	if _, err := d.Service.UpdateWebConfig(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.WebConfigOf(d.Tenant, d.Application)},
		chosen); err != nil {
		t.Fatal(err)
	}
	signers := func() []any {
		t.Helper()
		form := map[string]secure.Secret{"grant_type": "password", "username": "jo@example.test", "password": oauthtest.Password}
		tokens, err := d.Service.ClientToken(t.Context(), oauthapi.ClientForm{Tenant: d.Tenant, Application: d.Application, Form: form})
		if err != nil {
			t.Fatal(err)
		}
		assertion, err := d.Service.SignAssertion(t.Context(), oauthapi.SignAssertion{
			Tenant: d.Tenant, Application: d.Application, Claims: []byte("{}"),
		})
		if err != nil {
			t.Fatal(err)
		}
		header, _ := decodeJWT(t, tokens.Access)
		return []any{header["kid"], assertion.KeyID}
	}
	if got := signers(); !slices.Equal(got, []any{key.ID, key.ID}) {
		t.Errorf("the keys %v sign, want %s", got, key.ID)
	}
	d.SetStatus(d.Tenant, former, directoryapi.Disabled)
	d.Clock.Move(time.Second)
	if got := signers(); !slices.Equal(got, []any{d.Key, d.Key}) {
		t.Errorf("the keys %v sign, want that of the administrator who is left, %s", got, d.Key)
	}
}
