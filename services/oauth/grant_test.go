package oauth_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

// count returns the number of live tokens of the site's account.
func count(t testing.TB, d *oauthtest.Deployment, kind store.TokenKind) int {
	t.Helper()
	page, err := d.Service.ListTokens(t.Context(), kind, d.Tenant, d.Account, list.First())
	if err != nil {
		t.Fatal(err)
	}
	return page.Size
}

// runConcurrently runs work n times concurrently and returns the errors.
func runConcurrently(n int, work func(i int) error) []error {
	var group sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for i := range n {
		group.Go(func() {
			<-start
			errs[i] = work(i)
		})
	}
	close(start)
	group.Wait()
	return errs
}

func refreshWith(s oauthtest.Site, token secure.Secret) oauth.TokenRequest {
	return s.Request("grant_type", "refresh_token", "refresh_token", token.Reveal())
}

func TestRefresh(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	first := d.LogIn(t, d.Site)
	d.Clock.Move(10 * 24 * time.Hour)
	second, err := d.Service.Token(t.Context(), refreshWith(d.Site, first.Refresh))
	if err != nil {
		t.Fatal(err)
	}
	if second.Refresh != first.Refresh || second.Access == first.Access || second.AccessTokenID == first.AccessTokenID {
		t.Error("a refresh returns a new access token and the same refresh token")
	}
	_, before := decodeJWT(t, first.Access)
	_, after := decodeJWT(t, second.Access)
	if after["rti"] != before["rti"] || after["exp"].(float64)-before["exp"].(float64) != 10*24*3600 {
		t.Errorf("the claims were %v and are %v", before, after)
	}
	validate(t, d, d.Site, second.Access, nil)

	t.Run("it is signed by the key of the caller, whichever key signed the refresh token", func(t *testing.T) {
		key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Administrator, oauth.NewAPIKey{})
		if err != nil {
			t.Fatal(err)
		}
		second := d.Site
		second.Key = key.ID
		third, err := d.Service.Token(t.Context(), refreshWith(second, first.Refresh))
		if err != nil {
			t.Fatal(err)
		}
		if header, _ := decodeJWT(t, third.Access); header["kid"] != key.ID {
			t.Errorf("the header is %v", header)
		}
		validate(t, d, d.Site, third.Access, nil)
	})
	t.Run("the refresh token ends when it was to end, however often it was used", func(t *testing.T) {
		d.Clock.Move(50*24*time.Hour - time.Second)
		if _, err := d.Service.Token(t.Context(), refreshWith(d.Site, first.Refresh)); err != nil {
			t.Error(err)
		}
		d.Clock.Move(time.Second)
		if _, err := d.Service.Token(t.Context(), refreshWith(d.Site, first.Refresh)); !errors.Is(err, apierr.TokenExpired) {
			t.Error(err)
		}
	})
}

func TestParallelRefreshes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	login := d.LogIn(t, d.Site)
	tokens := make([]oauth.IssuedTokens, 50)
	errs := runConcurrently(len(tokens), func(i int) (err error) {
		tokens[i], err = d.Service.Token(context.Background(), refreshWith(d.Site, login.Refresh))
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	ids := map[id.ID]bool{login.AccessTokenID: true}
	for _, token := range tokens {
		ids[token.AccessTokenID] = true
		validate(t, d, d.Site, token.Access, nil)
	}
	if len(ids) != 51 || count(t, d, store.Access) != 51 || count(t, d, store.Refresh) != 1 {
		t.Errorf("%d access tokens, %d rows, %d refresh tokens", len(ids), count(t, d, store.Access), count(t, d, store.Refresh))
	}
}

// A revocation during concurrent refreshes leaves no access token.
func TestRevocationAmongRefreshes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	for range 5 {
		login := d.LogIn(t, d.Site)
		errs := runConcurrently(20, func(i int) error {
			if i == 7 {
				return d.Service.Revoke(context.Background(), oauth.Revocation{
					Tenant: d.Tenant, Application: d.Application, Form: oauthtest.Form("token", login.Refresh.Reveal()),
				})
			}
			_, err := d.Service.Token(context.Background(), refreshWith(d.Site, login.Refresh))
			if err != nil && apierr.From(err).Code != apierr.TokenRevoked.Code {
				return err
			}
			return nil
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if left := count(t, d, store.Access) + count(t, d, store.Refresh); left != 0 {
			t.Fatalf("%d tokens are left", left)
		}
	}
}

func TestRefreshFailsAtOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	refresh := refreshWith(d.Site, d.LogIn(t, d.Site).Refresh)
	for name, c := range map[string]struct {
		do, undo func()
		want     *apierr.Error
	}{
		"the account is disabled": {
			func() { d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled) },
			func() { d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled) }, apierr.TokenAccountDisabled,
		},
		"the application is disabled": {
			func() { d.SetStatus(d.Tenant, d.Application, directoryapi.Disabled) },
			func() { d.SetStatus(d.Tenant, d.Application, directoryapi.Enabled) }, apierr.TokenApplicationDisabled,
		},
		"the directory is disabled": {
			func() { d.SetStatus(d.Tenant, d.Directory, directoryapi.Disabled) },
			func() { d.SetStatus(d.Tenant, d.Directory, directoryapi.Enabled) }, apierr.TokenStoreDisabled,
		},
		"the directory is not mapped": {
			func() { d.Map(d.Tenant, d.Application) },
			func() { d.Map(d.Tenant, d.Application, d.Directory) }, apierr.TokenAccountUnreachable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := count(t, d, store.Access)
			c.do()
			defer c.undo()
			_, err := d.Service.Token(t.Context(), refresh)
			if !errors.Is(err, c.want) || apierr.From(err).Fields["error"] != "invalid_grant" {
				t.Errorf("got %v with %v, want %v", err, apierr.From(err).Fields, c.want)
			}
			if after := count(t, d, store.Access); after != before {
				t.Errorf("there were %d access tokens, now %d", before, after)
			}
		})
	}
	if _, err := d.Service.Token(t.Context(), refresh); err != nil {
		t.Error(err)
	}
}

func TestRevoke(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	revoke := func(t *testing.T, pairs ...string) {
		t.Helper()
		if err := d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application,
			Form: oauthtest.Form(pairs...)}); err != nil {
			t.Error(err)
		}
	}
	elsewhere := d.LogIn(t, d.Site)
	for _, which := range []string{"the access token", "the refresh token", "an access token that was refreshed"} {
		t.Run(which+" ends the pair and what came of it", func(t *testing.T) {
			login := d.LogIn(t, d.Site)
			next, err := d.Service.Token(t.Context(), refreshWith(d.Site, login.Refresh))
			if err != nil {
				t.Fatal(err)
			}
			revoke(t, "token", map[string]secure.Secret{
				"the access token": login.Access, "the refresh token": login.Refresh, "an access token that was refreshed": next.Access,
			}[which].Reveal())
			validate(t, d, d.Site, login.Access, apierr.TokenRevoked)
			validate(t, d, d.Site, next.Access, apierr.TokenRevoked)
			if _, err := d.Service.Token(t.Context(), refreshWith(d.Site, login.Refresh)); apierr.From(err).Code != apierr.TokenRevoked.Code {
				t.Error(err)
			}
			validate(t, d, d.Site, elsewhere.Access, nil)
		})
	}
	t.Run("one of a disabled account", func(t *testing.T) {
		login := d.LogIn(t, d.Site)
		d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
		revoke(t, "token", login.Access.Reveal())
		d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
		validate(t, d, d.Site, login.Access, apierr.TokenRevoked)
	})
	t.Run("one of client credentials ends alone", func(t *testing.T) {
		key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Account, oauth.NewAPIKey{})
		if err != nil {
			t.Fatal(err)
		}
		in := d.Request("grant_type", "client_credentials", "client_id", key.ID, "client_secret", key.Secret.Reveal())
		one, err := d.Service.Token(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		two, err := d.Service.Token(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		revoke(t, "token", one.Access.Reveal())
		revoke(t, "token", one.Access.Reveal())
		validate(t, d, d.Site, one.Access, apierr.TokenRevoked)
		validate(t, d, d.Site, two.Access, nil)
	})
	t.Run("the hint counts for a token that does not say its type, and for no other", func(t *testing.T) {
		login := d.LogIn(t, d.Site)
		header, claims := decodeJWT(t, login.Access)
		bare := signForgedJWT(t, with(header, "stt", nil), claims, d.Secret).Reveal()
		err := d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application, Form: oauthtest.Form("token", bare)})
		if !errors.Is(err, apierr.TokenTypeUnknown) || apierr.From(err).Fields["error"] != "unsupported_token_type" {
			t.Errorf("got %v with %v", err, apierr.From(err).Fields)
		}
		revoke(t, "token", bare, "token_type_hint", "refresh_token")
		validate(t, d, d.Site, login.Access, nil)
		revoke(t, "token", bare, "token_type_hint", "access_token")
		validate(t, d, d.Site, login.Access, apierr.TokenRevoked)

		login = d.LogIn(t, d.Site)
		revoke(t, "token", login.Access.Reveal(), "token_type_hint", "refresh_token")
		validate(t, d, d.Site, login.Access, apierr.TokenRevoked)
	})
	t.Run("what is no token of the application is left alone", func(t *testing.T) {
		login := d.LogIn(t, d.Site)
		other := d.NewApplication(d.Tenant, d.Directory)
		if err := d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: other,
			Form: oauthtest.Form("token", login.Access.Reveal())}); err != nil {
			t.Error(err)
		}
		revoke(t, "token", "abc")
		revoke(t, "token", "a.b.c")
		validate(t, d, d.Site, login.Access, nil)
		d.Clock.Move(time.Hour)
		revoke(t, "token", login.Access.Reveal()) // expired: its refresh token stays
		if _, err := d.Service.Token(t.Context(), refreshWith(d.Site, login.Refresh)); err != nil {
			t.Error(err)
		}
	})
}

func TestDeletingOneTokenSparesTheOther(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	login := d.LogIn(t, d.Site)
	if err := d.Service.DeleteToken(t.Context(), store.Access, d.Tenant, login.AccessTokenID); err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, login.Access, apierr.TokenRevoked)
	next, err := d.Service.Token(t.Context(), refreshWith(d.Site, login.Refresh))
	if err != nil {
		t.Fatal(err)
	}
	_, claims := decodeJWT(t, login.Refresh)
	refresh, err := id.Parse(claims["jti"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Service.DeleteToken(t.Context(), store.Refresh, d.Tenant, refresh); err != nil {
		t.Fatal(err)
	}
	validate(t, d, d.Site, next.Access, nil)
}

func TestPolicyDecidesLifetimes(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	set := func(access, refresh string) {
		t.Helper()
		_, err := d.Service.UpdatePolicy(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application}, oauth.PolicyChange{
			AccessTokenTTL: field.Some(access), RefreshTokenTTL: field.Some(refresh),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		access, refresh   string
		seconds, lifetime float64
	}{{"PT5M", "P1D", 300, 86400}, {"PT1S", "PT1S", 1, 1}, {"PT1.9S", "PT1H0.5S", 1, 3600}, {"P10Y", "P10Y1D", 3650 * 86400, 3651 * 86400}} {
		set(c.access, c.refresh)
		login := d.LogIn(t, d.Site)
		_, access := decodeJWT(t, login.Access)
		_, refresh := decodeJWT(t, login.Refresh)
		if life := access["exp"].(float64) - access["iat"].(float64); life != c.seconds || login.ExpiresIn.Seconds() != c.seconds {
			t.Errorf("under %s an access token lives for %v s and says %v", c.access, life, login.ExpiresIn)
		}
		if life := refresh["exp"].(float64) - refresh["iat"].(float64); life != c.lifetime {
			t.Errorf("under %s a refresh token lives for %v s", c.refresh, life)
		}
	}
	for _, zero := range []string{"PT0M", "PT0S", "P0D", "PT0.000S"} {
		set("PT1H", zero)
		login := d.LogIn(t, d.Site)
		if _, claims := decodeJWT(t, login.Access); login.Refresh != "" || claims["rti"] != nil {
			t.Errorf("%s returns a refresh token %v", zero, claims)
		}
	}
	t.Run("a refresh takes what the policy says then", func(t *testing.T) {
		set("PT1H", "P1D")
		login := d.LogIn(t, d.Site)
		set("PT10M", "PT0M")
		next, err := d.Service.Token(t.Context(), refreshWith(d.Site, login.Refresh))
		if err != nil || next.ExpiresIn != 10*time.Minute || next.Refresh != login.Refresh {
			t.Errorf("got %v, %v", next.ExpiresIn, err)
		}
	})
	t.Run("another application keeps its own", func(t *testing.T) {
		other := d.Site
		other.Application = d.NewApplication(d.Tenant, d.Directory)
		if login := d.LogIn(t, other); login.ExpiresIn != time.Hour || login.Refresh == "" {
			t.Errorf("got %v", login.ExpiresIn)
		}
	})
}

// A change of a policy by one replica takes effect there with the next token, and soon on the other
// replica.
func TestReplicasAreToldOfAPolicy(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	here, elsewhere := d.Replica(t), d.Replica(t)
	seconds := func(s *oauth.Service) int {
		issued, err := s.Token(t.Context(), oauth.TokenRequest{
			Tenant: d.Tenant, Application: d.Application, Key: d.Key,
			Form: oauth.Form{"grant_type": "password", "username": oauthtest.Login, "password": oauthtest.Password},
		})
		if err != nil {
			t.Fatal(err)
		}
		return int(issued.ExpiresIn / time.Second)
	}
	for _, want := range []int{3600, 60, 120, 30} {
		if want != 3600 {
			ttl := field.Some("PT" + strconv.Itoa(want) + "S")
			if _, err := here.UpdatePolicy(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application}, oauth.PolicyChange{AccessTokenTTL: ttl}); err != nil {
				t.Fatal(err)
			}
		}
		if got := seconds(here); got != want {
			t.Errorf("here a token lives for %d s, want %d", got, want)
		}
		for seconds(elsewhere) != want {
			runtime.Gosched()
		}
	}
}

func TestPolicyIsMadeOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	errs := runConcurrently(20, func(i int) error {
		in := oauth.PolicyChange{AccessTokenTTL: field.Some("PT" + strconv.Itoa(i+1) + "M")}
		if i%2 == 0 {
			in = oauth.PolicyChange{RefreshTokenTTL: field.Some("P1D")}
		}
		_, err := d.Service.UpdatePolicy(context.Background(), id.Ref{Tenant: d.Tenant, ID: d.Application}, in)
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	p, err := d.Service.Policy(t.Context(), id.Ref{Tenant: d.Tenant, ID: d.Application})
	if err != nil || p.RefreshTokenTTL != "P1D" || p.AccessTokenTTL == "PT1H" {
		t.Errorf("the policy is %+v, %v", p, err)
	}
}
