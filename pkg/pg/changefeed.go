package pg

import (
	"sync/atomic"

	"github.com/doorward/doorward/pkg/changefeed"
)

// Feed reports the changes of which notifications arrive on a channel to services that
// keep what they have asked this one.
type Feed struct {
	db        *DB
	log       *changefeed.Log
	listening atomic.Bool // the notifications of all shards arrive
}

// NewFeed makes the feed of a channel, whose notifications are those of a Cache. It is to
// be called before Listen.
func NewFeed(db *DB, channelName string) *Feed {
	f := &Feed{db: db, log: changefeed.NewLog()}
	db.register(channelName, f.enable, f.append)
	return f
}

// enable begins the log again: what was notified before, or meanwhile, is not known.
func (f *Feed) enable(on bool) {
	f.listening.Store(on)
	f.log.Reset()
}

func (f *Feed) append(payload string) {
	if changed, named := parseChanged(payload); named {
		f.log.Append(changed)
	} else {
		f.log.Reset()
	}
}

// After returns what has changed since a position: all that was committed more than
// maxStaleness ago, or Behind where PostgreSQL has not confirmed that.
func (f *Feed) After(position changefeed.Position) changefeed.Page {
	behind := false
	for _, shard := range f.db.allShards() {
		behind = !shard.listener.isCurrent(maxStaleness) || behind // each shard is checked, so that its connection is pinged
	}
	if behind || !f.listening.Load() {
		return changefeed.Page{Behind: true}
	}
	return f.log.After(position)
}
