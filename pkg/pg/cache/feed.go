package cache

import (
	"sync/atomic"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/pg"
)

// Feed reports the changes that PostgreSQL notifies of on a channel to other services which cache
// answers of this service (cache.Answers).
type Feed struct {
	db        *pg.DB
	log       *cache.Log
	listening atomic.Bool // the notifications arrive
}

// NewFeed makes the feed of a channel, whose notifications are those of a Cache. It must be called
// before Listen.
func NewFeed(db *pg.DB, channelName string) *Feed {
	f := &Feed{db: db, log: cache.NewLog()}
	db.OnNotify(allChannel, f.append)
	db.Subscribe(channelName, f.enable, f.append)
	return f
}

// enable resets the log, because changes may have been missed.
func (f *Feed) enable(on bool) {
	f.listening.Store(on)
	f.log.Reset()
}

func (f *Feed) append(payload string) {
	if changed, named := parseChanged(payload); named {
		f.log.Append(changed.ID)
	} else {
		f.log.Reset()
	}
}

// After returns the changes since a position: all that were committed more than maxStaleness ago. It
// returns Behind if PostgreSQL has not confirmed that.
func (f *Feed) After(position cache.Position) cache.Page {
	if !f.db.NotifiedWithin(maxStaleness) || !f.listening.Load() {
		return cache.Page{Behind: true}
	}
	return f.log.After(position)
}
