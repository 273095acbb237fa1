package directory_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory"
)

// A change of the password or the status of an account, and the disabling of a directory, each emit
// the event by which other services revoke tokens and sessions.
func TestChangesThatOthersActOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	account, place := id.Ref{Tenant: w.tenant, ID: w.account.ID}, id.Ref{Tenant: w.tenant, ID: w.directory}
	for _, c := range []struct {
		what   string
		change func() error
		want   string
	}{
		{"another name", func() error {
			return w.update(t, account.ID,
				directoryapi.NewAccount{GivenName: field.Some("Jo")})
		}, ""},
		{"the same status", func() error {
			return w.update(t, account.ID,
				directoryapi.NewAccount{Status: field.Some("ENABLED")})
		}, ""},
		{
			"a disabled account",
			func() error {
				return w.update(t, account.ID,
					directoryapi.NewAccount{Status: field.Some("DISABLED")})
			}, "AccountDisabled",
		},
		{"an unverified account", func() error {
			return w.update(t, account.ID, directoryapi.NewAccount{Status: field.Some("UNVERIFIED")})
		}, ""},
		{
			"an enabled account",
			func() error { return w.update(t, account.ID, directoryapi.NewAccount{Status: field.Some("ENABLED")}) }, "",
		},
		{"an administrator's password", func() error { return w.change(t, "Another1!") }, "PasswordChanged"},
		{"a disabled directory", func() error {
			_, err := w.UpdateDirectory(t.Context(), place, directory.NewDirectory{Status: field.Some("DISABLED")})
			return err
		}, "DirectoryDisabled"},
		{"a disabled directory again", func() error {
			_, err := w.UpdateDirectory(t.Context(), place, directory.NewDirectory{Status: field.Some("DISABLED")})
			return err
		}, ""},
	} {
		w.emitted(t)
		if err := c.change(); err != nil {
			t.Fatalf("the change, %s, failed: %v", c.what, err)
		}
		by, err := pg.Values[string](t.Context(), w.db,
			`SELECT convert_from(envelope, 'UTF8')::jsonb -> 'data' ->> 'by' FROM outbox WHERE convert_from(envelope, 'UTF8')::jsonb ->> 'type' = 'PasswordChanged'`)
		if err != nil || len(by) > 1 || len(by) == 1 && by[0] != string(events.PasswordByAdministrator) {
			t.Errorf("%s: the password was changed by %v, %v", c.what, by, err)
		}
		if got := strings.Join(w.emitted(t), " "); got != c.want {
			t.Errorf("%s: the events are %q, want %q", c.what, got, c.want)
		}
	}
}
