package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// distributedReplicas returns two replicas of the service, whose peers run in other processes, and
// which consume no events.
func distributedReplicas(t *testing.T) (*oauthtest.Deployment, []*oauth.Service) {
	t.Helper()
	d := oauthtest.Open(t)
	d.Remote = true
	d.Listen()
	return d, []*oauth.Service{d.WithMasterKey(t, d.Master), d.WithMasterKey(t, d.Master)}
}

// clientCredentials returns a request with a new key of the site's account.
func clientCredentials(t *testing.T, d *oauthtest.Deployment) oauth.TokenRequest {
	t.Helper()
	key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Account, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}
	return d.Request("grant_type", "client_credentials", "client_id", key.ID, "client_secret", key.Secret.Reveal())
}

// accessUses are the operations that check the access of an account. Each returns its error.
func accessUses(
	d *oauthtest.Deployment, login oauth.IssuedTokens, grant oauth.TokenRequest,
) map[string]func(context.Context, *oauth.Service) error {
	return map[string]func(context.Context, *oauth.Service) error{
		"a validation": func(ctx context.Context, s *oauth.Service) error {
			_, err := s.Validate(ctx, d.Tenant, d.Application, login.Access)
			return err
		},
		"a refresh": func(ctx context.Context, s *oauth.Service) error {
			_, err := s.Token(ctx, d.Request("grant_type", "refresh_token", "refresh_token", login.Refresh.Reveal()))
			return err
		},
		"client credentials": func(ctx context.Context, s *oauth.Service) error {
			_, err := s.Token(ctx, grant)
			return err
		},
	}
}

// The end of access takes effect on every replica after 50 ms, without an event and with any number
// of requests for the account, and at once for the client that has made the change.
func TestTheEndOfAccessTakesEffectOnEveryReplica(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*oauthtest.Deployment){
		"the account is disabled":     func(d *oauthtest.Deployment) { d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled) },
		"the account is deleted":      func(d *oauthtest.Deployment) { d.Delete(d.Tenant, d.Account) },
		"the directory is disabled":   func(d *oauthtest.Deployment) { d.SetStatus(d.Tenant, d.Directory, directoryapi.Disabled) },
		"the application is disabled": func(d *oauthtest.Deployment) { d.SetStatus(d.Tenant, d.Application, directoryapi.Disabled) },
		"the mapping is removed":      func(d *oauthtest.Deployment) { d.Map(d.Tenant, d.Application) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, replicas := distributedReplicas(t)
			uses := accessUses(d, d.LogIn(t, d.Site), clientCredentials(t, d))
			for range 3 {
				for what, use := range uses {
					for _, s := range replicas {
						if err := use(t.Context(), s); err != nil {
							t.Fatalf("%s before the change: %v", what, err)
						}
					}
				}
			}
			end(d)
			d.AwaitChanges()
			d.Clock.Move(49 * time.Millisecond)
			for what, use := range uses {
				for _, s := range replicas {
					if err := use(t.Context(), s); err != nil {
						t.Errorf("%s, 49 ms later: %v; is every one asked for?", what, err)
					}
					if use(caller.IntoChanged(t.Context()), s) == nil {
						t.Errorf("%s succeeds for the client that has made the change", what)
					}
				}
			}
			d.Clock.Move(time.Millisecond)
			var load sync.WaitGroup
			for what, use := range uses {
				for _, s := range replicas {
					for range 8 {
						load.Go(func() {
							if use(t.Context(), s) == nil {
								t.Errorf("%s succeeds 50 ms later", what)
							}
						})
					}
				}
			}
			load.Wait()
		})
	}
}

// A gateway that misses the notification sends requests with a deleted or disabled API key for up
// to a second. After 100 ms no replica validates tokens for them.
func TestNoReplicaValidatesForAKeyThatHasEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *oauthtest.Deployment, string){
		"disabled": func(t *testing.T, d *oauthtest.Deployment, key string) {
			disabled := oauth.APIKeyChange{Status: field.Some(directoryapi.Disabled)}
			if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, key, disabled); err != nil {
				t.Fatal(err)
			}
		},
		"deleted": func(t *testing.T, d *oauthtest.Deployment, key string) {
			if err := d.Service.DeleteAPIKey(t.Context(), d.Tenant, key); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, replicas := distributedReplicas(t)
			token := d.LogIn(t, d.Site).Access
			key, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Account, oauth.NewAPIKey{})
			if err != nil {
				t.Fatal(err)
			}
			ctx := caller.Into(t.Context(), caller.Caller{Tenant: d.Tenant, Key: key.ID, Account: d.Account})
			validate := func(s *oauth.Service) error {
				_, err := s.Validate(ctx, d.Tenant, d.Application, token)
				return err
			}
			for _, s := range replicas {
				if err := validate(s); err != nil {
					t.Fatal(err)
				}
			}
			end(t, d, key.ID)
			d.Clock.Move(100 * time.Millisecond)
			for _, s := range replicas {
				if err := validate(s); !errors.Is(err, apierr.Unauthorized) {
					t.Errorf("100 ms later a replica answers %v", err)
				}
			}
		})
	}
}

// An answer is cached while both services report no change of what it depends on, and a change
// invalidates no other answer. While the changefeeds fail, an answer is used for 50 ms, and so is
// an answer for an account that only a mapped group has. A refusal is not cached.
func TestAnAnswerOfAnotherServiceIsKeptUntilItChanges(t *testing.T) {
	t.Parallel()
	d, replicas := distributedReplicas(t)
	s, sites := replicas[0], []oauthtest.Site{d.Site, d.NewSite(t)}
	tokens := []secure.Secret{d.LogIn(t, sites[0]).Access, d.LogIn(t, sites[1]).Access}
	// validate validates both tokens ten times, and returns how many times that requested the
	// access of an account.
	validate := func() int {
		t.Helper()
		before := d.AccessChecks()
		for range 10 {
			for i, site := range sites {
				if _, err := s.Validate(t.Context(), site.Tenant, site.Application, tokens[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		return d.AccessChecks() - before
	}
	later := func() int {
		t.Helper()
		d.Clock.Move(50 * time.Millisecond)
		d.AwaitChanges()
		return validate()
	}
	// expectKept expects that a change lets answers be asked for twice, and that they are kept from then on.
	// Where this machine stands still for 50 ms of its own clock, the feeds do not know whether they are
	// current, and answers are asked for more often: then the change is made again.
	expectKept := func(what string, want int, change func()) {
		t.Helper()
		var asked []int
		for range 50 {
			change()
			asked = []int{later(), later()}
			for range 5 {
				asked = append(asked, later())
			}
			if slices.Equal(asked, []int{want, want, 0, 0, 0, 0, 0}) {
				return
			}
		}
		t.Errorf("%s: rounds of twenty validations asked %v times, want %d twice and then 0", what, asked, want)
	}
	expectKept("a minute later", 2, func() { d.Clock.Move(time.Minute) })
	expectKept("after a change of one account", 1, func() { d.Touch(d.Tenant, d.Account) })
	expectKept("after a change of one directory", 1, func() { d.Touch(d.Tenant, d.Directory) })
	expectKept("after a change of one application", 1, func() { d.Touch(d.Tenant, d.Application) })
	n := 0
	expectKept("after a change of its mappings", 1, func() {
		n++
		d.NewOrganization(d.Tenant, d.Application, fmt.Sprint("acme", n), d.Directory)
	})
	expectKept("after unknown changes", 2, func() { pgtest.CutConnections(t, pgtest.URL(d.Applications.DB)) })

	d.Directories.Break("AccessChanges", fault.Before, func() error { return apierr.Unavailable })
	d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
	d.Clock.Move(50 * time.Millisecond)
	if _, err := s.Validate(t.Context(), d.Tenant, d.Application, tokens[0]); !errors.Is(err, apierr.TokenAccountDisabled) {
		t.Errorf("without reports a validation for a disabled account returns %v", err)
	}
	d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
	for range 2 {
		if asked := later(); asked != 2 {
			t.Errorf("without reports twenty validations asked %d times, want 2", asked)
		}
	}
	d.AwaitFeeds()
	expectKept("since the reports are back", 2, func() { d.Clock.Move(time.Minute) })

	d.Fail(apierr.Unavailable)
	d.Clock.Move(50 * time.Millisecond)
	if _, err := s.Validate(t.Context(), d.Tenant, d.Application, tokens[0]); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("without an answer it returns %v", err)
	}
}

// No changefeed reports that an account has left a group, so that an answer for an account that
// only a mapped group has is used for 50 ms.
func TestAnAnswerThatOnlyAGroupAllowsIsNotKept(t *testing.T) {
	t.Parallel()
	d, replicas := distributedReplicas(t)
	group, err := d.Directories.CreateGroup(t.Context(), directoryapi.CreateGroup{
		Tenant: d.Tenant, ID: id.New(d.Clock.Now()), Directory: d.Directory, Group: directoryapi.NewGroup{Name: field.Some("Staff")}})
	if err != nil {
		t.Fatal(err)
	}
	site := d.Site
	site.Application = d.NewApplication(d.Tenant)
	d.Applications.AddGroup(id.Ref{Tenant: d.Tenant, ID: site.Application}, group.ID)
	d.Directories.Join(t, id.Ref{Tenant: d.Tenant, ID: d.Account}, group.ID)
	token := d.LogIn(t, site).Access
	for n := range 10 {
		d.Clock.Move(50 * time.Millisecond)
		before := d.AccessChecks()
		for range 2 {
			if _, err := replicas[0].Validate(t.Context(), d.Tenant, site.Application, token); err != nil {
				t.Fatal(err)
			}
		}
		if asked := d.AccessChecks() - before; asked != 1 {
			t.Errorf("%d times 50 ms later two validations asked %d times", n, asked)
		}
	}
	d.Directories.DeleteGroup(t, id.Ref{Tenant: d.Tenant, ID: group.ID})
	d.Clock.Move(50 * time.Millisecond)
	if _, err := replicas[0].Validate(t.Context(), d.Tenant, site.Application, token); !errors.Is(err, apierr.TokenAccountUnreachable) {
		t.Errorf("without the group a validation returns %v", err)
	}
}

// In one process each use calls the application service, which costs next to nothing.
func TestInOneProcessEachUseAsks(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	uses := accessUses(d, d.LogIn(t, d.Site), clientCredentials(t, d))
	for what, use := range uses {
		for range 2 {
			if err := use(t.Context(), d.Service); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
	for what, want := range map[string]error{
		"a validation": apierr.TokenAccountDisabled, "a refresh": apierr.TokenAccountDisabled, "client credentials": apierr.ClientCredentials,
	} {
		if err := uses[what](t.Context(), d.Service); !errors.Is(err, want) {
			t.Errorf("%s returns %v", what, err)
		}
	}
}
