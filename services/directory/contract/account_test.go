package contract_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

func secret(text string) secure.Secret { return secure.Secret(text) }

func accounts(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	d := n.directory(t, "People")

	t.Run("a new one is complete", func(t *testing.T) {
		in := n.newAccount(d, "Jo@Example.test", func(in *directoryapi.CreateAccount) {
			in.Account.GivenName, in.Account.Surname = field.Some("Jo"), field.Some("Doe")
		})
		made := must(s.API.CreateAccount(t.Context(), in))(t)
		read := must(s.API.Account(t.Context(), n.ref(in.ID)))(t)
		for what, a := range map[string]directoryapi.Account{"made": made, "read": read} {
			wantEqual(t, what+", the id", a.ID, in.ID)
			wantEqual(t, what+", the tenant", a.TenantID, n.id)
			wantEqual(t, what+", the directory", a.DirectoryID, d)
			wantEqual(t, what+", the email", a.Email, "Jo@Example.test")
			wantEqual(t, what+", the user name", a.Username, "Jo@Example.test")
			wantEqual(t, what+", the full name", a.FullName(), "Jo Doe")
			wantEqual(t, what+", the middle name", a.MiddleName, nil)
			wantEqual(t, what+", the status", a.Status, directoryapi.Enabled)
			wantEqual(t, what+", the email's status", a.EmailVerificationStatus, directoryapi.Unverified)
			wantEqual(t, what+", owner", a.Owner, false)
			wantEqual(t, what+", the token", a.VerificationToken, "")
			if a.PasswordModifiedAt == nil || a.CreatedAt.IsZero() || a.ModifiedAt.IsZero() {
				t.Errorf("%s, a time is missing: %+v", what, a)
			}
		}
		t.Run("a repeated call returns it", func(t *testing.T) {
			again := must(s.API.CreateAccount(t.Context(), in))(t)
			wantEqual(t, "the id", again.ID, made.ID)
			wantEqual(t, "the time of creation", again.CreatedAt.UTC(), made.CreatedAt.UTC())
		})
		t.Run("another tenant cannot see it", func(t *testing.T) {
			wantError(s.API.Account(t.Context(), other.ref(in.ID)))(t, apierr.NotFound)
		})
	})
	t.Run("an email and a user name exist once in a directory, in any case", func(t *testing.T) {
		n.account(t, d, "sam@example.test", func(in *directoryapi.CreateAccount) { in.Account.Username = field.Some("Sam") })
		wantError(s.API.CreateAccount(t.Context(), n.newAccount(d, "SAM@example.test")))(t, apierr.Exists)
		wantError(s.API.CreateAccount(t.Context(),
			n.newAccount(d, "other@example.test", func(in *directoryapi.CreateAccount) {
				in.Account.Username = field.Some("sAM")
			})))(t, apierr.Exists)
		n.account(t, n.directory(t, "Other people"), "sam@example.test")
	})
	t.Run("one can be made disabled", func(t *testing.T) {
		wantEqual(t, "the status", n.account(t, d, "idle@example.test", status("disabled")).Status, directoryapi.Disabled)
	})
	t.Run("an invalid one is refused", func(t *testing.T) {
		for what, c := range map[string]struct {
			change func(*directoryapi.NewAccount)
			want   error
		}{
			"no email":            {func(a *directoryapi.NewAccount) { a.Email = field.Text{} }, apierr.Required},
			"an email of no form": {func(a *directoryapi.NewAccount) { a.Email = field.Some("jo") }, apierr.Format},
			"a long email": {func(a *directoryapi.NewAccount) {
				a.Email = field.Some(strings.Repeat("x", 250) +
					"@example.test")
			},
				apierr.TooLong},
			"a long name": {
				func(a *directoryapi.NewAccount) { a.Surname = field.Some(strings.Repeat("x", 256)) }, apierr.TooLong,
			},
			"no password":       {func(a *directoryapi.NewAccount) { a.Password = field.Text{} }, apierr.Required},
			"a short password":  {func(a *directoryapi.NewAccount) { a.Password = field.Some("Short1") }, apierr.TooShort},
			"an unknown status": {func(a *directoryapi.NewAccount) { a.Status = field.Some("asleep") }, apierr.Unsupported},
		} {
			t.Run(what, func(t *testing.T) {
				in := n.newAccount(d, "invalid@example.test", func(in *directoryapi.CreateAccount) { c.change(&in.Account) })
				wantError(s.API.CreateAccount(t.Context(), in))(t, c.want)
				wantError(s.API.Account(t.Context(), n.ref(in.ID)))(t, apierr.NotFound)
			})
		}
	})
	t.Run("a directory that is not there", func(t *testing.T) {
		wantError(s.API.CreateAccount(t.Context(), n.newAccount(NewID(), "jo@example.test")))(t, apierr.NotFound)
	})
	t.Run("a directory of another tenant", func(t *testing.T) {
		wantError(s.API.CreateAccount(t.Context(), n.newAccount(other.administrators, "jo@example.test")))(t, apierr.NotFound)
	})
	t.Run("a disabled directory takes none through an application", func(t *testing.T) {
		closed := n.directory(t, "Closed")
		s.DisableDirectory(t, n.ref(closed))
		wantError(s.API.CreateAccount(t.Context(),
			n.newAccount(closed, "jo@example.test", func(in *directoryapi.CreateAccount) {
				in.Application = NewID()
			})))(t, apierr.AccountStoreDisabled)
	})
	t.Run("where emails are proven", func(t *testing.T) {
		asking := n.directory(t, "Asking")
		s.EnableVerification(t, n.ref(asking))
		t.Run("a new one waits with a token", func(t *testing.T) {
			made := n.account(t, asking, "new@example.test")
			wantEqual(t, "the status", made.Status, directoryapi.Unverified)
			if made.VerificationToken == "" {
				t.Error("the account has no token")
			}
			wantEqual(t, "the token, read", must(s.API.Account(t.Context(), n.ref(made.ID)))(t).VerificationToken,
				made.VerificationToken)
		})
		t.Run("one without the workflow does not", func(t *testing.T) {
			made := n.account(t, asking, "quiet@example.test", func(in *directoryapi.CreateAccount) { in.Workflow = false })
			wantEqual(t, "the status", made.Status, directoryapi.Enabled)
			wantEqual(t, "the token", made.VerificationToken, "")
		})
	})
	t.Run("one that never was is not found", func(t *testing.T) {
		wantError(s.API.Account(t.Context(), n.ref(NewID())))(t, apierr.NotFound)
	})
}
