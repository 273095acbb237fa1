package outbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/pg"
)

// SentEvent is an event that has left its outbox for Kafka.
type SentEvent struct {
	Service  string          `json:"service"` // whose outbox it was in
	Envelope json.RawMessage `json:"envelope"`
}

// HoldRelays stops the relays of all schemas in a database, so that no event leaves an outbox until release. The
// locks belong to the connection of the transaction.
func HoldRelays(ctx context.Context, tx *pg.Tx, schemas []string) (release func() error, err error) {
	for _, schema := range schemas {
		if _, err := pg.Exec(ctx, tx, `SELECT pg_advisory_lock(`+relayLock("$1::text")+`)`, schema); err != nil {
			return nil, err
		}
	}
	return func() error {
		_, err := pg.Exec(ctx, tx, `SELECT pg_advisory_unlock_all()`)
		return err
	}, nil
}

// Unhandled returns the events in Kafka that a consumer group has not handled, and the dead letters, in the order
// of their partitions (backup). Events that are being handled are among them: Tx.Seen recognises these. Of a topic of
// which no group has committed an offset it returns the events of the last hour. A message without a valid signature
// is left out.
func (i *Inspector) Unhandled(ctx context.Context, services []string, now time.Time) (list []SentEvent, err error) {
	verifier, err := newSigner(i.cfg)
	if err != nil {
		return nil, err
	}
	add := func(messages []kafka.Message) {
		for _, m := range messages {
			if verifier.verify(m) == nil {
				list = append(list, SentEvent{Service: m.Topic[len(Topic("")):], Envelope: m.Value})
			}
		}
	}
	letters, err := i.DeadLetters(ctx)
	if err != nil {
		return nil, err
	}
	for _, letter := range letters {
		message := letter.message
		message.Topic = letter.Topic
		add([]kafka.Message{message})
	}
	topics, err := i.partitionsOf(ctx, false)
	if err != nil || len(topics) == 0 {
		return list, err
	}
	ranges, err := i.unhandledRanges(ctx, services, topics, now)
	if err != nil {
		return nil, err
	}
	for topic, partitions := range ranges {
		for partition, s := range partitions {
			messages, err := i.readMessages(ctx, topic, partition, s)
			if err != nil {
				return nil, err
			}
			add(messages)
		}
	}
	return list, nil
}

// unhandledRanges returns the offsets of each partition from the lowest one that a group of a service has yet to
// handle. A group that has committed an offset of a topic reads all of its partitions.
func (i *Inspector) unhandledRanges(
	ctx context.Context, services []string, topics map[string][]int, now time.Time,
) (map[string]map[int]offsetRange, error) {
	var groups []map[string]map[int]int64
	for _, service := range services {
		committed, err := i.committed(ctx, Topic(service), topics)
		if err != nil {
			return nil, err
		}
		groups = append(groups, committed)
	}
	ranges, err := i.offsetsSince(ctx, topics, now.Add(-rewindMargin))
	if err != nil {
		return nil, err
	}
	begins, err := offsets(ctx, i.client, topics, kafka.FirstOffsetOf)
	if err != nil {
		return nil, err
	}
	for topic, partitions := range topics {
		for _, p := range partitions {
			s, known := ranges[topic][p], false
			for _, committed := range groups {
				if len(committed[topic]) == 0 {
					continue
				}
				next, has := committed[topic][p]
				if !has {
					next = begins[topic][p].FirstOffset
				}
				if !known || next < s.next {
					s.next, known = next, true
				}
			}
			ranges[topic][p] = s
		}
	}
	return ranges, nil
}

// PutBack puts an event that had been sent back into the outbox that it came from, before the events that wait there,
// so that it is sent again (restore). The events of a call keep their order.
func PutBack(ctx context.Context, tx *pg.Tx, sent []SentEvent) error {
	first, err := pg.Value[int64](ctx, tx, `SELECT coalesce(min(seq), 1) FROM outbox`)
	if err != nil {
		return err
	}
	for n, event := range sent {
		var e events.Envelope
		if err := json.Unmarshal(event.Envelope, &e); err != nil {
			return fmt.Errorf("read an event of %s: %w", event.Service, err)
		}
		tx.Queue(`INSERT INTO outbox (tenant_id, id, seq, topic, key, envelope) OVERRIDING SYSTEM VALUE
			VALUES (@tenant, @id, @seq, @topic, @key, @envelope) ON CONFLICT DO NOTHING`, pg.Named(pg.Args{
			"tenant": e.Tenant, "id": e.ID, "seq": first - int64(len(sent)-n), "topic": Topic(event.Service),
			"key": e.Subject, "envelope": []byte(event.Envelope)}))
	}
	return nil
}
