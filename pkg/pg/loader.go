package pg

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// loaderPatience bounds a round trip that several wait for. It is that of a
// request.
const loaderPatience = 15 * time.Second

// Loader reads the rows of resources for all who ask at the same moment. Who
// finds it idle asks the database; what is asked for meanwhile goes there
// together afterwards, in one round trip, after which comes the next. Thus a row
// costs a busy service about half the processor time of a query of its own. It is
// for requests that read several: one that reads a single row is answered faster
// by a query. (With two round trips at a time, each is for half as many rows, and
// most of the gain is lost.)
//
// It is no cache: the query of an answer always begins after the question.
type Loader[Row any] struct {
	db    *DB
	query string

	mu   sync.Mutex
	busy bool
	next *trip[Row] // nil: nobody waits
}

// trip is a round trip to the database and what is asked for in it.
type trip[Row any] struct {
	ctx   context.Context // of who asked first, without its end
	asked map[id.Ref][]Row
	err   error
	done  chan struct{} // closed when the rows or the error are there
}

// NewLoader makes a loader. The query gives the rows of one resource: $1 is its
// tenant, $2 its id.
func NewLoader[Row any](db *DB, query string) *Loader[Row] {
	return &Loader[Row]{db: db, query: query}
}

// One reads the single row of a resource. No row is apierr.NotFound.
func (l *Loader[Row]) One(ctx context.Context, ref id.Ref) (row Row, err error) {
	rows, err := l.All(ctx, ref)
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, apierr.NotFound
	}
	return rows[0], nil
}

// All reads the rows of a resource, which all who asked for it share.
func (l *Loader[Row]) All(ctx context.Context, ref id.Ref) ([]Row, error) {
	t := l.board(ctx, ref)
	if t == nil {
		defer l.leave()
		return All[Row](ctx, l.db, l.query, ref.Tenant, ref.ID)
	}
	select {
	case <-t.done:
		return t.asked[ref], t.err
	case <-ctx.Done():
		return nil, Error(ctx.Err())
	}
}

// board asks for a resource in the next round trip. It gives none to who finds
// the loader idle, and has to ask without others.
func (l *Loader[Row]) board(ctx context.Context, ref id.Ref) *trip[Row] {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		l.busy = true
		return nil
	}
	if l.next == nil {
		l.next = &trip[Row]{ctx: context.WithoutCancel(ctx), asked: map[id.Ref][]Row{}, done: make(chan struct{})}
	}
	l.next.asked[ref] = nil
	return l.next
}

// leave lets those go who came meanwhile.
func (l *Loader[Row]) leave() {
	if t := l.depart(); t != nil {
		go l.travel(t)
	}
}

// travel makes one round trip after the other while somebody waits.
func (l *Loader[Row]) travel(t *trip[Row]) {
	for ; t != nil; t = l.depart() {
		t.err = Error(l.read(t))
		close(t.done)
	}
}

// depart takes the round trip that was waited for; without one the loader is
// idle.
func (l *Loader[Row]) depart() *trip[Row] {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.next
	l.next, l.busy = nil, t != nil
	return t
}

func (l *Loader[Row]) read(t *trip[Row]) error {
	ctx, cancel := context.WithTimeout(t.ctx, loaderPatience)
	defer cancel()
	var batch Batch
	for ref := range t.asked {
		batch.Queue(l.query, ref.Tenant, ref.ID).Query(func(rows pgx.Rows) (err error) {
			t.asked[ref], err = pgx.CollectRows(rows, pgx.RowToStructByName[Row])
			return err
		})
	}
	return l.db.SendBatch(ctx, &batch).Close()
}
