package pg_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	neturl "net/url"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var notes = fstest.MapFS{"20260101000001_notes.sql": {Data: []byte(`-- +goose Up
CREATE TABLE notes (tenant_id uuid NOT NULL, id uuid NOT NULL, text text NOT NULL, PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, text));`)}}

type note struct {
	TenantID id.ID
	ID       id.ID
	Text     string
}

func config(url string) pg.Config {
	return pg.Config{URL: secure.Secret(url), Schema: "notes", Migrations: []fs.FS{notes}}
}

func open(t *testing.T) (*pg.DB, string) {
	t.Helper()
	url := pgtest.New(t, nil)
	db, err := pg.Open(t.Context(), config(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, url
}

func TestRowsAreReadByTheNamesOfTheirColumns(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	want := note{id.New(time.Now()), id.New(time.Now()), "hello"}
	if _, err := pg.Exec(t.Context(), db, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, $3)`, want.TenantID, want.ID, want.Text); err != nil {
		t.Fatal(err)
	}
	got, err := pg.One[note](t.Context(), db, `SELECT text, id, tenant_id FROM notes WHERE id = $1`, want.ID)
	if err != nil || got != want {
		t.Fatalf("One = %+v, %v; want %+v", got, err, want)
	}
	if all, err := pg.All[note](t.Context(), db, `SELECT text, id, tenant_id FROM notes`); err != nil || len(all) != 1 || all[0] != want {
		t.Fatalf("All = %+v, %v", all, err)
	}
}

func TestTheQueriesOfABatchAreReadTogether(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	tenant := id.New(time.Now())
	for _, text := range []string{"one", "two"} {
		if _, err := pg.Exec(t.Context(), db, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, $3)`, tenant, id.New(time.Now()), text); err != nil {
			t.Fatal(err)
		}
	}
	const query = `SELECT text, id, tenant_id FROM notes WHERE text = $1`
	var batch pg.Batch
	var one, none, two []note
	pg.QueueAll(&batch, &one, query, "one")
	pg.QueueAll(&batch, &none, query, "none")
	pg.QueueAll(&batch, &two, query, "two")
	if err := pg.ExecBatch(t.Context(), db, &batch); err != nil {
		t.Fatal(err)
	}
	if len(one) != 1 || one[0].Text != "one" || len(none) != 0 || len(two) != 1 || two[0].Text != "two" {
		t.Errorf("the batch returns %v, %v and %v", one, none, two)
	}
	batch = pg.Batch{}
	pg.QueueAll(&batch, &one, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, 'one') RETURNING text, id, tenant_id`, tenant, id.New(time.Now()))
	if err := pg.ExecBatch(t.Context(), db, &batch); !errors.Is(err, apierr.Exists) {
		t.Errorf("the batch returned %v", err)
	}
}

func TestErrorsAreThoseOfTheCatalogue(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	ctx := t.Context()
	if _, err := pg.One[note](ctx, db, `SELECT tenant_id, id, text FROM notes`); !errors.Is(err, apierr.NotFound) {
		t.Errorf("no row is %v", err)
	}
	if err := pg.MustChange(ctx, db, `DELETE FROM notes`); !errors.Is(err, apierr.NotFound) {
		t.Errorf("no change is %v", err)
	}
	same := id.New(time.Unix(1, 0))
	insert := func() error {
		_, err := pg.Exec(ctx, db, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $1, 'a')`, same)
		return err
	}
	if err := insert(); err != nil {
		t.Fatal(err)
	}
	if err := insert(); !errors.Is(err, apierr.Exists) {
		t.Errorf("a taken value is %v", err)
	}
	for code, what := range map[string]string{"53100": "a full disk", "53200": "no memory", "53300": "too many connections", "25006": "a standby",
		"57014": "a statement timeout", "55P03": "a lock timeout", "40001": "a serialization failure", "40P01": "a deadlock"} {
		raise := `DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '` + code + `'; END $$`
		if _, err := pg.Exec(ctx, db, raise); !errors.Is(err, apierr.Unavailable) {
			t.Errorf("%s is %v", what, err)
		}
	}
	hangs := `SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(5)`
	if _, err := pg.Exec(ctx, db, hangs); !errors.Is(err, apierr.Unavailable) || apierr.From(err).RetryAfter == 0 {
		t.Errorf("a statement that hangs is %v", err)
	}
	back := pgtest.Outage(t, url)
	if _, err := pg.Value[int](ctx, db, `SELECT 1`); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("an outage is %v", err)
	}
	back()
	if n, err := pg.Value[int](ctx, db, `SELECT 1`); err != nil || n != 1 {
		t.Errorf("after the outage: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if _, err := pg.Value[string](short, db, `SELECT pg_sleep(5)::text`); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a query that takes too long is %v", err)
	}
}

func TestAServiceOwnsItsSchemaUnderItsRole(t *testing.T) {
	db, url := open(t)
	who, err := pg.Value[string](t.Context(), db, `SELECT current_user || '/' || current_schema()`)
	if err != nil || who != "doorward_notes/notes" {
		t.Fatalf("a query runs as %q, %v", who, err)
	}
	other, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := pg.Exec(t.Context(), other, `SELECT 1 FROM notes.notes`); err == nil {
		t.Fatal("another service reads the schema")
	}
}

// newLogin makes a login that is a member of the role of notes, and returns its name, its
// address, and what runs statements as the administrator.
func newLogin(t *testing.T, url string) (login, address string, administrator func(ctx context.Context, statement string)) {
	t.Helper()
	login = "login_" + strings.ToLower(rand.Text())
	administrator = func(ctx context.Context, statement string) {
		t.Helper()
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			_, err = conn.Exec(ctx, statement)
			err = errors.Join(err, conn.Close(ctx))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	administrator(t.Context(), `CREATE ROLE `+login+` LOGIN PASSWORD 'login' IN ROLE doorward_notes`)
	t.Cleanup(func() { administrator(context.WithoutCancel(t.Context()), `DROP ROLE `+login) })
	parsed, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = neturl.UserPassword(login, "login")
	return login, parsed.String(), administrator
}

// Once the schema is there a process needs a login that may neither make schemas nor
// roles, and that sees no other service's.
func TestALoginThatIsOnlyAMemberOfTheRoleIsEnough(t *testing.T) {
	_, url := open(t)
	other, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(url), Schema: "other"})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	login, address, _ := newLogin(t, url)
	limited := config(address)
	member, err := pg.Open(t.Context(), limited)
	if err != nil {
		t.Fatal(err)
	}
	defer member.Close()
	who, err := pg.Value[string](t.Context(), member, `SELECT session_user || ' as ' || current_user`)
	if err != nil || who != login+" as doorward_notes" {
		t.Errorf("a query runs as %q, %v", who, err)
	}
	limited.Schema = "other"
	if db, err := pg.Open(t.Context(), limited); err == nil {
		db.Close()
		t.Error("the limited login opened another service's schema")
	}
}

func TestAProcessIsReadyWhilePostgreSQLAnswers(t *testing.T) {
	_, url := open(t)
	login, address, administrator := newLogin(t, url)
	db, err := pg.Open(t.Context(), config(address))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ready := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // as /readyz has
		defer cancel()
		return db.Ping(ctx)
	}
	if err := ready(); err != nil {
		t.Error("with a pool that is not used:", err)
	}
	for range db.Stat().MaxConns() {
		conn, err := db.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
	}
	if err := ready(); err != nil {
		t.Error("with a pool that is used up:", err)
	}
	administrator(t.Context(), fmt.Sprintf(`ALTER ROLE %s CONNECTION LIMIT %d`, login, db.Stat().MaxConns()))
	if err := ready(); err != nil {
		t.Error("with connections of PostgreSQL that are used up:", err)
	}
	administrator(t.Context(), `ALTER ROLE `+login+` CONNECTION LIMIT -1`)
	defer pgtest.Outage(t, url)()
	if err := ready(); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("without the database, and with a pool that is used up: %v", err)
	}
}

func TestADatabaseIsCheckedForWrites(t *testing.T) {
	db, url := open(t)
	if err := db.CheckWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	spilled := func() int64 {
		t.Helper()
		n, err := pg.Value[int64](t.Context(), db, `SELECT temp_bytes FROM pg_stat_database WHERE datname = current_database()`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for spilled() < 500_000 { // statistics are late
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	// As with a full disk, a file cannot grow.
	if _, err := conn.Exec(t.Context(), `ALTER DATABASE `+conn.Config().Database+` SET temp_file_limit = '100kB'`); err != nil {
		t.Fatal(err)
	}
	full, err := pg.Open(t.Context(), config(url))
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := full.CheckWrites(t.Context()); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("without space the check says %v", err)
	}
}

func TestReplicasThatStartTogetherMigrateOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, nil)
	var group sync.WaitGroup
	errs := make(chan error, 8)
	for range cap(errs) {
		group.Go(func() {
			db, err := pg.Open(t.Context(), config(url))
			if err == nil {
				db.Close()
			}
			errs <- err
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

// A migration that wants a table which a long transaction reads must not stop
// the table's other readers behind it.
func TestAMigrationThatWaitsForALockLetsReadersPass(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	ctx := t.Context()
	long, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = long.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := long.Exec(ctx, `SELECT 1 FROM notes`); err != nil {
		t.Fatal(err)
	}
	next := config(url)
	next.Migrations = append(next.Migrations, fstest.MapFS{"20260101000002_more.sql": {Data: []byte("-- +goose Up\nALTER TABLE notes ADD COLUMN more text;")}})
	migrated := make(chan error, 1)
	go func() {
		newer, err := pg.Open(ctx, next)
		if err == nil {
			newer.Close()
		}
		migrated <- err
	}()
	const waits = `SELECT count(*) FROM pg_locks WHERE relation = 'notes.notes'::regclass AND NOT granted`
	for stopped := false; !stopped; {
		n, err := pg.Value[int](ctx, db, waits)
		if err != nil {
			t.Fatal(err)
		}
		stopped = n > 0
	}
	if _, err := pg.Value[int](ctx, db, `SELECT count(*) FROM notes`); err != nil {
		t.Errorf("a reader beside the migration: %v", err)
	}
	if err := long.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Fatalf("the migration after the long transaction: %v", err)
	}
	if _, err := pg.Value[int](ctx, db, `SELECT count(more) FROM notes`); err != nil {
		t.Error(err)
	}
}

func TestATransactionThatLostIsRunAgain(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ctx := t.Context()
	tenant := id.New(time.Now())
	if _, err := pg.Exec(ctx, db, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $1, '0')`, tenant); err != nil {
		t.Fatal(err)
	}
	const writers = 4
	var group sync.WaitGroup
	for range writers {
		group.Go(func() {
			err := db.InTx(ctx, func(tx *pg.Tx) error {
				if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`); err != nil {
					return err
				}
				_, err := pg.Exec(ctx, tx, `UPDATE notes SET text = (text::int + 1)::text WHERE tenant_id = $1`, tenant)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n, err := pg.Value[string](ctx, db, `SELECT text FROM notes WHERE tenant_id = $1`, tenant); err != nil || n != "4" {
		t.Fatalf("the row counts %s, %v; want 4", n, err)
	}
}
