package pg_test

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/worktest"
)

// positionOf waits until a feed is certain of all changes, and returns where it ends.
func positionOf(t *testing.T, feed *pg.Feed) changefeed.Position {
	t.Helper()
	position := changefeed.Position{}
	worktest.Await(t, "the feed", func() bool {
		page := feed.After(nil)
		position[page.Log] = page.Next
		return !page.Behind
	})
	return position
}

func TestAFeedReportsTheChangesOfOthers(t *testing.T) {
	t.Parallel()
	db, url := open(t)
	refs := insertNotes(t, db, 2)
	_ = newNoteCache(t, db) // its triggers
	feed := pg.NewFeed(db, "notes")
	if page := feed.After(nil); !page.Behind {
		t.Errorf("before it listens it reports %+v", page)
	}
	worktest.Start(t, db.Listen)
	position := positionOf(t, feed)
	for _, ref := range refs {
		change(t, db, ref, ref.ID.String())
		worktest.Await(t, "the change", func() bool { return slices.Contains(feed.After(position).Changed, ref) })
	}
	for what, unknown := range map[string]func(){
		"a notification that names nothing": func() {
			if _, err := pg.Exec(t.Context(), db, `NOTIFY notes`); err != nil {
				t.Fatal(err)
			}
		},
		"a connection that was lost": func() { pgtest.CutConnections(t, url) },
	} {
		position := positionOf(t, feed)
		unknown()
		worktest.Await(t, what, func() bool { return feed.After(position).Gap })
	}
}

// A feed whose connection hangs says that it is behind, so that nothing is used that it
// would have reported.
func TestAFeedIsBehindWhileReportsAreLate(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	feed := pg.NewFeed(db, "notes")
	hang, hangs := make(chan struct{}), make(chan struct{})
	db.OnNotify("hang", func(string) {
		close(hangs)
		<-hang
	})
	worktest.Start(t, db.Listen)
	_ = positionOf(t, feed)
	if _, err := pg.Exec(t.Context(), db, `NOTIFY hang`); err != nil {
		t.Fatal(err)
	}
	<-hangs
	worktest.Await(t, "the feed to be behind", func() bool { return feed.After(nil).Behind })
	close(hang)
	_ = positionOf(t, feed)
}
