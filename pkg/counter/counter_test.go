package counter_test

import (
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/purge/purgesql"
	"github.com/doorward/doorward/pkg/secure"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "counting", Migrations: []fs.FS{counter.Migrations()}}
}

var (
	errTaken = errors.New("rolled back")
	start    = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
)

func TestCountsInWindows(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.Open(t, config), id.New(start)
	in := func(fn func(counter.Counters) error) error {
		return db.InTx(t.Context(), func(tx *pg.Tx) error { return fn(counter.In(tx)) })
	}
	add := func(now time.Time, after error) (count counter.Count) {
		err := in(func(c counter.Counters) (err error) {
			if count, err = c.AddCount(t.Context(), tenant, "mails", now, time.Hour); err != nil {
				return err
			}
			return after
		})
		if !errors.Is(err, after) {
			t.Fatal(err)
		}
		return count
	}
	want := func(now time.Time, want int) {
		t.Helper()
		err := in(func(c counter.Counters) error {
			got, err := c.Count(t.Context(), tenant, "mails", now)
			if got.Count != want {
				t.Errorf("at %s the count is %d, want %d", now.Format(time.TimeOnly), got.Count, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var together sync.WaitGroup
	for range 20 {
		together.Go(func() { add(start, nil) })
	}
	together.Wait()
	want(start, 20)
	add(start.Add(time.Minute), errTaken)
	want(start.Add(time.Minute), 20)
	want(start.Add(time.Hour), 0)
	if got := add(start.Add(time.Hour), nil); got.Count != 1 || !got.EndsAt.Equal(start.Add(2*time.Hour)) {
		t.Errorf("the next window begins with %+v", got)
	}
	for _, want := range []int64{0, 1} {
		now := start.Add(2*time.Hour + time.Duration(want)*time.Millisecond)
		purged, err := purgesql.Expired(t.Context(), db.InTx, counter.Ended, now)
		if err != nil || purged != want {
			t.Errorf("at %s %d counters are purged, %v; want %d", now.Format(time.StampMilli), purged, err, want)
		}
	}
}
