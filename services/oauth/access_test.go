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
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/store"
)

// distributedReplicas returns two replicas of the service, which consume no events, and whose peers report
// their changes.
func distributedReplicas(t *testing.T) (*oauthtest.Deployment, []*oauth.Service) {
	t.Helper()
	d := oauthtest.Open(t)
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
			_, err := s.Validate(ctx, validation(d.Tenant, d.Application, login.Access))
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
	account := func(d *oauthtest.Deployment) id.ID { return d.Account }
	directory := func(d *oauthtest.Deployment) id.ID { return d.Directory }
	application := func(d *oauthtest.Deployment) id.ID { return d.Application }
	disable := func(d *oauthtest.Deployment, of id.ID) { d.SetStatus(d.Tenant, of, directoryapi.Disabled) }
	for name, c := range map[string]struct {
		ended func(*oauthtest.Deployment) id.ID // which the answer to the change names
		end   func(*oauthtest.Deployment, id.ID)
	}{
		"the account is disabled":     {account, disable},
		"the account is deleted":      {account, func(d *oauthtest.Deployment, of id.ID) { d.Delete(d.Tenant, of) }},
		"the directory is disabled":   {directory, disable},
		"the application is disabled": {application, disable},
		"the mapping is removed":      {application, func(d *oauthtest.Deployment, of id.ID) { d.Map(d.Tenant, of) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, replicas := distributedReplicas(t)
			uses := accessUses(d, d.LogIn(t, d.Site), clientCredentials(t, d))
			for range 3 {
				d.Clock.Move(101 * time.Millisecond) // since when the feeds were first asked, or were asked last
				for what, use := range uses {
					for _, s := range replicas {
						if err := use(t.Context(), s); err != nil {
							t.Fatalf("%s before the change: %v", what, err)
						}
					}
				}
			}
			ended := c.ended(d)
			c.end(d, ended)
			d.AwaitChanges()
			d.Clock.Move(49 * time.Millisecond)
			for what, use := range uses {
				for _, s := range replicas {
					if err := use(t.Context(), s); err != nil {
						t.Errorf("%s, 49 ms later: %v; is every one asked for?", what, err)
					}
					if use(caller.Into(t.Context(), caller.Caller{Tenant: d.Tenant, Ended: caller.IDs("").With(ended)}), s) == nil {
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

// An answer is kept while both services report no change of what it depends on, and a change invalidates no
// other answer. For 100 ms after the report a replica may answer from before the change: no answer is kept.
// Each use asks while the feeds fail. A refusal is not kept.
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
				if _, err := s.Validate(t.Context(), validation(site.Tenant, site.Application, tokens[i])); err != nil {
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
	// expectKept expects that answers are asked for after a change, and kept from then on. Where this machine
	// stands still for 50 ms of its own clock, the feeds do not know whether they are current, and answers are
	// asked for more often: then the change is made again.
	expectKept := func(what string, want []int, change func()) {
		t.Helper()
		var asked []int
		for range 50 {
			change()
			asked = []int{later(), later()}
			for range 5 {
				asked = append(asked, later())
			}
			if slices.Equal(asked, want) {
				return
			}
		}
		t.Errorf("%s: rounds of twenty validations asked %v times, want %d", what, asked, want)
	}
	expired, oneChanged, allChanged := []int{2, 0, 0, 0, 0, 0, 0}, []int{10, 10, 10, 1, 0, 0, 0}, []int{20, 20, 20, 2, 0, 0, 0}
	expectKept("a minute later", expired, func() { d.Clock.Move(time.Minute) })
	expectKept("after a change of one account", oneChanged, func() { d.Touch(d.Tenant, d.Account) })
	expectKept("after a change of one directory", oneChanged, func() { d.Touch(d.Tenant, d.Directory) })
	expectKept("after a change of one application", oneChanged, func() { d.Touch(d.Tenant, d.Application) })
	n := 0
	expectKept("after a change of its mappings", oneChanged, func() {
		n++
		d.NewOrganization(d.Tenant, d.Application, fmt.Sprint("acme", n), d.Directory)
	})
	expectKept("after unknown changes", allChanged, func() { pgtest.CutConnections(t, pgtest.URL(d.Applications.DB)) })

	d.Directories.Break("AccessChanges", fault.Before, func() error { return apierr.Unavailable })
	d.SetStatus(d.Tenant, d.Account, directoryapi.Disabled)
	d.Clock.Move(50 * time.Millisecond)
	if _, err := s.Validate(t.Context(), validation(d.Tenant, d.Application, tokens[0])); !errors.Is(err, apierr.TokenAccountDisabled) {
		t.Errorf("without reports a validation for a disabled account returns %v", err)
	}
	d.SetStatus(d.Tenant, d.Account, directoryapi.Enabled)
	for range 2 {
		if asked := later(); asked != 20 {
			t.Errorf("without reports twenty validations asked %d times", asked)
		}
	}
	d.AwaitFeeds()
	expectKept("since the reports are back", expired, func() { d.Clock.Move(time.Minute) })

	d.Fail(apierr.Unavailable)
	d.Clock.Move(50 * time.Millisecond)
	if _, err := s.Validate(t.Context(), validation(d.Tenant, d.Application, tokens[0])); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("without an answer it returns %v", err)
	}
}

// An answer for an account that only a mapped group has is kept until the group changes.
func TestAnAnswerThatAGroupAllowsIsKeptUntilTheGroupChanges(t *testing.T) {
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
	validate := func() error {
		t.Helper()
		d.Clock.Move(50 * time.Millisecond)
		d.AwaitChanges()
		_, err := replicas[0].Validate(t.Context(), validation(d.Tenant, site.Application, token))
		return err
	}
	at := id.Ref{Tenant: d.Tenant, ID: group.ID}
	for _, c := range []struct {
		what   string
		change func()
		want   error
	}{
		{"the group is disabled", func() { d.Directories.SetStatus(t, at, directoryapi.Groups, directoryapi.Disabled) }, apierr.TokenStoreDisabled},
		{"the group is deleted", func() { d.Directories.DeleteGroup(t, at) }, apierr.TokenAccountUnreachable},
	} {
		d.Directories.SetStatus(t, at, directoryapi.Groups, directoryapi.Enabled)
		worktest.Await(t, "the answer to be kept", func() bool {
			before := d.AccessChecks()
			if err := validate(); err != nil {
				t.Fatal(err)
			}
			return d.AccessChecks() == before
		})
		c.change()
		if err := validate(); !errors.Is(err, c.want) {
			t.Errorf("when %s a validation returns %v, want %v", c.what, err, c.want)
		}
	}
}

// The token that a validation redirects to is read: nothing that the validation has asked is asked again.
func TestTheTargetOfAValidationIsARead(t *testing.T) {
	t.Parallel()
	d, replicas := distributedReplicas(t)
	s, token := replicas[0], d.LogIn(t, d.Site).Access
	_, _ = s.Validate(t.Context(), validation(d.Tenant, d.Application, token))
	worktest.Await(t, "one call for both", func() bool {
		d.Clock.Move(time.Minute)
		d.AwaitChanges()
		before := d.AccessChecks()
		valid, err := s.Validate(t.Context(), validation(d.Tenant, d.Application, token))
		if err == nil {
			_, err = s.LiveToken(t.Context(), store.Access, d.Tenant, valid.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		return d.AccessChecks() == before+1
	})
}

// Without notifications of PostgreSQL nothing is kept.
func TestWithoutNotificationsEachUseAsks(t *testing.T) {
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
