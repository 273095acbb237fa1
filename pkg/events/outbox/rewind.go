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

// rewindMargin is how far before the time of a restored database the groups begin to read again: an
// event may have waited so long in an outbox, or for its consumer. Tx.Seen recognises the events
// that a group has handled before.
const rewindMargin = time.Hour

// Rewind resets the offsets of the consumer groups after the databases were restored to a point in
// time (point-in-time recovery, restore of a backup). dbs has the database of each service by name.
// Every group reads the events since rewindMargin before that time again, because their effects
// after that time are lost, and skips the events of later transactions, because these
// transactions are lost. No process of the deployment may run. It returns how many events will be
// read again, and how many are skipped, summed over the groups. An event is skipped for every
// service, also for one that has committed no offset of its topic: it may not have read it yet.
func (i *Inspector) Rewind(ctx context.Context, to time.Time, dbs map[string]*pg.DB) (again, skipped int, err error) {
	topics, err := i.partitionsOf(ctx, false)
	if err != nil || len(topics) == 0 {
		return 0, 0, err
	}
	waiting := map[id.ID]bool{} // events in the restored outboxes, which are sent again and must not be skipped
	reading := map[string]*pg.DB{}
	for service, db := range dbs {
		exists, err := pg.Value[bool](ctx, db, `SELECT to_regclass('outbox') IS NOT NULL`)
		if err != nil {
			return 0, 0, err
		}
		if !exists { // the service has no events
			continue
		}
		reading[service] = db
		ids, err := pg.Values[id.ID](ctx, db, `SELECT id FROM outbox`)
		if err != nil {
			return 0, 0, err
		}
		for _, event := range ids {
			waiting[event] = true
		}
	}
	ranges, err := i.offsetsSince(ctx, topics, to.Add(-rewindMargin))
	if err != nil {
		return 0, 0, err
	}
	for service, db := range reading {
		undone := func(e events.Envelope) bool { return e.At.After(to) && !waiting[e.ID] }
		n, m, err := i.rewindGroup(ctx, Topic(service), db, topics, ranges, undone)
		again, skipped = again+n, skipped+m
		if err != nil {
			return again, skipped, fmt.Errorf("%s: %w", service, err)
		}
	}
	return again, skipped, nil
}

// offsetsSince returns the offsets of the partitions from a time on.
func (i *Inspector) offsetsSince(
	ctx context.Context, topics map[string][]int, from time.Time,
) (map[string]map[int]offsetRange, error) {
	ends, err := offsets(ctx, i.client, topics, kafka.LastOffsetOf)
	if err != nil {
		return nil, err
	}
	begins, err := offsets(ctx, i.client, topics, func(p int) kafka.OffsetRequest {
		return kafka.TimeOffsetOf(p, from)
	})
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

// rewindGroup marks the events as skipped for which undone returns true, by recording them as seen in
// the database of the group, and commits the offset at which its range begins in each partition of
// which the group has committed a later offset.
func (i *Inspector) rewindGroup(ctx context.Context, group string, db *pg.DB, topics map[string][]int,
	ranges map[string]map[int]offsetRange, undone func(events.Envelope) bool,
) (again, skipped int, err error) {
	committed, err := i.committed(ctx, group, topics)
	if err != nil {
		return 0, 0, err
	}
	commits := map[string][]kafka.OffsetCommit{}
	for topic, partitions := range topics {
		for _, p := range partitions {
			s := ranges[topic][p]
			// A group without a committed offset does not read the partition, or will read
			// all of it.
			offset, hasRead := committed[topic][p]
			messages, err := i.readMessages(ctx, topic, p, s)
			if err != nil {
				return again, skipped, err
			}
			for _, m := range messages {
				var e events.Envelope
				if json.Unmarshal(m.Value, &e) != nil || !undone(e) {
					if hasRead {
						again++
					}
					continue
				}
				skipped++
				if _, err := pg.Exec(e.Context(ctx), db,
					`INSERT INTO seen_events (tenant_id, event_id, seen_at) VALUES ($1, $2, now())
					ON CONFLICT DO NOTHING`, e.Tenant, e.ID); err != nil {
					return again, skipped, err
				}
			}
			if hasRead && s.next < offset {
				commits[topic] = append(commits[topic], kafka.OffsetCommit{Partition: p, Offset: s.next})
			}
		}
	}
	if len(commits) == 0 {
		return again, skipped, nil
	}
	answer, err := i.client.OffsetCommit(ctx, &kafka.OffsetCommitRequest{GroupID: group, GenerationID: -1,
		Topics: commits})
	if err != nil {
		return again, skipped, fmt.Errorf("commit offsets: %w", err)
	}
	for topic, partitions := range answer.Topics {
		for _, p := range partitions {
			if p.Error != nil {
				return again, skipped, fmt.Errorf("commit the offset of %s/%d; do processes of the deployment run?: %w",
					topic, p.Partition, p.Error)
			}
		}
	}
	return again, skipped, nil
}

// committed returns the offsets that a group has committed, by topic and partition.
func (i *Inspector) committed(
	ctx context.Context, group string, topics map[string][]int,
) (map[string]map[int]int64, error) {
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
