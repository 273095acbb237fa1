package cache_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
)

// readNote reads a note once nobody holds the advisory lock.
const readNote = `WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(1))
	SELECT n.tenant_id, n.id, n.text FROM notes n, lock WHERE n.tenant_id = $1 AND n.id = $2`

// insertNotes adds notes of one tenant, whose texts are their numbers.
func insertNotes(t *testing.T, db *pg.DB, count int) (refs []id.Ref) {
	t.Helper()
	tenant := id.New(time.Now())
	for n := range count {
		ref := id.Ref{Tenant: tenant, ID: id.New(time.Now())}
		if _, err := pg.Exec(t.Context(), db, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, $3)`, tenant, ref.ID, strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, ref)
	}
	return refs
}

// lockReads keeps readNote waiting until release.
func lockReads(t *testing.T, db *pg.DB) (release func()) {
	t.Helper()
	conn, err := db.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_lock(1)`); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `SELECT pg_advisory_unlock(1)`); err != nil {
			t.Error(err)
		}
	}
}

// awaitReads returns when a number of reads wait for the lock.
func awaitReads(t *testing.T, db *pg.DB, count int) {
	t.Helper()
	worktest.Await(t, "the reads to wait", func() bool {
		n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
		if err != nil {
			t.Fatal(err)
		}
		return n == count
	})
}

// newNoteCache makes a cache of notes. Each change of a note notifies of it, as another process would.
func newNoteCache(t *testing.T, db *pg.DB) *pgcache.Cache[note] {
	t.Helper()
	for _, statement := range []string{
		`CREATE FUNCTION notify_notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			PERFORM pg_notify('notes', new.tenant_id || ' ' || new.id); RETURN NULL; END $$`,
		`CREATE TRIGGER notes AFTER INSERT OR UPDATE ON notes FOR EACH ROW EXECUTE FUNCTION notify_notes()`,
	} {
		if _, err := pg.Exec(t.Context(), db, statement); err != nil {
			t.Fatal(err)
		}
	}
	return pgcache.New[note](db, "notes", "notes", readNote, nil)
}

// text is what the cache returns of a note.
func text(t *testing.T, cache *pgcache.Cache[note], ref id.Ref) string {
	t.Helper()
	got, err := cache.All(t.Context(), ref)
	if err != nil || len(got) != 1 {
		t.Fatalf("the cache returned %v, %v; want one row", got, err)
	}
	return got[0].Text
}

func isHeld(cache *pgcache.Cache[note], ref id.Ref) bool {
	_, held := cache.Peek(ref)
	return held
}

// awaitHeld returns when the cache holds a note.
func awaitHeld(t *testing.T, cache *pgcache.Cache[note], ref id.Ref) {
	t.Helper()
	worktest.Await(t, "the cache to hold the note", func() bool {
		_ = text(t, cache, ref)
		return isHeld(cache, ref)
	})
}

func change(t *testing.T, db *pg.DB, ref id.Ref, to string) {
	t.Helper()
	if err := pg.MustChange(t.Context(), db, `UPDATE notes SET text = $3 WHERE tenant_id = $1 AND id = $2`, ref.Tenant, ref.ID, to); err != nil {
		t.Fatal(err)
	}
}

func TestACacheIsToldOfWhatOthersChange(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	refs := insertNotes(t, db, 2)
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	awaitHeld(t, cache, refs[0])
	awaitHeld(t, cache, refs[1])
	for n := range 20 {
		to := string(rune('a' + n))
		change(t, db, refs[0], to)
		worktest.Await(t, "the change to show", func() bool { return text(t, cache, refs[0]) == to })
		if !isHeld(cache, refs[1]) {
			t.Fatal("the change of a note removed another")
		}
	}
}

func TestWhatWasReadIsReturnedUntilItChanges(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ref := insertNotes(t, db, 1)[0]
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	for n := range 20 {
		to := string(rune('a' + n))
		worktest.Await(t, "the note to be kept", func() bool {
			if _, err := cache.Read(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			return isHeld(cache, ref)
		})
		change(t, db, ref, to)
		worktest.Await(t, "the change to be seen", func() bool { return !isHeld(cache, ref) })
		if got, err := cache.Read(t.Context(), ref); err != nil || got.Text != to {
			t.Errorf("Read returns %v, %v; want %q", got, err, to)
		}
	}
}

// A row that has to be recent is served while PostgreSQL shows that it has nothing left
// to report, and read again when the connection that reports hangs.
func TestARowIsReadAgainWhileReportsAreLate(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ref := insertNotes(t, db, 1)[0]
	_ = newNoteCache(t, db) // its triggers
	const staleness = 50 * time.Millisecond
	cache := pgcache.NewWithin[note](db, pgcache.Bounds{Rows: 100, MaxAge: time.Hour, MaxStaleness: staleness}, "recent", "notes", readNote, nil)
	hang, hangs := make(chan struct{}), make(chan struct{})
	db.OnNotify("hang", func(string) {
		close(hangs)
		<-hang
	})
	worktest.Start(t, db.Listen)
	silently := func(to string) {
		t.Helper()
		for _, statement := range []string{
			`ALTER TABLE notes DISABLE TRIGGER notes`, `UPDATE notes SET text = '` + to + `'`, `ALTER TABLE notes ENABLE TRIGGER notes`,
		} {
			if _, err := pg.Exec(t.Context(), db, statement); err != nil {
				t.Fatal(err)
			}
		}
	}
	n := 0
	worktest.Await(t, "the note to be served from the cache", func() bool {
		before := text(t, cache, ref)
		n++
		silently(strconv.Itoa(n) + " in silence")
		return text(t, cache, ref) == before
	})
	if _, err := pg.Exec(t.Context(), db, `NOTIFY hang`); err != nil {
		t.Fatal(err)
	}
	<-hangs
	change(t, db, ref, "unreported")
	changed := time.Now()
	worktest.Await(t, "the change to show without a report", func() bool {
		late := time.Since(changed) > staleness
		got := text(t, cache, ref)
		if late && got != "unreported" {
			t.Errorf("the cache returns %q", got)
		}
		return got == "unreported"
	})
	close(hang)
	worktest.Await(t, "the cache to be used again", func() bool {
		before := text(t, cache, ref)
		n++
		silently(strconv.Itoa(n) + " in silence")
		return text(t, cache, ref) == before
	})
	change(t, db, ref, "reported")
	worktest.Await(t, "the change to be reported", func() bool { return text(t, cache, ref) == "reported" })
}

// A tenant whose resources do not change is served from memory while another
// tenant writes fifty times a second.
func TestWritesOfATenantLeaveTheCacheOfOthers(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	of, other := insertNotes(t, db, 10), insertNotes(t, db, 10)
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	for _, ref := range of {
		awaitHeld(t, cache, ref)
	}
	ticker := time.NewTicker(time.Second / 50)
	defer ticker.Stop()
	for n := range 100 {
		change(t, db, other[n%len(other)], fmt.Sprint("text ", n))
		for _, ref := range of {
			if !isHeld(cache, ref) {
				t.Fatalf("after %d writes of another tenant the cache does not hold %v", n+1, ref)
			}
		}
		<-ticker.C
	}
}

func TestACacheKeepsThatThereIsNothing(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	tenant := insertNotes(t, db, 1)[0].Tenant
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	absent := id.Ref{Tenant: tenant, ID: id.New(time.Now())}
	worktest.Await(t, "the cache to hold that there is nothing", func() bool {
		rows, err := cache.All(t.Context(), absent)
		if err != nil || len(rows) != 0 {
			t.Fatalf("the cache returned %v, %v; want no rows", rows, err)
		}
		return isHeld(cache, absent)
	})
}

func TestTheProcessThatChangesSeesItAtOnce(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ref := insertNotes(t, db, 1)[0]
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	awaitHeld(t, cache, ref)
	for n := range 50 {
		to := string(rune('a' + n))
		change(t, db, ref, to)
		cache.Invalidate(ref)
		if got := text(t, cache, ref); got != to {
			t.Fatalf("after %q the cache returns %q", to, got)
		}
	}
}

func TestARowThatWasReadBeforeAChangeIsNotKept(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ref := insertNotes(t, db, 1)[0]
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	awaitHeld(t, cache, ref)
	cache.Invalidate(ref)
	release := lockReads(t, db)
	old := make(chan string)
	go func() {
		got, _ := cache.All(t.Context(), ref)
		old <- got[0].Text
	}()
	awaitReads(t, db, 1)
	change(t, db, ref, "new") // the query sees the table as it was when it began
	cache.Invalidate(ref)
	changed := make(chan string)
	go func() { // shares no load that began before the change
		got, _ := cache.All(t.Context(), ref)
		changed <- got[0].Text
	}()
	awaitReads(t, db, 2)
	release()
	if got := <-old; got != "0" {
		t.Fatalf("the read that began before returns %q", got)
	}
	if got := <-changed; got != "new" {
		t.Errorf("the read that began after returns %q", got)
	}
	if got := text(t, cache, ref); got != "new" {
		t.Errorf("afterwards the cache returns %q", got)
	}
}

func TestACacheThatDoesNotListenKeepsNothing(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ref := insertNotes(t, db, 1)[0]
	cache := newNoteCache(t, db)
	for _, to := range []string{"a", "b", "c"} {
		change(t, db, ref, to)
		if got := text(t, cache, ref); got != to {
			t.Fatalf("after %q the cache returns %q", to, got)
		}
	}
}

func TestANotificationOfNoKeyEmptiesTheCache(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	refs := insertNotes(t, db, 3)
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	for _, payload := range []string{"", "everything", refs[0].Tenant.String()} {
		for _, ref := range refs {
			awaitHeld(t, cache, ref)
		}
		if _, err := pg.Exec(t.Context(), db, `SELECT pg_notify('notes', $1)`, payload); err != nil {
			t.Fatal(err)
		}
		worktest.Await(t, "the cache to be empty", func() bool { return !isHeld(cache, refs[0]) && !isHeld(cache, refs[1]) && !isHeld(cache, refs[2]) })
	}
}

var errRefused = errors.New("refused")

// A transaction notifies the other processes of what it invalidates with its commit, and of nothing
// when it is rolled back.
// An import writes rows past the stores, for a process that may have kept that they are not there.
func TestATransactionClearsTheCachesAndFeedsOfOthers(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	cache := pgcache.New[note](db, "notes", "notes", readNote, nil)
	feed := pgcache.NewFeed(db, "notes")
	worktest.Start(t, db.Listen)
	reported := worktest.Changes(t, source(feed))
	ref := id.Ref{Tenant: id.New(time.Now()), ID: id.New(time.Now())}
	worktest.Await(t, "the cache to hold that there is no note", func() bool {
		rows, err := cache.All(t.Context(), ref)
		return err == nil && len(rows) == 0 && isHeld(cache, ref)
	})
	err := db.InTx(t.Context(), func(tx *pg.Tx) error {
		pgcache.ClearAfter(tx)
		_, err := pg.Exec(t.Context(), tx, `INSERT INTO notes (tenant_id, id, text) VALUES ($1, $2, 'a')`, ref.Tenant, ref.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	worktest.Await(t, "the note to show", func() bool {
		rows, err := cache.All(t.Context(), ref)
		return err == nil && len(rows) == 1
	})
	worktest.Await(t, "the feed to report a gap", func() bool { _, gap := reported(); return gap })
}

func TestATransactionNotifiesOfWhatItInvalidates(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	refs := insertNotes(t, db, 2)
	bounds, other := pgcache.Bounds{Rows: 10_000, MaxAge: time.Hour}, pg.FromPool(db.Pool)
	here := pgcache.NewWithin[note](db, bounds, "here", "notes", readNote, nil)
	elsewhere := pgcache.NewWithin[note](other, bounds, "elsewhere", "notes", readNote, nil)
	worktest.Start(t, db.Listen)
	worktest.Start(t, other.Listen)
	update := func(to string, refused error, invalidated ...id.Ref) {
		t.Helper()
		err := db.InTx(t.Context(), func(tx *pg.Tx) error {
			for _, ref := range invalidated {
				here.InvalidateAfter(tx, ref)
				tx.Queue(`UPDATE notes SET text = $3 || id WHERE tenant_id = $1 AND id = $2`, ref.Tenant, ref.ID, to)
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Fatalf("the transaction returned %v, want %v", err, refused)
		}
	}
	awaitHeld(t, elsewhere, refs[0])
	update("refused ", errRefused, refs[0])
	for n := range 5 {
		awaitHeld(t, here, refs[1])
		awaitHeld(t, elsewhere, refs[1])
		to := fmt.Sprint("text ", n, " ")
		update(to, nil, refs[1], refs[1])
		if got := text(t, here, refs[1]); !strings.HasPrefix(got, to) {
			t.Errorf("the process of the transaction reads %q, want %q", got, to)
		}
		worktest.Await(t, "the change to show elsewhere", func() bool {
			return strings.HasPrefix(text(t, elsewhere, refs[1]), to)
		})
	}
	if !isHeld(elsewhere, refs[0]) {
		t.Error("a transaction that was rolled back, or one of another note, has removed the note elsewhere")
	}
	many := refs[1:]
	for range 1000 { // more than a transaction names
		many = append(many, id.Ref{Tenant: refs[1].Tenant, ID: id.New(time.Now())})
	}
	update("many ", nil, many...)
	worktest.Await(t, "a change of too many notes to clear the cache", func() bool { return !isHeld(elsewhere, refs[0]) })
}

func TestACacheListensAgainAfterItsConnectionWasLost(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	ref := insertNotes(t, db, 1)[0]
	cache := newNoteCache(t, db)
	worktest.Start(t, db.Listen)
	for _, to := range []string{"a", "b"} {
		awaitHeld(t, cache, ref)
		pgtest.CutConnections(t, url)
		change(t, db, ref, to) // no notification arrives, unless the cache has a connection again
		worktest.Await(t, "the cache to notice", func() bool { return !isHeld(cache, ref) || text(t, cache, ref) == to })
		if got := text(t, cache, ref); got != to {
			t.Fatalf("after the connection was lost and %q was written, the cache returns %q", to, got)
		}
	}
}
