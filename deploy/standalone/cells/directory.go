package cells

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/cache"
)

const (
	// keepFound is how long the cell of a name is kept, unless an event names its tenant.
	keepFound = time.Hour
	// keepAbsent is how long it is kept that no cell has a name, such as a key that was made up. Names that no cell
	// has are in a cache of their own (recent), so that they displace none that a cell has.
	keepAbsent = 10 * time.Second
	maxFound   = 100_000
	maxRecent  = 10_000
	// maxLookups bounds the names that are looked up at a time; each asks every cell once. Of ids it is maxIDs: the look-up
	// of an id that no cell has tries each tenant of a cell, and anybody can make up ids.
	maxLookups = 64
	maxIDs     = 8
	// pollInterval is how often each cell is asked for its events.
	pollInterval = time.Second
)

// errUnreachable is the error of a name whose tenant, if it has one, may be in a cell that does not answer.
var errUnreachable = errors.New("a cell does not answer")

// errAbsent is the error of a name that no cell has.
var errAbsent = errors.New("no cell has it")

// found is the cell of a name, with its tenant; cell is nil where no cell has the name.
type found struct {
	cell   *cell
	tenant tenant
}

// tenants are the names of events that make an answer invalid.
func (f found) tenants() []name { return []name{{ofTenant, f.tenant.ID}, {ofTenant, f.tenant.Key}} }

// Directory says which cell has the tenant of a request. Each name is asked for once: the answer is kept for an
// hour (keepFound, maxFound) and dropped when an event of any cell names its tenant.
type Directory struct {
	cells       []*cell
	defaultCell *cell

	found  *cache.Cache[name, found]
	recent *cache.Cache[name, found] // of the last keepAbsent, also absent ones
	slots  chan struct{}             // maxLookups
	ids    chan struct{}             // maxIDs
}

// New makes a directory of cells. It knows of no change until Follow runs.
func New(config Config, now func() time.Time) *Directory {
	d := &Directory{slots: make(chan struct{}, maxLookups), ids: make(chan struct{}, maxIDs)}
	for _, each := range config.Cells {
		c := newCell(each)
		d.cells = append(d.cells, c)
		if c.Name == config.Default {
			d.defaultCell = c
		}
	}
	d.found = cache.New(cache.Config[name, found]{
		Name: "cells", Size: maxFound, MaxAge: keepFound, Now: now, DependsOn: found.tenants,
	})
	d.recent = cache.New(cache.Config[name, found]{
		Name: "cells recent", Size: maxRecent, MaxAge: keepAbsent, Now: now, DependsOn: found.tenants,
	})
	return d
}

// Follow polls the events of each cell until ctx ends. A cell that hangs delays the events of no other.
func (d *Directory) Follow(ctx context.Context) {
	var wg sync.WaitGroup
	for _, c := range d.cells {
		wg.Go(func() {
			ticker := time.NewTicker(pollInterval)
			defer ticker.Stop()
			for ctx.Err() == nil {
				d.poll(ctx, c)
				select {
				case <-ctx.Done():
				case <-ticker.C:
				}
			}
		})
	}
	wg.Wait()
}

// poll reads the events of a cell once, and drops the answers about the tenants that they name. An event about no
// tenant, such as a restore, drops all.
func (d *Directory) poll(ctx context.Context, c *cell) {
	events := c.poll(ctx)
	for _, e := range events {
		if e.Tenant == nil {
			d.found.Clear()
			continue
		}
		d.found.Invalidate(name{ofTenant, *e.Tenant})
	}
	if len(events) > 0 {
		d.recent.Clear() // the tenant may be new in that cell
	}
}

// cellOf returns the cell of a request that has these names: that of the first name which a cell has, else the
// default. It returns errUnreachable where that cell is lost, and where no cell has a name while one is lost.
func (d *Directory) cellOf(ctx context.Context, names []name) (*cell, error) {
	var unreachable error
	for _, n := range names {
		f, err := d.find(ctx, n)
		switch {
		case err == nil && f.cell.lost():
			return nil, errUnreachable
		case err == nil:
			return f.cell, nil
		case !errors.Is(err, errAbsent):
			unreachable = err
		}
	}
	for _, c := range d.cells {
		if c.lost() {
			unreachable = errUnreachable
		}
	}
	return d.defaultCell, unreachable
}

// find returns the cell of a name, kept or asked for, or errAbsent. Callers that ask for the same name at the
// same time share one look-up.
func (d *Directory) find(ctx context.Context, n name) (found, error) {
	if f, kept := d.found.Peek(n); kept {
		return f, nil
	}
	f, err := d.recent.Get(ctx, n, func(ctx context.Context) (found, error) {
		f, err := d.found.Refresh(ctx, n, func(ctx context.Context) (found, error) { return d.lookUp(ctx, n) })
		if errors.Is(err, errAbsent) {
			return found{}, nil
		}
		return f, err
	})
	if err == nil && f.cell == nil {
		err = errAbsent
	}
	return f, err
}

// answer is what one cell says of a name.
type answer struct {
	tenant tenant
	found  bool
	err    error
}

// lookUp asks all cells for a name at once.
func (d *Directory) lookUp(ctx context.Context, n name) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*cellTimeout)
	defer cancel()
	slots := d.slots
	if n.kind == byID {
		slots = d.ids
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return found{}, ctx.Err()
	}
	answers := make([]answer, len(d.cells))
	var wg sync.WaitGroup
	for i, c := range d.cells {
		if c.lost() { // not worth its timeout
			answers[i].err = errUnreachable
			continue
		}
		wg.Go(func() { answers[i].tenant, answers[i].found, answers[i].err = c.lookUp(ctx, n) })
	}
	wg.Wait()
	return d.choose(ctx, answers)
}

// statuses are those of a tenant, the one that wins first: of a tenant that moves two cells have it.
var statuses = map[string]int{"ENABLED": 3, "SUSPENDED": 2, "DELETING": 1}

// choose returns the best answer. While a cell does not answer, an ENABLED tenant alone is certain: any other may have
// moved there.
func (d *Directory) choose(ctx context.Context, answers []answer) (found, error) {
	best, rank := found{}, -1
	var failed error
	for i, a := range answers {
		switch {
		case a.err != nil:
			failed = errors.Join(errUnreachable, a.err)
			if !d.cells[i].lost() {
				slog.WarnContext(ctx, "a cell does not answer a look-up", "cell", d.cells[i].Name, "error", a.err)
			}
		case a.found && statuses[a.tenant.Status] > rank:
			best, rank = found{d.cells[i], a.tenant}, statuses[a.tenant.Status]
		}
	}
	switch {
	case rank == statuses["ENABLED"]:
		return best, nil
	case failed != nil:
		return found{}, failed
	case rank < 0:
		return found{}, errAbsent
	}
	return best, nil
}

// Check asks each cell once, and returns why cells do not answer, by their names.
func (d *Directory) Check(ctx context.Context) map[string]error {
	failed := map[string]error{}
	for _, c := range d.cells {
		_, _, err := c.lookUp(ctx, name{byHost, "check.invalid"})
		if err == nil {
			_, err = c.page(ctx, url.Values{"limit": {"1"}})
		}
		if err != nil {
			failed[c.Name] = err
		}
	}
	return failed
}
