package cache_test

import (
	"context"
	"testing"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/pg"
	pgcache "github.com/doorward/doorward/pkg/pg/cache"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
)

// source asks a feed as a service does.
func source(feed *pgcache.Feed) cache.Source {
	return func(_ context.Context, after cache.Position) (cache.Page, error) {
		return feed.After(after), nil
	}
}

func TestAFeedReportsTheChangesOfOthers(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	refs := insertNotes(t, db, 2)
	_ = newNoteCache(t, db) // its triggers
	feed := pgcache.NewFeed(db, "notes")
	if page := feed.After(nil); !page.Behind {
		t.Errorf("before it listens the feed reports %+v", page)
	}
	worktest.Start(t, db.Listen)
	reported := worktest.Changes(t, source(feed))
	for _, ref := range refs {
		change(t, db, ref, ref.ID.String())
		worktest.Await(t, "the change", func() bool { changed, _ := reported(ref.ID); return changed })
	}
	for what, unknown := range map[string]func(){
		"a notification that names nothing": func() {
			if _, err := pg.Exec(t.Context(), db, `NOTIFY notes`); err != nil {
				t.Fatal(err)
			}
		},
		"a connection that was lost": func() { pgtest.CutConnections(t, url) },
	} {
		reported := worktest.Changes(t, source(feed))
		unknown()
		worktest.Await(t, what, func() bool { _, gap := reported(); return gap })
	}
}

// A feed whose connection hangs says that it is behind, so that nothing is used that it
// would have reported.
func TestAFeedIsBehindWhileReportsAreLate(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	feed := pgcache.NewFeed(db, "notes")
	hang, hangs := make(chan struct{}), make(chan struct{})
	db.OnNotify("hang", func(string) {
		close(hangs)
		<-hang
	})
	worktest.Start(t, db.Listen)
	_ = worktest.Changes(t, source(feed))
	if _, err := pg.Exec(t.Context(), db, `NOTIFY hang`); err != nil {
		t.Fatal(err)
	}
	<-hangs
	worktest.Await(t, "the feed to be behind", func() bool { return feed.After(nil).Behind })
	close(hang)
	_ = worktest.Changes(t, source(feed))
}
