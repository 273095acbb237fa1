package pg_test

import (
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
)

// cached is a cache of notes that listens until the test ends.
func cached(t *testing.T, db *pg.DB) *pg.Cache[note] {
	t.Helper()
	if _, err := pg.Exec(t.Context(), db, `CREATE FUNCTION notify_notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY "notes"; RETURN NULL; END $$`); err != nil {
		t.Fatal(err)
	}
	if _, err := pg.Exec(t.Context(), db, `CREATE TRIGGER notes AFTER INSERT OR UPDATE OR DELETE ON notes EXECUTE FUNCTION notify_notes()`); err != nil {
		t.Fatal(err)
	}
	cache := pg.NewCache(pg.NewLoader[note](db, readNote), "notes")
	worktest.Start(t, cache.Listen)
	return cache
}

// text is what the cache gives of a note.
func text(t *testing.T, cache *pg.Cache[note], ref id.Ref) string {
	t.Helper()
	got, err := cache.One(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return got.Text
}

// settle returns when the cache keeps a note.
func settle(t *testing.T, cache *pg.Cache[note], ref id.Ref) {
	t.Helper()
	for !pg.Kept(cache, ref) {
		text(t, cache, ref)
	}
}

func change(t *testing.T, db *pg.DB, ref id.Ref, to string) {
	t.Helper()
	if err := pg.MustChange(t.Context(), db, `UPDATE notes SET text = $3 WHERE tenant_id = $1 AND id = $2`, ref.Tenant, ref.ID, to); err != nil {
		t.Fatal(err)
	}
}

func TestACacheIsToldOfWhatOthersChange(t *testing.T) {
	db, _ := open(t)
	ref := fill(t, db, 1)[0]
	cache := cached(t, db)
	settle(t, cache, ref)
	for n := range 20 {
		to := string(rune('a' + n))
		change(t, db, ref, to)
		for text(t, cache, ref) != to { // the test's own deadline ends it
		}
	}
}

func TestACacheKeepsThatThereIsNothing(t *testing.T) {
	db, _ := open(t)
	ref := fill(t, db, 1)[0]
	cache := cached(t, db)
	settle(t, cache, ref)
	absent := id.Ref{Tenant: ref.Tenant, ID: id.New(time.Now())}
	if _, err := cache.One(t.Context(), absent); !errors.Is(err, apierr.NotFound) {
		t.Fatal(err)
	}
	defer held(t, db)()
	if _, err := cache.One(t.Context(), absent); !errors.Is(err, apierr.NotFound) {
		t.Errorf("asked again it gives %v", err)
	}
}

func TestWhoForgetsSeesTheirOwnChangeAtOnce(t *testing.T) {
	db, _ := open(t)
	ref := fill(t, db, 1)[0]
	cache := cached(t, db)
	settle(t, cache, ref)
	for n := range 50 {
		to := string(rune('a' + n))
		change(t, db, ref, to)
		cache.Forget()
		if got := text(t, cache, ref); got != to {
			t.Fatalf("after %q the cache gives %q", to, got)
		}
	}
}

func TestWhatWasReadBeforeAChangeIsNotKept(t *testing.T) {
	db, _ := open(t)
	ref := fill(t, db, 1)[0]
	cache := cached(t, db)
	settle(t, cache, ref)
	cache.Forget()
	release := held(t, db)
	old := make(chan string)
	go func() {
		got, _ := cache.One(t.Context(), ref)
		old <- got.Text
	}()
	waiting(t, db, 1)
	change(t, db, ref, "new") // the query sees the table as it was when it began
	cache.Forget()
	release()
	if got := <-old; got != "0" {
		t.Fatalf("the query that began before gives %q", got)
	}
	if got := text(t, cache, ref); got != "new" {
		t.Errorf("afterwards the cache gives %q", got)
	}
}

func TestADeafCacheKeepsNothing(t *testing.T) {
	db, _ := open(t)
	ref := fill(t, db, 1)[0]
	silent := pg.NewCache(pg.NewLoader[note](db, readNote), "notes") // nobody calls Listen
	for _, to := range []string{"a", "b", "c"} {
		change(t, db, ref, to)
		if got := text(t, silent, ref); got != to {
			t.Fatalf("after %q it gives %q", to, got)
		}
	}
}

func TestACacheListensAgainAfterItsConnectionWasLost(t *testing.T) {
	db, url := open(t)
	ref := fill(t, db, 1)[0]
	cache := cached(t, db)
	for _, to := range []string{"a", "b"} {
		settle(t, cache, ref)
		pgtest.CutConnections(t, url)
		for _, err := pg.Value[int](t.Context(), db, `SELECT 1`); err != nil; { // the pool drops those that were cut
			_, err = pg.Value[int](t.Context(), db, `SELECT 1`)
		}
		change(t, db, ref, to) // nobody can be told yet, unless the cache has a connection again
		for pg.Kept(cache, ref) {
			if got := text(t, cache, ref); got == to {
				break
			}
		}
		if got := text(t, cache, ref); got != to {
			t.Fatalf("after the connection was lost and %q was written, the cache gives %q", to, got)
		}
	}
}
