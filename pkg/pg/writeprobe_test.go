package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
)

// administer returns a function that runs statements as the superuser of the test's server.
func administer(t *testing.T, url string) func(statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE`); err != nil {
		t.Fatal(err)
	}
	return func(statement string) {
		t.Helper()
		statement = strings.ReplaceAll(statement, "DATABASE own", "DATABASE "+conn.Config().Database)
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// failingWrites makes the writes of the probe fail with a SQLSTATE, as a full disk or a missing library does.
func failingWrites(code string) string {
	return fmt.Sprintf(`CREATE OR REPLACE FUNCTION notes.probe_write(writer text) RETURNS void LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'it does not work' USING ERRCODE = '%s'; END $$`, code)
}

const readOnly, writable = `ALTER DATABASE own SET default_transaction_read_only = on`, `ALTER DATABASE own RESET default_transaction_read_only`

func TestAProcessIsReadyAfterItsFirstWrite(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	change := administer(t, url)
	change(readOnly)
	probe := pg.NewWriteProbe(db)
	if err := probe.Check(t.Context()); err == nil || errors.Is(err, pg.ErrOnlyReads) {
		t.Errorf("before the first write the check says %v", err)
	}
	if err := probe.Try(t.Context()); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a write to a read-only database returns %v", err)
	}
	if err := probe.Check(t.Context()); err == nil || errors.Is(err, pg.ErrOnlyReads) || !strings.Contains(err.Error(), "(25006)") {
		t.Errorf("after a first write that failed the check says %v", err)
	}
	change(writable)
	if err := errors.Join(probe.Try(t.Context()), probe.Check(t.Context())); err != nil {
		t.Error("after a write:", err)
	}
}

// Tokens that a process with another clock issues are refused elsewhere.
func TestAWriteComparesTheClocks(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	for _, by := range []time.Duration{0, time.Minute, -time.Minute} {
		difference, err := pg.NewWriteProbe(db).Clock(t.Context(), func() time.Time { return time.Now().Add(by) })
		if err != nil || (difference-by.Abs()).Abs() > 10*time.Second {
			t.Errorf("with a clock that is %s ahead the difference is %s, %v", by, difference, err)
		}
	}
}

func TestAProcessWhoseLaterWritesFailIsDegraded(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	change := administer(t, url)
	probe := pg.NewWriteProbe(db)
	if err := errors.Join(probe.Try(t.Context()), probe.Check(t.Context())); err != nil {
		t.Fatal(err)
	}
	degraded := func(code string) {
		t.Helper()
		if err := probe.Try(t.Context()); err == nil {
			t.Errorf("%s: the write succeeds", code)
		}
		err := probe.Check(t.Context())
		if !errors.Is(err, pg.ErrOnlyReads) || !strings.HasPrefix(pg.Reason(err), "notes: ") || !strings.HasSuffix(pg.Reason(err), " ("+code+")") {
			t.Errorf("%s: the check says %v", code, err)
		}
	}
	change(readOnly)
	degraded("25006")
	change(writable)
	for _, code := range []string{"53100", "58P01"} {
		change(failingWrites(code))
		degraded(code)
	}
	end := pgtest.Outage(t, url)
	if err := probe.Check(t.Context()); err == nil || errors.Is(err, pg.ErrOnlyReads) {
		t.Errorf("without the database the check says %v", err)
	}
	end()
}

func TestTheProbeKeepsARowForEachProcess(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	for _, writer := range []string{"a", "b", "a"} {
		if err := db.ProbeWrite(t.Context(), writer); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pg.Exec(t.Context(), db, `UPDATE write_probes SET written_at = written_at - interval '25 hours' WHERE process = 'b'`); err != nil {
		t.Fatal(err)
	}
	if n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM write_probes`); err != nil || n != 2 {
		t.Errorf("two processes have %d rows, %v", n, err)
	}
	if err := db.ProbeWrite(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if left, err := pg.Values[string](t.Context(), db, `SELECT process FROM write_probes`); err != nil || len(left) != 1 || left[0] != "a" {
		t.Errorf("after a day without a write of b the rows are those of %v, %v", left, err)
	}
}

func TestARequestIsToldWhyTheDatabaseFails(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	change := administer(t, url)
	for code, text := range map[string]string{
		"25006": "read-only (SQLSTATE 25006)", "53100": "no space left on its disk (SQLSTATE 53100)",
		"58P01": "lacks one of its files, as after an update of its package (SQLSTATE 58P01)",
		"53300": "(SQLSTATE 53300)", "57P03": "(SQLSTATE 57P03)",
	} {
		change(failingWrites(code))
		_, err := pg.Exec(t.Context(), db, `SELECT notes.probe_write('x')`)
		known := apierr.From(err)
		if !errors.Is(err, apierr.Unavailable) || !strings.Contains(known.Reason, text) || known.RetryAfter == 0 {
			t.Errorf("%s: %q, Retry-After %s, %v", code, known.Reason, known.RetryAfter, err)
		}
	}
}

func TestWhatWaitingDoesNotMend(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	end := pgtest.Outage(t, url)
	if _, err := pg.Open(t.Context(), config(url)); err == nil || !pg.MayRecover(err) {
		t.Errorf("an outage: %v", err)
	}
	end()
	missing := config(strings.Replace(url, db.Config().ConnConfig.Database, "nothing", 1))
	if _, err := pg.Open(t.Context(), missing); err == nil || pg.MayRecover(err) {
		t.Errorf("no such database: %v", err)
	}
	login, address, administrator := newLogin(t, url)
	administrator(t.Context(), `REVOKE doorward_notes FROM `+login)
	if _, err := pg.Open(t.Context(), config(address)); err == nil || pg.MayRecover(err) {
		t.Errorf("no privilege: %v", err)
	}
}

func TestASchemaThatLacksNothingNeedsNeitherALockNorAWrite(t *testing.T) {
	t.Parallel()
	_, url := open(t)
	change := administer(t, url)
	change(fmt.Sprintf(`SELECT pg_advisory_lock(%d)`, pg.MigrationLock("notes")))
	change(readOnly)
	db, err := pg.Open(t.Context(), config(url))
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

func TestASchemaThatIsNewer(t *testing.T) {
	t.Parallel()
	_, url := open(t)
	change := administer(t, url)
	change(`INSERT INTO notes.migrations (version_id, is_applied, oldest_release) VALUES (20990101000001, true, NULL)`)
	_, err := pg.Open(t.Context(), config(url))
	if err == nil || pg.MayRecover(err) || !strings.Contains(err.Error(), "20990101000001") {
		t.Errorf("a newer schema on which no earlier release may run: %v", err)
	}
	change(`UPDATE notes.migrations SET oldest_release = '0.1.0' WHERE version_id = 20990101000001`)
	db, err := pg.Open(t.Context(), config(url))
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
	state, err := pg.ReadMigrations(t.Context(), config(url))
	if err != nil || len(state.Unknown) != 1 || state.Unknown[0] != "20990101000001" || state.OldestRelease != "0.1.0" || len(state.Pending) > 0 {
		t.Errorf("the state is %+v, %v", state, err)
	}
	for _, c := range []struct {
		release, oldest string
		may             bool
	}{
		{"1.2.0", "", false}, {"1.2.0", "1.2.0", true}, {"1.2.0", "1.10.0", false}, {"v1.10.1", "1.9.9", true},
		{"1.2.0-dev+0123456789ab", "1.2.0", true}, {"1.1.9-dev+0123456789ab", "1.2.0", false}, {"0123456789ab", "1.2.0", true}, {"unknown", "", false},
	} {
		if pg.MayRun(c.release, c.oldest) != c.may {
			t.Errorf("release %q on a schema for releases from %q on: %v", c.release, c.oldest, !c.may)
		}
	}
}

func TestAMigrationLeavesTheOldestReleaseThatMayRunOnIt(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM migrations WHERE version_id > 0 AND oldest_release IS NULL`)
	if err != nil || n > 0 {
		t.Errorf("%d migrations do not say which release may run on them, %v", n, err)
	}
	if done, err := pg.Migrate(t.Context(), config(url)); err != nil || done != 0 {
		t.Errorf("%d migrations were done again, %v", done, err)
	}
	fresh := config(url)
	fresh.Schema = "fresh"
	state, err := pg.ReadMigrations(t.Context(), fresh)
	if err != nil || len(state.Pending) < 2 {
		t.Errorf("a schema that is not there lacks %v, %v", state.Pending, err)
	}
	if done, err := pg.Migrate(t.Context(), fresh); err != nil || done != len(state.Pending) {
		t.Errorf("%d migrations were done, not %d, %v", done, len(state.Pending), err)
	}
}
