package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// rewindMargin is how far before the time of a restored database the groups begin
// again: an event may have waited in an outbox, or for its consumer, as long. What
// a group had handled before it knows by Tx.Seen.
const rewindMargin = time.Hour

// Rewind makes the consumer groups fit databases that were restored as they were at
// a time, by the name of the service that each belongs to. Every group reads the
// events of the hour before once more, because their effects after that time are
// gone, and passes over those of later transactions, which are undone. No process
// of the deployment may run. It returns how many events are read and passed over,
// summed over the groups. An event is passed over for each service, also for one that
// has read nothing of its topic: that may be because it has not read it yet.
func (i *Inspector) Rewind(ctx context.Context, to time.Time, dbs map[string]*pg.DB) (again, passed int, err error) {
	topics, err := i.partitionsOf(ctx, false)
	if err != nil || len(topics) == 0 {
		return 0, 0, err
	}
	waiting := map[id.ID]bool{} // in a restored outbox: these are sent again and must have their effect
	reading := map[string]*pg.DB{}
	for service, db := range dbs {
		exists, err := pg.Value[bool](db.OnMain(ctx), db, `SELECT to_regclass('outbox') IS NOT NULL`)
		if err != nil {
			return 0, 0, err
		}
		if !exists { // it has no part in events
			continue
		}
		reading[service] = db
		err = db.EachShard(ctx, func(ctx context.Context) error {
			ids, err := pg.Values[id.ID](ctx, db, `SELECT id FROM outbox`)
			for _, event := range ids {
				waiting[event] = true
			}
			return err
		})
		if err != nil {
			return 0, 0, err
		}
	}
	spans, err := i.offsetsSince(ctx, topics, to.Add(-rewindMargin))
	if err != nil {
		return 0, 0, err
	}
	for service, db := range reading {
		undone := func(e events.Envelope) bool { return e.At.After(to) && !waiting[e.ID] }
		n, m, err := i.rewindGroup(ctx, Topic(service), db, topics, spans, undone)
		again, passed = again+n, passed+m
		if err != nil {
			return again, passed, fmt.Errorf("%s: %w", service, err)
		}
	}
	return again, passed, nil
}

// since returns what the partitions hold from a time on.
func (i *Inspector) offsetsSince(ctx context.Context, topics map[string][]int, from time.Time) (map[string]map[int]offsetRange, error) {
	ends, err := offsets(ctx, i.client, topics, kafka.LastOffsetOf)
	if err != nil {
		return nil, err
	}
	begins, err := offsets(ctx, i.client, topics, func(p int) kafka.OffsetRequest { return kafka.TimeOffsetOf(p, from) })
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]offsetRange{}
	for topic, partitions := range ends {
		found[topic] = map[int]offsetRange{}
		for n, p := range partitions {
			found[topic][n] = offsetRange{p.LastOffset, p.LastOffset}
			for offset := range begins[topic][n].Offsets {
				if offset >= 0 {
					found[topic][n] = offsetRange{offset, p.LastOffset}
				}
			}
		}
	}
	return found, nil
}

// rewindGroup does it for the partitions that a group reads.
func (i *Inspector) rewindGroup(ctx context.Context, group string, db *pg.DB, topics map[string][]int,
	spans map[string]map[int]offsetRange, undone func(events.Envelope) bool,
) (again, passed int, err error) {
	committed, err := i.committed(ctx, group, topics)
	if err != nil {
		return 0, 0, err
	}
	commits := map[string][]kafka.OffsetCommit{}
	for topic, partitions := range topics {
		for _, p := range partitions {
			s := spans[topic][p]
			// Without an offset the group does not read the partition, or has not read it
			// yet and will read all of it.
			offset, hasRead := committed[topic][p]
			messages, err := i.readDeadLetters(ctx, topic, p, s)
			if err != nil {
				return again, passed, err
			}
			for _, m := range messages {
				var e events.Envelope
				if json.Unmarshal(m.message.Value, &e) != nil || !undone(e) {
					if hasRead {
						again++
					}
					continue
				}
				passed++
				if _, err := pg.Exec(e.Context(ctx), db, `INSERT INTO seen_events (tenant_id, event_id, seen_at) VALUES ($1, $2, now())
					ON CONFLICT DO NOTHING`, e.Tenant, e.ID); err != nil {
					return again, passed, err
				}
			}
			if hasRead && s.next < offset {
				commits[topic] = append(commits[topic], kafka.OffsetCommit{Partition: p, Offset: s.next})
			}
		}
	}
	if len(commits) == 0 {
		return again, passed, nil
	}
	answer, err := i.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1, Topics: commits})
	if err != nil {
		return again, passed, fmt.Errorf("commit offsets: %w", err)
	}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return again, passed, fmt.Errorf("commit the offset of %s/%d; do processes of the deployment run?: %w", topic, p.Partition, p.Error)
			}
		}
	}
	return again, passed, nil
}

// committed returns the offsets that a group has committed, by topic and partition.
func (i *Inspector) committed(ctx context.Context, group string, topics map[string][]int) (map[string]map[int]int64, error) {
	answer, err := i.client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: topics})
	if err == nil {
		err = answer.Error
	}
	if errors.Is(err, kafka.GroupIdNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]int64{}
	for topic, partitions := range answer.Topics {
		found[topic] = map[int]int64{}
		for _, p := range partitions {
			if p.CommittedOffset >= 0 {
				found[topic][p.Partition] = p.CommittedOffset
			}
		}
	}
	return found, nil
}
