package contract_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

func providerAccounts(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	at := s.Mirror(t, n.id)
	user := func(externalID, email string, with ...func(*directoryapi.ProviderUser)) directoryapi.ProviderUser {
		in := directoryapi.ProviderUser{
			Tenant: n.id, Directory: at, Account: NewID(), ExternalID: externalID, Email: email, EmailVerified: true,
			GivenName: "Jo",
			UserInfo:  json.RawMessage(`{"id":"` + externalID + `"}`),
		}
		for _, change := range with {
			change(&in)
		}
		return in
	}
	unverified := func(in *directoryapi.ProviderUser) { in.EmailVerified = false }

	t.Run("the first login creates the account, the next one finds it", func(t *testing.T) {
		first := user("1", "jo@example.test")
		made := must(s.API.ProviderAccount(t.Context(), first))(t)
		wantEqual(t, "isNew", made.IsNew, true)
		wantEqual(t, "the id", made.Account.ID, first.Account)
		wantEqual(t, "the status", made.Account.Status, directoryapi.Enabled)
		wantEqual(t, "the verification", made.Account.EmailVerificationStatus, directoryapi.Verified)
		wantEqual(t, "the user name", made.Account.Username, "jo@example.test")
		wantEqual(t, "a repeated call's isNew", must(s.API.ProviderAccount(t.Context(), first))(t).IsNew, true)
		found := must(s.API.ProviderAccount(t.Context(),
			user("1", "jo.new@example.test", func(in *directoryapi.ProviderUser) { in.Surname = "Doe" })))(t)
		wantEqual(t, "isNew", found.IsNew, false)
		wantEqual(t, "the id", found.Account.ID, made.Account.ID)
		wantEqual(t, "the email", found.Account.Email, "jo.new@example.test")
		wantEqual(t, "the user name", found.Account.Username, "jo.new@example.test")
		wantEqual(t, "the name", found.Account.FullName(), "Jo Doe")
	})
	t.Run("a verified email finds the account, and the new id stays with it", func(t *testing.T) {
		made := must(s.API.ProviderAccount(t.Context(), user("2", "sam@example.test")))(t)
		found := must(s.API.ProviderAccount(t.Context(), user("2 again", "SAM@example.test")))(t)
		wantEqual(t, "the id", found.Account.ID, made.Account.ID)
		found = must(s.API.ProviderAccount(t.Context(), user("2 again", "sam.new@example.test")))(t)
		wantEqual(t, "the id", found.Account.ID, made.Account.ID)
	})
	t.Run("an email that is looked up as another finds no account: it is another mailbox", func(t *testing.T) {
		must(s.API.ProviderAccount(t.Context(), user("lea", "lea@strasse.test")))(t)
		wantError(s.API.ProviderAccount(t.Context(), user("another lea", "lea@stra\u00dfe.test")))(t, apierr.Exists)
	})
	t.Run("an unverified email finds no account", func(t *testing.T) {
		made := must(s.API.ProviderAccount(t.Context(), user("3", "victim@example.test")))(t)
		wantEqual(t, "the verification", made.Account.EmailVerificationStatus, directoryapi.Verified)
		wantError(s.API.ProviderAccount(t.Context(), user("thief", "victim@example.test", unverified)))(t, apierr.Exists)
	})
	t.Run("an account of an unverified email is found by nobody else", func(t *testing.T) {
		made := must(s.API.ProviderAccount(t.Context(), user("early thief", "late@example.test", unverified)))(t)
		wantEqual(t, "the verification", made.Account.EmailVerificationStatus, directoryapi.Unverified)
		wantError(s.API.ProviderAccount(t.Context(), user("4", "late@example.test")))(t, apierr.Exists)
	})
	t.Run("an email of which the provider says nothing counts as verified, and finds no account and is found by none",
		func(t *testing.T) {
			unstated := func(in *directoryapi.ProviderUser) { in.EmailVerified, in.EmailUnstated = false, true }
			made := must(s.API.ProviderAccount(t.Context(), user("silent", "silent@example.test", unstated)))(t)
			wantEqual(t, "the verification", made.Account.EmailVerificationStatus, directoryapi.Verified)
			wantError(s.API.ProviderAccount(t.Context(), user("5", "silent@example.test")))(t, apierr.Exists)
			again := must(s.API.ProviderAccount(t.Context(), user("silent", "silent@example.test", unstated)))(t)
			wantEqual(t, "the id", again.Account.ID, made.Account.ID)
			verified := must(s.API.ProviderAccount(t.Context(), user("6", "stated@example.test")))(t)
			wantError(s.API.ProviderAccount(t.Context(), user("7", "stated@example.test", unstated)))(t, apierr.Exists)
			must(s.API.ProviderAccount(t.Context(), user("silent", "silent@example.test")))(t) // now it says so
			wantEqual(t, "the id", must(s.API.ProviderAccount(t.Context(), user("8", "silent@example.test")))(t).Account.ID,
				made.Account.ID)
			wantEqual(t, "the verification", verified.Account.EmailVerificationStatus, directoryapi.Verified)
		})
	t.Run("no id of the user: the email", func(t *testing.T) {
		made := must(s.API.ProviderAccount(t.Context(), user("", "nameless@example.test")))(t)
		wantEqual(t, "the id", must(s.API.ProviderAccount(t.Context(), user("", "Nameless@example.test")))(t).Account.ID,
			made.Account.ID)
	})
	t.Run("50 parallel first logins create one account", func(t *testing.T) {
		var all sync.WaitGroup
		var created atomic.Int32
		ids := make([]id.ID, 50)
		for i := range ids {
			all.Go(func() {
				out, err := s.API.ProviderAccount(t.Context(), user("50", "fifty@example.test"))
				if err != nil {
					t.Error(err)
				}
				if ids[i] = out.Account.ID; out.IsNew {
					created.Add(1)
				}
			})
		}
		all.Wait()
		wantEqual(t, "the number of new accounts", created.Load(), 1)
		for _, got := range ids {
			wantEqual(t, "the account", got, ids[0])
		}
	})
	wantError(s.API.ProviderAccount(t.Context(), user("5", "")))(t, apierr.ProviderIncomplete)
	foreign := user("6", "foreign@example.test")
	foreign.Tenant = other.id
	wantError(s.API.ProviderAccount(t.Context(), foreign))(t, apierr.NotFound)
	cloud := user("6", "cloud@example.test")
	cloud.Directory = n.directory(t, "Cloud")
	wantError(s.API.ProviderAccount(t.Context(), cloud))(t, apierr.Reference)
	s.DisableDirectory(t, n.ref(at))
	wantError(s.API.ProviderAccount(t.Context(), user("1", "jo.new@example.test")))(t, apierr.DirectoryDisabled)
	wantError(s.API.ProviderAccount(t.Context(), user("7", "new@example.test")))(t, apierr.DirectoryDisabled)
}
