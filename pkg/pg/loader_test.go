package pg_test

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// readNote waits for the advisory lock 1, so that a test can hold a query up.
const readNote = `SELECT tenant_id, id, text FROM notes WHERE tenant_id = $1 AND id = $2 AND pg_advisory_xact_lock_shared(1)::text = '' ORDER BY text`

func (n note) Ref() id.Ref { return id.Ref{Tenant: n.TenantID, ID: n.ID} }

// fill adds notes of a tenant and gives their names.
func fill(t *testing.T, db *pg.DB, count int) (refs []id.Ref) {
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

// held keeps the loader's queries waiting until it is let go.
func held(t *testing.T, db *pg.DB) (release func()) {
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

// waiting returns when a number of the loader's queries wait for the lock.
func waiting(t *testing.T, db *pg.DB, count int) {
	t.Helper()
	for {
		n, err := pg.Value[int](t.Context(), db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`)
		if err != nil {
			t.Fatal(err)
		}
		if n == count {
			return
		}
	}
}

func TestALoaderGivesEveryoneTheirOwnRow(t *testing.T) {
	db, _ := open(t)
	refs := fill(t, db, 8)
	loader := pg.NewLoader[note](db, readNote)
	var group sync.WaitGroup
	for n := range 200 {
		group.Go(func() {
			ref := refs[n%len(refs)]
			got, err := loader.One(t.Context(), ref)
			if err != nil || got != (note{ref.Tenant, ref.ID, strconv.Itoa(n % len(refs))}) {
				t.Errorf("One(%d) = %+v, %v", n, got, err)
			}
		})
		group.Go(func() {
			absent := id.Ref{Tenant: id.New(time.Now()), ID: refs[0].ID} // another tenant's
			if got, err := loader.One(t.Context(), absent); !errors.Is(err, apierr.NotFound) {
				t.Errorf("another tenant reads %+v, %v", got, err)
			}
		})
	}
	group.Wait()
}

func TestALoaderReadsTogetherWhatIsAskedForMeanwhile(t *testing.T) {
	db, _ := open(t)
	refs := fill(t, db, 20)
	loader := pg.NewLoader[note](db, readNote)
	release := held(t, db)
	var group sync.WaitGroup
	read := func(ctx context.Context, ref id.Ref) {
		if _, err := loader.One(ctx, ref); err != nil {
			t.Error(err)
		}
	}
	group.Go(func() { read(t.Context(), refs[0]) })
	waiting(t, db, 1)
	for _, ref := range refs[1:] {
		group.Go(func() { read(t.Context(), ref) })
	}
	for pg.Asked(loader) < len(refs)-1 {
		runtime.Gosched()
	}
	waiting(t, db, 1) // they are not at the database
	release()
	group.Wait()
}

func TestWhatWasWrittenBeforeTheQuestionIsInTheAnswer(t *testing.T) {
	db, _ := open(t)
	refs := fill(t, db, 4)
	loader := pg.NewLoader[note](db, readNote)
	var group sync.WaitGroup
	for n, ref := range refs {
		group.Go(func() {
			for change := range 100 {
				text := strconv.Itoa(n) + "." + strconv.Itoa(change)
				if err := pg.MustChange(t.Context(), db, `UPDATE notes SET text = $3 WHERE tenant_id = $1 AND id = $2`, ref.Tenant, ref.ID, text); err != nil {
					t.Error(err)
				}
				if got, err := loader.One(t.Context(), ref); err != nil || got.Text != text {
					t.Errorf("after %q the loader gives %q, %v", text, got.Text, err)
				}
			}
		})
	}
	group.Wait()
}

func TestWhoLeavesALoaderHoldsNobodyUp(t *testing.T) {
	db, _ := open(t)
	refs := fill(t, db, 3)
	loader := pg.NewLoader[note](db, readNote)
	release := held(t, db)
	first, leave := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := loader.One(first, refs[0]); err == nil {
			t.Error("the first was answered although it left")
		}
	})
	waiting(t, db, 1)
	second, leaveToo := context.WithCancel(t.Context())
	group.Go(func() {
		if _, err := loader.One(second, refs[1]); !errors.Is(err, context.Canceled) {
			t.Errorf("who left got %v", err)
		}
	})
	group.Go(func() {
		if _, err := loader.One(t.Context(), refs[2]); err != nil {
			t.Error(err)
		}
	})
	for pg.Asked(loader) < 2 {
		runtime.Gosched()
	}
	leaveToo()
	leave()
	release()
	group.Wait()
}

func TestAFailureIsToldToAllWhoWait(t *testing.T) {
	db, _ := open(t)
	refs := fill(t, db, 2)
	loader := pg.NewLoader[note](db, `SELECT tenant_id, id, (1 / (length(text) - 1))::text AS text FROM notes WHERE tenant_id = $1 AND id = $2`)
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			if _, err := loader.One(t.Context(), refs[n%2]); err == nil || errors.Is(err, apierr.NotFound) {
				t.Errorf("a query that fails gives %v", err)
			}
		})
	}
	group.Wait()
}
