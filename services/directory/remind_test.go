package directory_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory"
)

// register creates an account of the world's directory as a user does, and forgets its events.
func (w *world) register(t *testing.T, email string) directoryapi.Account {
	t.Helper()
	a, err := w.CreateAccountIn(t.Context(), directoryapi.Ref{Tenant: w.tenant, ID: w.directory},
		directoryapi.CreateAccount{
			Workflow: true, Account: directoryapi.NewAccount{Email: field.Some(email), Password: field.Some(password)},
		})
	if err != nil {
		t.Fatal(err)
	}
	w.emitted(t)
	return a
}

// A user who asks for the verification mail again can also use the link of the first.
func TestAnotherVerificationMailHasTheSameTokenWithANewLifetime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	a := w.register(t, "new@example.test")
	again := func() directoryapi.Account {
		t.Helper()
		if _, err := w.RequestVerification(t.Context(), directoryapi.RequestVerification{
			Tenant: w.tenant, Login: a.Email, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}},
		}); err != nil {
			t.Fatal(err)
		}
		read, err := w.Account(t.Context(), directoryapi.Ref{Tenant: w.tenant, ID: a.ID})
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	end := func(change string) time.Time {
		t.Helper()
		ends, err := pg.Value[time.Time](t.Context(),
			w.db, `UPDATE accounts SET verification_expires_at = verification_expires_at + $2::interval
			WHERE id = $1 RETURNING verification_expires_at`, a.ID, change)
		if err != nil {
			t.Fatal(err)
		}
		return ends
	}
	first := end("0")
	end("-1 second")
	if got := again(); got.VerificationToken != a.VerificationToken || a.VerificationToken == "" {
		t.Errorf("the second mail has another token than the first")
	}
	if renewed := end("0"); renewed.Before(first) {
		t.Errorf("the token ends at %s, and would have ended at %s: its lifetime does not restart", renewed, first)
	}
	end("-1000 days")
	if got := again(); got.VerificationToken == a.VerificationToken || got.VerificationToken == "" {
		t.Errorf("a token that has ended is mailed again")
	}
	if events := strings.Join(w.emitted(t), " "); events != "VerificationRequested VerificationRequested" {
		t.Errorf("the events are %s", events)
	}
}

// Whoever registers with the email of an account learns nothing; the mail goes to the account's owner.
func TestARegistrationWithATakenEmailIsAnsweredByMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	unverified := w.register(t, "new@example.test")
	if _, err := w.UpdateAccount(t.Context(), directoryapi.Ref{Tenant: w.tenant, ID: w.account.ID},
		directoryapi.NewAccount{Status: field.Some("ENABLED")}); err != nil {
		t.Fatal(err)
	}
	in := directoryapi.RequestReset{
		Tenant: w.tenant, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}}, Anonymous: true,
	}
	for login, want := range map[string]string{
		"NEW@example.test": "VerificationRequested", "jo@example.test": "PasswordResetRequested",
	} {
		in.Login = login
		if _, err := w.RemindOfAccount(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if events := strings.Join(w.emitted(t), " "); events != want {
			t.Errorf("a registration of %s causes the events %q, want %q", login, events, want)
		}
	}
	if read, err := w.Account(t.Context(), directoryapi.Ref{Tenant: w.tenant, ID: unverified.ID}); err != nil ||
		read.VerificationToken != unverified.VerificationToken {
		t.Errorf("the registration has changed the token of the account: %v", err)
	}
	mail, err := w.mail(t, directoryapi.ExistingAccount)
	if err != nil || !mail.Template.Unchanged || mail.ResetTokenTTL != 24 {
		t.Errorf("the mail to the owner of an existing account is made of %+v, %v", mail, err)
	}
	for range directoryapi.MaxAnonymousMails + 5 {
		if _, err := w.RemindOfAccount(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if mails := len(w.emitted(t)); mails > directoryapi.MaxAnonymousMails {
		t.Errorf("%d registrations of an email are mailed, want at most %d", mails, directoryapi.MaxAnonymousMails)
	}
}
