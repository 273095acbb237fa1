package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

// shardedNotes are notes with their lines, names that lead to a tenant, a table that a
// trigger writes, and one that stays in the main shard too.
var shardedNotes = fstest.MapFS{"20260101000001_notes.sql": {Data: []byte(`-- +goose Up
CREATE TABLE owners (tenant_id uuid PRIMARY KEY, key text NOT NULL UNIQUE);
CREATE TABLE notes (tenant_id uuid NOT NULL, id uuid NOT NULL, text text NOT NULL, length int GENERATED ALWAYS AS (length(text)) STORED,
	PRIMARY KEY (tenant_id, id));
CREATE TABLE lines (tenant_id uuid NOT NULL, note uuid NOT NULL, line int NOT NULL, PRIMARY KEY (tenant_id, note, line),
	FOREIGN KEY (tenant_id, note) REFERENCES notes);
CREATE TABLE copies (tenant_id uuid NOT NULL, id uuid NOT NULL, PRIMARY KEY (tenant_id, id));
CREATE TABLE names (name text PRIMARY KEY, tenant_id uuid NOT NULL);
-- +goose StatementBegin
CREATE FUNCTION copy_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO copies (tenant_id, id) VALUES (new.tenant_id, new.id); RETURN NULL; END $$;
-- +goose StatementEnd
CREATE TRIGGER copy_note AFTER INSERT ON notes FOR EACH ROW EXECUTE FUNCTION copy_note();
-- +goose StatementBegin
CREATE FUNCTION report_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	PERFORM pg_notify('notes', coalesce(new.tenant_id, old.tenant_id) || ' ' || coalesce(new.id, old.id)); RETURN NULL; END $$;
-- +goose StatementEnd
CREATE TRIGGER report_note AFTER INSERT OR UPDATE OR DELETE ON notes FOR EACH ROW EXECUTE FUNCTION report_note();`)}}

const (
	lineQuery = `SELECT line FROM lines WHERE tenant_id = $1 AND note = $2 ORDER BY line`
	addLine   = `INSERT INTO lines (tenant_id, note, line) VALUES ($1, $2, $3)`
	noteQuery = `SELECT tenant_id, id, text FROM notes WHERE tenant_id = $1 AND id = $2`
)

type row = note

func shardedConfig(url, shards string) pg.Config {
	return pg.Config{
		URL: secure.Secret(url), Shards: secure.Secret(shards), Schema: "notes", Migrations: []fs.FS{shardedNotes},
		Placements: map[string]pg.TablePlacement{"names": pg.OnMain, "owners": pg.OnBoth, "copies": pg.Derived},
	}
}

// openShards opens a main database and the shard "east", the process of whose address is
// another one as soon as it is opened again.
func openShards(t *testing.T) (db *pg.DB, again func() *pg.DB) {
	t.Helper()
	main, east := pgtest.New(t, nil), pgtest.New(t, nil)
	again = func() *pg.DB {
		t.Helper()
		db, err := pg.Open(t.Context(), shardedConfig(main, "east="+east))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(db.Close)
		worktest.Start(t, db.Listen)
		return db
	}
	return again(), again
}

// newOwner makes a tenant with a note, and returns the context of its requests.
func newOwner(t *testing.T, db *pg.DB) (ctx context.Context, note id.Ref) {
	t.Helper()
	note = id.Ref{Tenant: id.New(time.Now()), ID: id.New(time.Now())}
	ctx = caller.WithTenant(t.Context(), note.Tenant)
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		tx.Queue(`INSERT INTO owners (tenant_id, key) VALUES ($1, $2)`, note.Tenant, note.Tenant.String())
		tx.Queue(`INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, 'new')`, note.Tenant, note.ID)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, note
}

func move(t *testing.T, db *pg.DB, tenant id.ID, to string) pg.Moved {
	t.Helper()
	moved, err := db.Move(t.Context(), tenant, to, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return moved
}

// rowsIn counts the rows of a tenant in each table of a shard.
func rowsIn(t *testing.T, db *pg.DB, shard string, tenant id.ID) string {
	t.Helper()
	ctx := db.Shards(t.Context())[slices.Index(db.ShardNames(), shard)]
	var counts []string
	for _, table := range []string{"owners", "notes", "lines", "copies", "names", "closed_tenants"} {
		n, err := pg.Value[int](ctx, db, `SELECT count(*) FROM `+table+` WHERE tenant_id = $1`, tenant)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			counts = append(counts, fmt.Sprint(table, ":", n))
		}
	}
	return strings.Join(counts, " ")
}

func TestQueriesGoToTheShardOfTheirTenant(t *testing.T) {
	t.Parallel()
	db, again := openShards(t)
	other := again()
	ctx, note := newOwner(t, db)
	_, stays := newOwner(t, db)
	err := db.InTx(ctx, func(tx *pg.Tx) error {
		if n, err := tx.Claim(ctx, `INSERT INTO names (name, tenant_id) VALUES ('one', $1)`, note.Tenant); err != nil || n != 1 {
			t.Errorf("%d rows, %v", n, err)
		}
		tx.Queue(addLine, note.Tenant, note.ID, 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if moved := move(t, db, note.Tenant, "east"); moved.From != pg.Main || moved.To != "east" || moved.Rows != 3 {
		t.Errorf("%+v", moved)
	}
	if got := rowsIn(t, db, "east", note.Tenant); got != "owners:1 notes:1 lines:1 copies:1" {
		t.Errorf("in east: %s", got)
	}
	if has, err := db.HasStaleRows(t.Context(), note.Tenant); err != nil || !has {
		t.Errorf("rows are left: %v, %v", has, err)
	}
	if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
		t.Fatal(err)
	}
	if has, err := db.HasStaleRows(t.Context(), note.Tenant); err != nil || has {
		t.Errorf("rows are left: %v, %v", has, err)
	}
	if got := rowsIn(t, db, pg.Main, note.Tenant); got != "owners:1 names:1 closed_tenants:1" {
		t.Errorf("in main: %s", got)
	}
	if got := rowsIn(t, db, pg.Main, stays.Tenant); got != "owners:1 notes:1 copies:1" {
		t.Errorf("of a tenant that was not moved: %s", got)
	}

	for name, process := range map[string]*pg.DB{"the process that moved it": db, "another": other} {
		if lines, err := pg.Values[int](ctx, process, lineQuery, note.Tenant, note.ID); err != nil || !slices.Equal(lines, []int{1}) {
			t.Errorf("%s reads %v, %v", name, lines, err)
		}
	}
	err = other.InTx(ctx, func(tx *pg.Tx) error {
		if tx.Shard() != "east" {
			t.Errorf("the transaction is in %s", tx.Shard())
		}
		for range 2 { // as when the transaction is repeated
			n, err := tx.Claim(ctx, `INSERT INTO names AS n (name, tenant_id) VALUES ('two', $1)
				ON CONFLICT (name) DO UPDATE SET name = excluded.name WHERE n.tenant_id = excluded.tenant_id`, note.Tenant)
			if err != nil || n != 1 {
				t.Errorf("%d rows, %v", n, err)
			}
		}
		errRefused := errors.New("refused")
		for name, want := range map[string]error{"three": errRefused, "two": nil} {
			if err := tx.ClaimTx(ctx, func(main *pg.Tx) error {
				if main.Shard() != pg.Main {
					t.Errorf("names are claimed in %s", main.Shard())
				}
				_, err := pg.Exec(ctx, main, `INSERT INTO names (name, tenant_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, note.Tenant)
				return errors.Join(err, want)
			}); !errors.Is(err, want) {
				t.Errorf("the claim of %s: %v", name, err)
			}
		}
		tx.Release(`DELETE FROM names WHERE name = 'one' AND tenant_id = $1`, note.Tenant)
		return pg.MustChange(ctx, tx, `UPDATE notes SET text = 'changed' WHERE tenant_id = $1 AND id = $2`, note.Tenant, note.ID)
	})
	if err != nil {
		t.Fatal(err)
	}
	if names, err := pg.Values[string](db.OnMain(ctx), db, `SELECT name FROM names WHERE tenant_id = $1`, note.Tenant); err != nil ||
		!slices.Equal(names, []string{"two"}) {
		t.Errorf("names %v, %v", names, err)
	}
	if moved := move(t, db, note.Tenant, pg.Main); moved.From != "east" || moved.Rows != 3 {
		t.Errorf("%+v", moved)
	}
	if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
		t.Fatal(err)
	}
	if got := rowsIn(t, db, "east", note.Tenant); got != "closed_tenants:1" {
		t.Errorf("in east: %s", got)
	}
	if got, err := pg.One[row](ctx, other, noteQuery, note.Tenant, note.ID); err != nil || got.Text != "changed" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Two processes write and read while the tenant is moved back and forth. No write is lost or
// refused, and what one process has written the other reads.
func TestATenantIsMovedWhileItIsUsed(t *testing.T) {
	t.Parallel()
	db, again := openShards(t)
	processes := []*pg.DB{db, again()}
	ctx, note := newOwner(t, db)
	done := make(chan struct{})
	var users sync.WaitGroup
	written := make([]int, 4)
	for user := range written {
		users.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				line := n*len(written) + user
				writes, reads := processes[n%2], processes[(n+1)%2]
				if err := writes.InTx(ctx, func(tx *pg.Tx) error {
					tx.Queue(addLine, note.Tenant, note.ID, line)
					return nil
				}); err != nil {
					t.Errorf("line %d: %v", line, err)
					return
				}
				written[user]++
				lines, err := pg.Values[int](ctx, reads, lineQuery, note.Tenant, note.ID)
				if err != nil || !slices.Contains(lines, line) {
					t.Errorf("the line %d is not among %d that the other process reads, %v", line, len(lines), err)
					return
				}
			}
		})
	}
	for range 3 {
		for _, to := range []string{"east", pg.Main} {
			move(t, db, note.Tenant, to)
			if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	users.Wait()
	total := 0
	for _, n := range written {
		total += n
	}
	lines, err := pg.Values[int](ctx, db, lineQuery, note.Tenant, note.ID)
	if err != nil || len(lines) != total || total == 0 {
		t.Errorf("%d of %d lines, %v", len(lines), total, err)
	}
}

// A move is cut short before each of its steps. Either the tenant can be written, or the
// same call, or the one back, makes it so.
func TestAMoveThatIsCutShortCanBeRepeated(t *testing.T) {
	t.Parallel()
	db, _ := openShards(t)
	ctx, note := newOwner(t, db)
	write := func() error {
		bounded, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		return db.InTx(bounded, func(tx *pg.Tx) error {
			return pg.MustChange(bounded, tx, `UPDATE notes SET text = text || '.' WHERE tenant_id = $1 AND id = $2`, note.Tenant, note.ID)
		})
	}
	writes := 0
	for _, next := range []string{"east", pg.Main} {
		for cut := 0; ; cut++ {
			stopped, stop := context.WithCancel(t.Context())
			step := 0
			_, err := db.Move(stopped, note.Tenant, "east", func(string) {
				if step++; step > cut {
					stop()
				}
			})
			stop()
			if err == nil {
				break // there are no more steps
			}
			if err := write(); err != nil {
				t.Errorf("cut before step %d the tenant cannot be written: %v", cut+1, err)
			} else {
				writes++
			}
			move(t, db, note.Tenant, next)
			if err := write(); err != nil {
				t.Errorf("cut before step %d and repeated to %s: %v", cut+1, next, err)
			} else {
				writes++
			}
			move(t, db, note.Tenant, pg.Main)
			if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
				t.Error(err)
			}
		}
		move(t, db, note.Tenant, pg.Main)
	}
	got, err := pg.One[row](ctx, db, noteQuery, note.Tenant, note.ID)
	if err != nil || got.Text != "new"+strings.Repeat(".", writes) || writes < 8 {
		t.Errorf("%q after %d writes, %v", got.Text, writes, err)
	}
}

// What a killed process leaves closed is opened by a call to the shard that has it.
func TestATenantThatWasLeftClosedIsOpened(t *testing.T) {
	t.Parallel()
	db, _ := openShards(t)
	ctx, note := newOwner(t, db)
	if _, err := pg.Exec(db.OnMain(t.Context()), db, `SELECT close_tenant($1)`, note.Tenant); err != nil {
		t.Fatal(err)
	}
	write := func(ctx context.Context) error {
		return db.InTx(ctx, func(tx *pg.Tx) error {
			tx.Queue(addLine, note.Tenant, note.ID, 1)
			return nil
		})
	}
	bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if err := write(bounded); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a closed tenant is written: %v", err)
	}
	worker := db.Shards(t.Context())[0]
	err := db.InTx(worker, func(tx *pg.Tx) error { return tx.PreventMove(worker, note.Tenant) })
	if !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a worker enters a closed tenant: %v", err)
	}
	move(t, db, note.Tenant, pg.Main)
	if err := write(ctx); err != nil {
		t.Error(err)
	}
}

// A transaction of a worker that has entered the tenant keeps it from being moved.
func TestAMoveWaitsForWhoHasEntered(t *testing.T) {
	t.Parallel()
	db, _ := openShards(t)
	_, note := newOwner(t, db)
	worker := db.Shards(t.Context())[0]
	moved := make(chan error, 1)
	err := db.InTx(worker, func(tx *pg.Tx) error {
		if err := tx.PreventMove(worker, note.Tenant); err != nil {
			return err
		}
		go func() {
			_, err := db.Move(t.Context(), note.Tenant, "east", func(string) {})
			moved <- err
		}()
		worktest.Await(t, "the move to wait", func() bool {
			n, err := pg.Value[int](worker, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
			return err == nil && n == 1
		})
		if _, err := db.Move(t.Context(), note.Tenant, "east", func(string) {}); !errors.Is(err, pg.ErrMoving) {
			t.Errorf("a second move of the tenant returns %v", err)
		}
		_, err := pg.Exec(worker, tx, addLine, note.Tenant, note.ID, 7)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	if got := rowsIn(t, db, "east", note.Tenant); got != "owners:1 notes:1 lines:1 copies:1" {
		t.Errorf("in east: %s", got)
	}
}

// A process that was stopped for long deletes nothing of a tenant that another has moved
// back meanwhile, or is moving back.
func TestALateDeletionFindsNothing(t *testing.T) {
	t.Parallel()
	db, _ := openShards(t)
	_, note := newOwner(t, db)
	closed := func() time.Time {
		t.Helper()
		at, err := pg.Value[time.Time](db.OnMain(t.Context()), db, `SELECT closed_at FROM closed_tenants WHERE tenant_id = $1`, note.Tenant)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	move(t, db, note.Tenant, "east")
	late := closed()
	move(t, db, note.Tenant, pg.Main)
	remains := func(when string) {
		t.Helper()
		if err := db.DeleteIn(t.Context(), pg.Main, "notes", note.Tenant, late); err != nil {
			t.Fatal(err)
		}
		if got := rowsIn(t, db, pg.Main, note.Tenant); !strings.Contains(got, "notes:1") {
			t.Errorf("%s: %s", when, got)
		}
	}
	remains("in the shard again")
	if _, err := pg.Exec(db.OnMain(t.Context()), db, `SELECT close_tenant($1)`, note.Tenant); err != nil {
		t.Fatal(err)
	}
	remains("closed again")
	if err := db.DeleteIn(t.Context(), pg.Main, "notes", note.Tenant, closed()); err != nil {
		t.Fatal(err)
	}
	if got := rowsIn(t, db, pg.Main, note.Tenant); strings.Contains(got, "notes") {
		t.Errorf("in time: %s", got)
	}
}

func TestCachesFollowATenantToItsShard(t *testing.T) {
	t.Parallel()
	main, east := pgtest.New(t, nil), pgtest.New(t, nil)
	db, err := pg.Open(t.Context(), shardedConfig(main, "east="+east))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	cache := pg.NewCacheWithin[row](db, pg.FreshBounds(100), "notes", "notes", noteQuery, nil)
	worktest.Start(t, db.Listen)
	ctx, note := newOwner(t, db)
	text := func() string {
		t.Helper()
		got, err := cache.One(t.Context(), note) // the context of no tenant
		if err != nil {
			t.Fatal(err)
		}
		return got.Text
	}
	for n, to := range []string{"east", pg.Main, "east"} {
		worktest.Await(t, "the cache to hold the note", func() bool {
			_ = text()
			_, held := cache.Peek(note)
			return held
		})
		move(t, db, note.Tenant, to)
		want := fmt.Sprint("text ", n)
		if err := db.InTx(ctx, func(tx *pg.Tx) error {
			return pg.MustChange(ctx, tx, `UPDATE notes SET text = $3 WHERE tenant_id = $1 AND id = $2`, note.Tenant, note.ID, want)
		}); err != nil {
			t.Fatal(err)
		}
		worktest.Await(t, "the change to show", func() bool { return text() == want })
		if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
			t.Fatal(err)
		}
	}
}

func TestATenantIsFoundInAnyShard(t *testing.T) {
	t.Parallel()
	db, _ := openShards(t)
	ctx, note := newOwner(t, db)
	find := func(note id.ID) (id.ID, error) {
		return pg.InAnyShard(ctx, db, func(ctx context.Context) (id.ID, error) {
			return pg.Value[id.ID](ctx, db, `SELECT tenant_id FROM notes WHERE id = $1`, note)
		})
	}
	for _, shard := range []string{pg.Main, "east"} {
		move(t, db, note.Tenant, shard)
		if err := db.DeleteStaleRows(t.Context(), note.Tenant); err != nil {
			t.Fatal(err)
		}
		if got, err := find(note.ID); err != nil || got != note.Tenant {
			t.Errorf("in %s: %v, %v", shard, got, err)
		}
	}
	if _, err := find(note.Tenant); !errors.Is(err, apierr.NotFound) {
		t.Errorf("what is nowhere: %v", err)
	}
}

func TestShardsThatAreConfiguredWrong(t *testing.T) {
	t.Parallel()
	main, east := pgtest.New(t, nil), pgtest.New(t, nil)
	try := func(url, shards string) error {
		db, err := pg.Open(t.Context(), shardedConfig(url, shards))
		if err == nil {
			db.Close()
		}
		return err
	}
	for shards, want := range map[string]string{
		"east":                           "name=postgres://",
		"East=" + east:                   "name=postgres://",
		"main=" + east:                   "twice",
		"east=" + east + " east=" + east: "twice",
		"east=postgres://127.0.0.1:1/x":  `"east"`,
		"east=" + main:                   `"east" that was used as "main"`,
	} {
		if err := try(main, shards); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s returns %v; want %s", shards, err, want)
		}
	}
	if err := try(main, " east="+east+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := try(main, "west="+east); err == nil || !strings.Contains(err.Error(), `"west" that was used as "east"`) {
		t.Errorf("a database with another name returns %v", err)
	}
	db, err := pg.Open(t.Context(), shardedConfig(main, "east="+east))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Move(t.Context(), id.New(time.Now()), "west", func(string) {}); !errors.Is(err, pg.ErrNoShard) {
		t.Errorf("a move to nowhere returns %v", err)
	}
	move(t, db, id.New(time.Now()), "east")
	if err := try(main, ""); err == nil || !strings.Contains(err.Error(), `lacks the database "east"`) {
		t.Errorf("without a database that has tenants: %v", err)
	}
}

// A shard that cannot be reached is the trouble of its own tenants alone.
func TestAShardThatIsAway(t *testing.T) {
	t.Parallel()
	main, east := pgtest.New(t, nil), pgtest.New(t, nil)
	db, err := pg.Open(t.Context(), shardedConfig(main, "east="+east))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	here, note := newOwner(t, db)
	there, moved := newOwner(t, db)
	move(t, db, moved.Tenant, "east")
	end := pgtest.Outage(t, east)
	if _, err := pg.One[row](there, db, noteQuery, moved.Tenant, moved.ID); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a tenant of the shard: %v", err)
	}
	if _, err := pg.One[row](here, db, noteQuery, note.Tenant, note.ID); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the process is not ready: %v", err)
	}
	end()
	if _, err := pg.One[row](there, db, noteQuery, moved.Tenant, moved.ID); err != nil {
		t.Error(err)
	}
}
