package oauth_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

// rows returns the number of rows of every table of the service, in turn: keys,
// routes, policies, web configs, refresh and access tokens.
func rows(t testing.TB, d *oauthtest.Deployment) (n [6]int) {
	t.Helper()
	for i, table := range []string{"api_keys", "api_key_routes", "oauth_policies", "web_configs", "refresh_tokens", "access_tokens"} {
		var err error
		if n[i], err = pg.Value[int](t.Context(), d.DB, `SELECT count(*) FROM `+table); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// populate gives a site tokens, a policy, a web config, and an API key of its account.
func populate(t testing.TB, d *oauthtest.Deployment, s oauthtest.Site) {
	t.Helper()
	d.LogIn(t, s)
	if _, err := d.Service.CreateAPIKey(t.Context(), s.Tenant, s.Account, oauth.NewAPIKey{}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Service.UpdatePolicy(t.Context(), id.Ref{Tenant: s.Tenant, ID: s.Application},
		oauth.PolicyChange{AccessTokenTTL: field.Some("PT1M")}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Service.UpdateWebConfig(t.Context(), id.Ref{Tenant: s.Tenant, ID: d.WebConfigOf(s.Tenant, s.Application)},
		oauth.WebConfigChange{}); err != nil {
		t.Fatal(err)
	}
}

func TestADeletedAccountLosesItsKeysAndTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	populate(t, d, d.Site)
	populate(t, d, d.NewSite(t))
	event := events.AccountDeleted{Tenant: d.Tenant, Account: d.Account}
	envelope := events.Envelope{ID: id.New(d.Clock.Now()), Tenant: d.Tenant, Subject: d.Account}
	for range 2 {
		if err := d.Service.AccountDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(t, d), [6]int{3, 3, 2, 2, 1, 1}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
	t.Run("a second delivery does nothing", func(t *testing.T) {
		d.LogIn(t, d.Site) // as if the account were there still
		if err := d.Service.AccountDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(t, d), [6]int{3, 3, 2, 2, 2, 2}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	})
}

func TestTheAccountsOfADeletedDirectoryLoseTheirKeysAndTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	populate(t, d, d.Site)
	populate(t, d, d.NewSite(t))
	event := events.AccountsDeleted{Tenant: d.Tenant, Accounts: []id.ID{id.New(d.Clock.Now()), d.Account}}
	envelope := events.Envelope{ID: id.New(d.Clock.Now()), Tenant: d.Tenant}
	for range 2 {
		if err := d.Service.AccountsDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(t, d), [6]int{3, 3, 2, 2, 1, 1}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
}

func TestADeletedApplicationLosesItsTokensPolicyAndWebConfig(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	populate(t, d, d.Site)
	populate(t, d, d.NewSite(t))
	_, err := d.DB.Exec(t.Context(), `INSERT INTO access_tokens
		(tenant_id, id, application_id, account_id, key_id, issued_at, expires_at)
		SELECT t.tenant_id, gen_random_uuid(), t.application_id, t.account_id, t.key_id, t.issued_at, t.expires_at
		FROM access_tokens t, generate_series(1, 12000) WHERE t.tenant_id = $1`, d.Tenant)
	if err != nil {
		t.Fatal(err)
	}
	event := events.ApplicationDeleted{Tenant: d.Tenant, Application: d.Application}
	envelope := events.Envelope{ID: id.New(d.Clock.Now()), Tenant: d.Tenant, Subject: d.Application}
	for range 2 {
		if err := d.Service.ApplicationDeleted(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
		if got, want := rows(t, d), [6]int{4, 4, 1, 1, 1, 1}; got != want {
			t.Errorf("left are %v, want %v", got, want)
		}
	}
}

func TestAnEventWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	d.DB.Close()
	err := d.Service.AccountDeleted(t.Context(), events.Envelope{ID: id.New(d.Clock.Now()), Tenant: d.Tenant},
		events.AccountDeleted{Tenant: d.Tenant, Account: d.Account})
	if !errors.Is(err, apierr.Unavailable) {
		t.Errorf("got %v, want %v: the consumer tries that again for ever", err, apierr.Unavailable)
	}
}

// changePassword delivers the event of a change of the account's password.
func changePassword(t testing.TB, d *oauthtest.Deployment, by events.PasswordChange) {
	t.Helper()
	event := events.PasswordChanged{Tenant: d.Tenant, Account: d.Account, By: by}
	envelope := events.Envelope{ID: id.New(d.Clock.Now()), Tenant: d.Tenant, Subject: d.Account, At: d.Clock.Now()}
	for range 2 {
		if err := d.Service.PasswordChanged(t.Context(), envelope, event); err != nil {
			t.Fatal(err)
		}
	}
}

func TestANewPasswordEndsTokensBeforeItsEventArrives(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	keep := d.Site
	keep.Application = d.NewApplication(d.Tenant, d.Directory)
	if _, err := d.Service.UpdatePolicy(t.Context(), id.Ref{Tenant: d.Tenant, ID: keep.Application},
		oauth.PolicyChange{RevokeTokensOnPasswordChange: field.Some(false)}); err != nil {
		t.Fatal(err)
	}
	account := id.Ref{Tenant: d.Tenant, ID: d.Account}
	former, kept := d.LogIn(t, d.Site), d.LogIn(t, keep)
	d.Clock.Move(time.Second)
	refreshed, err := d.Service.Token(t.Context(), refreshWith(d.Site, former.Refresh))
	if err != nil {
		t.Fatal(err)
	}
	d.Directories.Change(t, account, directoryapi.NewAccount{Password: field.Some(oauthtest.Password.Reveal())})
	d.Clock.Move(time.Millisecond)
	later := d.LogIn(t, d.Site)
	for _, token := range []secure.Secret{former.Access, refreshed.Access} {
		validate(t, d, d.Site, token, apierr.TokenRevoked)
	}
	refuseRefresh(t, d, d.Site, former.Refresh)
	in := validation(d.Tenant, d.Application, former.Access)
	if _, err := d.Service.ValidateToken(t.Context(), in); !errors.Is(err, apierr.TokenRevoked) {
		t.Errorf("a service that asks gets %v", err)
	}
	validate(t, d, d.Site, later.Access, nil)
	validate(t, d, keep, kept.Access, nil)
	t.Run("the first password, by a clock that is ahead, ends none", func(t *testing.T) {
		ahead := d.Clock.Now().Add(time.Minute)
		if err := pg.MustChange(t.Context(), d.Directories.DB, `UPDATE accounts SET created_at = $3, password_modified_at = $4
			WHERE tenant_id = $1 AND id = $2`, account.Tenant, account.ID, ahead, ahead.Add(-time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		validate(t, d, d.Site, later.Access, nil)
	})
}

func TestANewPasswordEndsTheTokensOfTheFormerOne(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	keep := d.Site
	keep.Application = d.NewApplication(d.Tenant, d.Directory)
	if _, err := d.Service.UpdatePolicy(t.Context(), id.Ref{Tenant: d.Tenant, ID: keep.Application},
		oauth.PolicyChange{RevokeTokensOnPasswordChange: field.Nullable[bool]{Present: true}}); err != nil {
		t.Fatal(err)
	}
	foreign := d.NewSite(t)
	for by, endsAll := range map[events.PasswordChange]bool{events.PasswordByReset: true, events.PasswordByAdministrator: false} {
		t.Run(string(by), func(t *testing.T) {
			former, kept, others := d.LogIn(t, d.Site), d.LogIn(t, keep), d.LogIn(t, foreign)
			d.Clock.Move(time.Second)
			refreshed, err := d.Service.Token(t.Context(), refreshWith(d.Site, former.Refresh))
			if err != nil {
				t.Fatal(err)
			}
			changePassword(t, d, by)
			for _, token := range []secure.Secret{former.Access, refreshed.Access} {
				validate(t, d, d.Site, token, apierr.TokenRevoked)
			}
			refuseRefresh(t, d, d.Site, former.Refresh)
			if endsAll {
				validate(t, d, keep, kept.Access, apierr.TokenRevoked)
				refuseRefresh(t, d, keep, kept.Refresh)
			} else {
				validate(t, d, keep, kept.Access, nil)
			}
			validate(t, d, foreign, others.Access, nil)
			d.Clock.Move(time.Millisecond)
			later := d.LogIn(t, d.Site)
			t.Run("a login with the new one that the event reaches late keeps its tokens", func(t *testing.T) {
				d.Clock.Move(-time.Millisecond)
				changePassword(t, d, by)
				d.Clock.Move(time.Millisecond)
				validate(t, d, d.Site, later.Access, nil)
			})
		})
	}
}

// A login that has verified the former password before the change, and ends after it, gets no token.
func TestALoginThatThePasswordChangeOvertakesIssuesNothing(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	began := d.Clock.Now()
	d.Applications.Break("Login", fault.After, func() error {
		d.Clock.Move(5 * time.Second) // it hangs
		changePassword(t, d, events.PasswordByReset)
		return nil
	})
	before := [2]int{count(t, d, store.Access), count(t, d, store.Refresh)}
	_, err := d.Service.Token(t.Context(), d.Request("grant_type", "password", "username", oauthtest.Login, "password",
		oauthtest.Password.Reveal()))
	if !errors.Is(err, apierr.WrongPassword) || !d.Clock.Now().After(began) {
		t.Errorf("the login returns %v", err)
	}
	d.Applications.Break("Login", fault.After, nil)
	if after := [2]int{count(t, d, store.Access), count(t, d, store.Refresh)}; after != before {
		t.Errorf("%v tokens, want %v", after, before)
	}
	d.Clock.Move(time.Millisecond)
	d.LogIn(t, d.Site)
	t.Run("what was stored of the change is purged", func(t *testing.T) {
		d.Clock.Move(3 * time.Minute)
		if n, err := d.Service.Purge(t.Context()); err != nil || n != 1 {
			t.Errorf("purged %d rows, %v", n, err)
		}
	})
}

// refuseRefresh checks that a refresh token was revoked.
func refuseRefresh(t *testing.T, d *oauthtest.Deployment, site oauthtest.Site, refresh secure.Secret) {
	t.Helper()
	if _, err := d.Service.Token(t.Context(), refreshWith(site, refresh)); err == nil || apierr.From(err).Code != apierr.TokenRevoked.Code {
		t.Errorf("a refresh returns %v, want %v", err, apierr.TokenRevoked)
	}
}
