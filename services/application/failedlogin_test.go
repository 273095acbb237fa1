package application_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/telemetry/telemetrytest"
	"github.com/doorward/doorward/services/application/store"
)

// jo returns the id of the account Jo.
func (x throttledApplication) jo(t *testing.T) id.ID {
	t.Helper()
	explained, err := x.Directories.ExplainLogin(t.Context(), directoryapi.ExplainLogin{Tenant: x.tenant,
		Stores: []directoryapi.Store{{Kind: "directories", ID: x.people}}, Login: jo})
	if err != nil || explained.Found == nil {
		t.Fatal(explained, err)
	}
	return explained.Found.Account.ID
}

// failedLogins returns the rows of an account, the newest first, after all failed logins were recorded.
func (x throttledApplication) failedLogins(t *testing.T, account id.ID) []store.FailedLogin {
	t.Helper()
	x.service.RecordPending()
	rows, err := store.New(x.DB, x.Clock.Now).FailedLogins(t.Context(), x.tenant, []id.ID{account}, x.Clock.Now().Add(-30*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestFailedLoginsAreFoundByTheirAccount(t *testing.T) {
	x := openThrottled(t)
	account, log := x.jo(t), telemetrytest.NewLog(t)
	x.failLogins(limits.Pair.Failures, home, jo)
	for range 3 {
		x.expect(apierr.TooMany, home, jo, right)
	}
	x.expect(apierr.NoSuchAccount, home, "nobody@example.test", wrong)
	x.expect(nil, "203.0.113.2", jo, right)
	rows := x.failedLogins(t, account)
	if len(rows) != limits.Pair.Failures+1 {
		t.Fatalf("there are %d rows", len(rows))
	}
	until := x.Clock.Now().Add(limits.Pair.Within)
	refused, wrongs := rows[0], 0
	for _, row := range rows {
		if row.LoginLimit != nil {
			refused = row
			continue
		}
		wrongs++
		if row.Code != apierr.WrongPassword.Code || row.Times != 1 || row.Until != nil || row.Address != home || row.DirectoryID != x.people ||
			row.ApplicationID != x.app {
			t.Errorf("a wrong password is %+v", row)
		}
	}
	if wrongs != limits.Pair.Failures || refused.LoginLimit == nil || *refused.LoginLimit != "LOGIN_AND_ADDRESS" || refused.Times != 3 ||
		!refused.Until.Equal(until) || refused.Code != apierr.TooMany.Code {
		t.Errorf("of %d wrong passwords the refusal is %+v", wrongs, refused)
	}
	limited, unknown := 0, 0
	for _, line := range log.Audited(t, "login") {
		switch {
		case line["limit"] != nil:
			limited++
			if line["limit"] != "LOGIN_AND_ADDRESS" || line["until"] != until.UTC().Format(time.RFC3339) || line["account"] != account.String() {
				t.Errorf("the line of a refusal is %v", line)
			}
		case line["code"] == float64(apierr.NoSuchAccount.Code):
			unknown++
			if line["account"] != nil || line["directory"] != nil {
				t.Errorf("the line of an unknown login name is %v", line)
			}
		}
	}
	if limited != 3 || unknown != 1 {
		t.Errorf("%d lines are of refusals, %d of an unknown login name", limited, unknown)
	}

	t.Run("a refusal of a later minute has a row of its own", func(t *testing.T) {
		x.Clock.Move(time.Minute + time.Second)
		x.withTB(t).expect(apierr.TooMany, home, jo, right)
		if again := x.failedLogins(t, account); len(again) != len(rows)+1 || again[0].Times != 1 {
			t.Errorf("there are %d rows", len(again))
		}
	})
	t.Run("for thirty days", func(t *testing.T) {
		x.Clock.Move(30*24*time.Hour - 2*time.Second)
		if err := x.service.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := x.DB.QueryRow(t.Context(), `SELECT count(*) FROM failed_logins`).Scan(&n); err != nil || n != 1 {
			t.Errorf("%d rows are left, %v", n, err)
		}
	})
}

func TestFailedLoginsGoWithTheirAccount(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	account := x.jo(t)
	x.failLogins(2, home, jo)
	if rows := x.failedLogins(t, account); len(rows) != 2 {
		t.Fatalf("there are %d rows", len(rows))
	}
	event := events.AccountDeleted{Tenant: x.tenant, Account: account}
	if err := x.service.AccountDeleted(t.Context(), events.Envelope{ID: x.NewID(), Tenant: x.tenant}, event); err != nil {
		t.Fatal(err)
	}
	if rows := x.failedLogins(t, account); len(rows) != 0 {
		t.Errorf("%d rows are left of an account", len(rows))
	}
	x.failLogins(2, home, jo)
	x.service.RecordPending()
	many := events.AccountsDeleted{Tenant: x.tenant, Accounts: []id.ID{x.NewID(), account}}
	if err := x.service.AccountsDeleted(t.Context(), events.Envelope{ID: x.NewID(), Tenant: x.tenant}, many); err != nil {
		t.Fatal(err)
	}
	if rows := x.failedLogins(t, account); len(rows) != 0 {
		t.Errorf("%d rows are left of one of many accounts", len(rows))
	}
	x.failLogins(2, home, jo)
	x.service.RecordPending()
	gone := events.DirectoryDeleted{Tenant: x.tenant, Directory: x.people}
	if err := x.service.DirectoryDeleted(t.Context(), events.Envelope{ID: x.NewID(), Tenant: x.tenant}, gone); err != nil {
		t.Fatal(err)
	}
	if rows := x.failedLogins(t, account); len(rows) != 0 {
		t.Errorf("%d rows are left of a directory", len(rows))
	}
}

func TestAnAdministratorLiftsTheLockout(t *testing.T) {
	t.Parallel()
	x := openThrottled(t)
	x.expect(nil, "203.0.113.9", jo, right)
	x.failLogins(limits.Pair.Failures, home, jo)
	x.expect(apierr.TooMany, home, jo, right)
	if err := x.service.LiftLockout(t.Context(), directoryapi.Ref{Tenant: x.tenant, ID: x.jo(t)}); err != nil {
		t.Fatal(err)
	}
	x.expect(nil, home, jo, right)
	x.failLogins(limits.Pair.Failures, home, jo)
	x.expect(apierr.TooMany, home, jo, right)
}
