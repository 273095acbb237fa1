// Package contract_test tests what the contract of the OAuth service (pkg/api/oauthapi) promises.
package contract_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// surroundings has the implementation under test, and the resources and functions that the suite
// needs.
type surroundings struct {
	API oauthapi.Contract

	Tenant         id.ID
	Administrators id.ID // enabled administrators directory of the tenant
	Administrator  id.ID // enabled account in it
	EndUser        id.ID // enabled account in an ordinary, enabled directory of the tenant

	Application id.ID         // whose only account store is the directory of EndUser
	Login       string        // of EndUser
	Password    secure.Secret // of EndUser

	// SetStatus sets the status of an account or a directory of the tenant.
	SetStatus func(resource id.ID, status string)
	// SetKeyStatus sets the status of an API key of the tenant.
	SetKeyStatus func(key, status string)
	// Delete removes an account or a directory of the tenant before the service
	// has handled the event of it.
	Delete func(resource id.ID)
	// Now returns the service's time, and Wait lets it pass.
	Now  func() time.Time
	Wait func(time.Duration)
	// Fail makes the service's peers unreachable, or reachable again with false.
	Fail func(bool)
}

const secret secure.Secret = "k5Q0dYw2Qm9vZ1x8Rr3uT7pB4nC6sE0hJ2gL5aV8iXy"

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestContract(t *testing.T) {
	open := func(t *testing.T) surroundings { d := oauthtest.Open(t); return around(t, d, d.Service) }
	run(t, open, map[string]func(*testing.T, surroundings){
		"Authenticate returns the key":             authenticate,
		"Authenticate refuses strangers alike":     strangers,
		"Authenticate checks the account of a key": access,
		"Authenticate fails with its peers":        failing,

		"VerifySignature accepts a request once":            verify,
		"VerifySignature refuses what nobody signed":        forged,
		"VerifySignature checks the account of a key":       signers,
		"VerifySignature checks the time and its own nonce": clocks,

		"EnsureKey returns the key that it made": ensure,
		"EnsureKey refuses what is no key":       ensureNothing,

		"VerifyJWT and SignAssertion keep the secret":  assertions,
		"ClientToken issues what ValidateToken checks": clientTokens,
	})
}

func run(t *testing.T, open func(*testing.T) surroundings, tests map[string]func(*testing.T, surroundings)) {
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// made makes a key of the account.
func made(t *testing.T, s surroundings, account id.ID) oauthapi.Key {
	t.Helper()
	key, err := s.API.EnsureKey(t.Context(), oauthapi.EnsureKey{Tenant: s.Tenant, Account: account, ID: secure.KeyID(), Secret: secret})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func ensure(t *testing.T, s surroundings) {
	in := oauthapi.EnsureKey{Tenant: s.Tenant, Account: s.Administrator, ID: secure.KeyID(), Secret: secret}
	first, err := s.API.EnsureKey(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if first.ID != in.ID || first.TenantID != in.Tenant || first.AccountID != in.Account || first.Status != directoryapi.Enabled {
		t.Errorf("the key is %+v", first)
	}
	again, err := s.API.EnsureKey(t.Context(), in)
	if err != nil || !same(again, first) {
		t.Errorf("repeated it returns %+v, %v; want %+v", again, err, first)
	}
	other := in
	other.Secret = "another"
	refused(t, s, other, apierr.Exists)
	other = in
	other.Account = s.EndUser
	refused(t, s, other, apierr.Exists)
	other = in
	other.Tenant = s.EndUser // a tenant that is not this one
	refused(t, s, other, apierr.Exists)

	t.Run("not again, when it was made before", func(t *testing.T) {
		before := in
		before.MustExist = true
		if key, err := s.API.EnsureKey(t.Context(), before); err != nil || !same(key, first) {
			t.Errorf("it returns %+v, %v", key, err)
		}
		before.Secret = "another"
		refused(t, s, before, apierr.Exists)
		before.ID = secure.KeyID()
		refused(t, s, before, apierr.NotFound)
	})
	t.Run("once, however many ask at the same time", func(t *testing.T) {
		in := oauthapi.EnsureKey{Tenant: s.Tenant, Account: s.Administrator, ID: secure.KeyID(), Secret: secret}
		var group sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			group.Go(func() {
				key, err := s.API.EnsureKey(t.Context(), in)
				if err == nil && key.ID != in.ID {
					err = fmt.Errorf("got the key %s", key.ID)
				}
				errs[i] = err
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
}

// same reports whether two answers are about the same key, whatever they depend on.
func same(a, b oauthapi.Key) bool {
	times := a.CreatedAt.Equal(b.CreatedAt) && a.ModifiedAt.Equal(b.ModifiedAt)
	a.CreatedAt, a.ModifiedAt, a.DependsOn = b.CreatedAt, b.ModifiedAt, b.DependsOn
	return times && reflect.DeepEqual(a, b)
}

// isNone reports whether a key is the zero value.
func isNone(key oauthapi.Key) bool { return reflect.DeepEqual(key, oauthapi.Key{}) }

func refused(t *testing.T, s surroundings, in oauthapi.EnsureKey, want error) {
	t.Helper()
	if key, err := s.API.EnsureKey(t.Context(), in); !errors.Is(err, want) || !isNone(key) {
		t.Errorf("EnsureKey returns %+v, %v; want %v", key, err, want)
	}
}

func ensureNothing(t *testing.T, s surroundings) {
	in := oauthapi.EnsureKey{Tenant: s.Tenant, Account: s.Administrator, ID: secure.KeyID()}
	refused(t, s, in, apierr.Required)
	for _, text := range []string{"", "with:colon", "with space", "NUL\x00", "ключ", "../up"} {
		in.ID, in.Secret = text, secret
		refused(t, s, in, apierr.Format)
	}
}

func authenticate(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	got, err := s.API.Authenticate(t.Context(), oauthapi.Authenticate{ID: key.ID, Secret: secret})
	if err != nil || !same(got, key) {
		t.Errorf("Authenticate returns %+v, %v; want %+v", got, err, key)
	}
	if !slices.Contains(got.DependsOn, got.AccountID) {
		t.Errorf("the answer about the key depends on %v, not on its account %v", got.DependsOn, got.AccountID)
	}
}

// denied checks that a credential is refused, and that the refusal is the same
// whatever the reason.
func denied(t *testing.T, s surroundings, in oauthapi.Authenticate) {
	t.Helper()
	key, err := s.API.Authenticate(t.Context(), in)
	if !errors.Is(err, apierr.Unauthorized) || !isNone(key) {
		t.Fatalf("Authenticate returns %+v, %v; want %v", key, err, apierr.Unauthorized)
	}
	_, unknown := s.API.Authenticate(t.Context(), oauthapi.Authenticate{ID: "NOBODY", Secret: "x"})
	if apierr.From(err).Error() != apierr.From(unknown).Error() {
		t.Errorf("the refusal says %q; that of an unknown key %q", err, unknown)
	}
}

func strangers(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	for name, in := range map[string]oauthapi.Authenticate{
		"a wrong secret":         {ID: key.ID, Secret: secret + "x"},
		"a part of the secret":   {ID: key.ID, Secret: secret[:len(secret)-1]},
		"no secret":              {ID: key.ID},
		"an unknown key":         {ID: secure.KeyID(), Secret: secret},
		"no key":                 {Secret: secret},
		"nothing":                {},
		"SQL":                    {ID: "' OR '1'='1", Secret: secret},
		"a NUL":                  {ID: key.ID + "\x00", Secret: secret},
		"more than the key":      {ID: "x" + key.ID, Secret: secret},
		"an id of great length":  {ID: string(make([]byte, 1<<16)), Secret: secret},
		"what is not even UTF-8": {ID: "\xff\xfe", Secret: secret},
	} {
		t.Run(name, func(t *testing.T) { denied(t, s, in) })
	}
}

func access(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	in := oauthapi.Authenticate{ID: key.ID, Secret: secret}
	allowed := func() {
		t.Helper()
		if _, err := s.API.Authenticate(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	allowed()
	s.SetKeyStatus(key.ID, directoryapi.Disabled)
	denied(t, s, in)
	s.SetKeyStatus(key.ID, directoryapi.Enabled)
	allowed()
	for _, status := range []string{directoryapi.Disabled, directoryapi.Unverified} {
		s.SetStatus(s.Administrator, status)
		denied(t, s, in)
	}
	s.SetStatus(s.Administrator, directoryapi.Enabled)
	allowed()
	s.SetStatus(s.Administrators, directoryapi.Disabled)
	denied(t, s, in)
	s.SetStatus(s.Administrators, directoryapi.Enabled)
	allowed()
	denied(t, s, oauthapi.Authenticate{ID: made(t, s, s.EndUser).ID, Secret: secret})
	s.Delete(s.Administrator)
	denied(t, s, in)
}

func failing(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	s.Fail(true)
	_, err := s.API.Authenticate(t.Context(), oauthapi.Authenticate{ID: key.ID, Secret: secret})
	if !errors.Is(err, apierr.Unavailable) {
		t.Errorf("Authenticate returns %v; want %v: a directory that is away is no wrong key", err, apierr.Unavailable)
	}
	s.Fail(false)
	if _, err := s.API.Authenticate(t.Context(), oauthapi.Authenticate{ID: key.ID, Secret: secret}); err != nil {
		t.Error(err)
	}
}

func around(t *testing.T, d *oauthtest.Deployment, api oauthapi.Contract) surroundings {
	return surroundings{
		API: api, Tenant: d.Tenant, Administrators: d.Administrators, Administrator: d.Administrator, EndUser: d.Account,
		Application: d.Application, Login: oauthtest.Login, Password: oauthtest.Password,
		SetStatus: func(resource id.ID, status string) { d.SetStatus(d.Tenant, resource, status) },
		SetKeyStatus: func(key, status string) {
			if _, err := d.Service.UpdateAPIKey(t.Context(), d.Tenant, key, oauth.APIKeyChange{Status: field.Some(status)}); err != nil {
				t.Fatal(err)
			}
		},
		Now: d.Clock.Now, Wait: d.Clock.Move,
		Delete: func(resource id.ID) { d.Delete(d.Tenant, resource) },
		Fail: func(away bool) {
			if away {
				d.Fail(apierr.Unavailable)
				return
			}
			d.Fail(nil)
		},
	}
}
