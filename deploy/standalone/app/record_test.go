package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// A command that changes something is recorded, with its operator, its reason, its tenant and its outcome, also when it
// is cut short; one that was called wrongly is not.
func TestACommandIsRecorded(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, directorystore.Config)
	now := time.Now().Truncate(time.Millisecond)
	tenant := directoryapi.Tenant{ID: id.New(now), Key: "calm-otter", Name: "Calm Otter", CreatedAt: now, ModifiedAt: now}
	err := directorystore.New(db, time.Now).Tx(t.Context(), func(tx *directorystore.Tx) error { return tx.InsertTenant(t.Context(), tenant) })
	if err != nil {
		t.Fatal(err)
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	cutShort, cancel := context.WithCancel(t.Context())
	defer cancel()
	refused := errors.New("refused")
	for _, c := range []struct {
		variable, reason string
		ctx              context.Context
		returns          error
		want             string
	}{
		{"DOORWARD_OPERATOR=jo", "locked out", t.Context(), nil, " DONE jo " + tenant.ID.String() + " admin key locked out\n"},
		{"SUDO_USER=sam", "", t.Context(), refused, " REFUSED sam " + tenant.ID.String() + " admin key -\n"},
		{"PATH=/bin", "", t.Context(), UsageError("no such tenant"), ""},
		{"PATH=/bin", "", cutShort, context.Canceled, " REFUSED " + who.Username + " " + tenant.ID.String() + " admin key -\n"},
	} {
		source := func() *env.Source { return env.New([]string{"DATABASE_URL=" + pgtest.URL(db), c.variable}) }
		var before, after bytes.Buffer
		if err := OperatorEvents(t.Context(), source(), "", "1d", false, &before); err != nil {
			t.Fatal(err)
		}
		err := Record(c.ctx, source(), Change{Command: "admin key", Reason: c.reason}, func(e *operatorlog.Event) error {
			e.Tenant = &tenant.ID
			if c.ctx == cutShort {
				cancel()
			}
			return c.returns
		})
		if !errors.Is(err, c.returns) {
			t.Errorf("the recorded command returns %v, want %v", err, c.returns)
		}
		if err := OperatorEvents(t.Context(), source(), "", "1d", false, &after); err != nil {
			t.Fatal(err)
		}
		got := strings.TrimSuffix(after.String(), before.String()) // the newest first
		if !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("with %s and %v the record has %q, want %q", c.variable, c.returns, got, c.want)
		}
	}
}

// What cannot be recorded is not done.
func TestACommandWithoutARecordDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		variables []string
		isUsage   bool
	}{
		{[]string{"DATABASE_URL=postgres://jo@localhost:1/none?connect_timeout=1"}, false},
		{[]string{"OAUTH_DATABASE_URL=postgres://jo@localhost:1/none"}, true},
		{[]string{"DOORWARD_DATA_DIR=" + t.TempDir()}, true},
	} {
		err := Record(t.Context(), env.New(c.variables), Change{Command: "deadletters drop"}, func(*operatorlog.Event) error {
			return fmt.Errorf("the command runs with %v", c.variables)
		})
		if err == nil || strings.HasPrefix(err.Error(), "the command runs") || errors.Is(err, ErrUsage) != c.isUsage {
			t.Errorf("with %v the command returns %v", c.variables, err)
		}
	}
}
