package pg

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// loaderPatience bounds a query that several wait for. It is that of a
// request.
const loaderPatience = 15 * time.Second

// Loader reads the rows of resources for all who ask at the same moment. Who
// finds it idle asks the database; what is asked for meanwhile goes there
// together afterwards, in one query, after which comes the next. Thus a row costs
// a busy service a fraction of the processor time of a query of its own. It is
// for requests that read several: one that reads a single row is answered faster
// by a query. (With two queries at a time, each is for half as many rows, and most
// of the gain is lost.)
//
// It is no cache: the query of an answer always begins after the question.
type Loader[Row Part] struct {
	db   *DB
	one  string // reads one resource
	many string // reads as many as asked for

	mu   sync.Mutex
	busy bool
	next *trip[Row] // nil: nobody waits
}

// Part is a row that tells of which resource it is.
type Part interface{ Ref() id.Ref }

// trip is a query and what is asked for in it.
type trip[Row Part] struct {
	ctx   context.Context // of who asked first, without its end
	asked map[id.Ref][]Row
	err   error
	done  chan struct{} // closed when the rows or the error are there
}

// NewLoader makes a loader. The query gives the rows of one resource: $1 is its
// tenant, $2 its id, both of the type uuid.
func NewLoader[Row Part](db *DB, query string) *Loader[Row] {
	return &Loader[Row]{db: db, one: query, many: many(query)}
}

// many gives the rows of every resource whose tenant and id are at the same place
// in the arrays $1 and $2, each found as query finds it: OFFSET keeps the planner
// from joining the tables in another way, which a table that grows makes slow. The
// arrays are hidden from the planner, to which a plan for those at hand would seem
// better every time, so that it would plan every time.
func many(query string) string {
	each := strings.NewReplacer("$1", "asked.tenant_id", "$2", "asked.id").Replace(query)
	return `SELECT found.* FROM unnest((SELECT $1::uuid[]), (SELECT $2::uuid[])) AS asked (tenant_id, id) CROSS JOIN LATERAL (` + each + ` OFFSET 0) AS found`
}

// One reads the single row of a resource. No row is apierr.NotFound.
func (l *Loader[Row]) One(ctx context.Context, ref id.Ref) (row Row, err error) {
	return single(l.All(ctx, ref))
}

func single[Row Part](rows []Row, err error) (row Row, _ error) {
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
		return All[Row](ctx, l.db, l.one, ref.Tenant, ref.ID)
	}
	select {
	case <-t.done:
		return t.asked[ref], t.err
	case <-ctx.Done():
		return nil, Error(ctx.Err())
	}
}

// board asks for a resource in the next query. It gives none to who finds
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

// travel makes one query after the other while somebody waits.
func (l *Loader[Row]) travel(t *trip[Row]) {
	for ; t != nil; t = l.depart() {
		t.err = l.read(t)
		close(t.done)
	}
}

// depart takes the query that was waited for; without one the loader is
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
	if len(t.asked) == 1 {
		for ref := range t.asked {
			rows, err := All[Row](ctx, l.db, l.one, ref.Tenant, ref.ID)
			t.asked[ref] = rows
			return err
		}
	}
	tenants, ids := make([]id.ID, 0, len(t.asked)), make([]id.ID, 0, len(t.asked))
	for ref := range t.asked {
		tenants, ids = append(tenants, ref.Tenant), append(ids, ref.ID)
	}
	rows, err := All[Row](ctx, l.db, l.many, tenants, ids)
	for _, row := range rows {
		t.asked[row.Ref()] = append(t.asked[row.Ref()], row)
	}
	return err
}
