package events

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// balanceEvery bounds how long a partition waits whose reader has gone.
	balanceEvery = 500 * time.Millisecond
	// balancePatience bounds one balancing. A database that does not answer may
	// have given the locks to another process already.
	balancePatience = 5 * time.Second
)

// lock names the advisory lock of a replica or, with its name in $1, of a
// partition.
const lock = `hashtextextended('doorward/consumer/' || current_schema() || $1::text, 0)`

// replica is this process as one of those that share the partitions. Who holds
// the advisory lock of a partition reads it. The locks are those of one session
// of PostgreSQL, which drops them at once when the process dies.
type replica struct {
	*consumer
	conn *pgxpool.Conn
	fail context.CancelCauseFunc // ends the reading of all partitions
	held map[place]reading
}

// reading is the worker that reads a partition.
type reading struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (r reading) stop() {
	r.cancel()
	<-r.done
}

// share reads this process's share of the partitions until the database or the
// broker fails, or another process has taken what this one believed to be its
// own.
func (c *consumer) share(ctx context.Context) error {
	conn, err := c.outbox.db.Acquire(ctx)
	if err != nil {
		return pg.Error(err)
	}
	defer conn.Release()
	ctx, fail := context.WithCancelCause(ctx)
	r := &replica{consumer: c, conn: conn, fail: fail, held: map[place]reading{}}
	defer r.leave(ctx)
	if err := createTopics(ctx, c.client, c.cfg, c.all()...); err != nil {
		return err
	}
	if err := r.join(ctx); err != nil {
		return err
	}
	tick := time.NewTicker(balanceEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		if err := r.balance(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	return context.Cause(ctx)
}

// join makes this replica known to the others.
func (r *replica) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(telemetry.Quiet(ctx), balancePatience)
	defer cancel()
	_, err := pg.Exec(ctx, r.conn, `SELECT pg_advisory_lock_shared(`+lock+`)`, "")
	return err
}

// leave ends the reading, and then the session with its locks.
func (r *replica) leave(ctx context.Context) {
	r.fail(nil)
	for _, reading := range r.held {
		reading.stop()
	}
	_ = r.conn.Conn().Close(context.WithoutCancel(ctx))
}

// balance gives up what is not this replica's part, and takes of its part what is
// free.
func (r *replica) balance(ctx context.Context) error {
	asking, cancel := context.WithTimeout(telemetry.Quiet(ctx), balancePatience)
	defer cancel()
	places, err := r.places(asking)
	if err != nil {
		return err
	}
	part, err := r.part(asking, places)
	if err != nil {
		return err
	}
	for place := range r.held {
		if slices.Contains(part, place) {
			continue
		}
		if err := r.release(asking, place); err != nil {
			return err
		}
	}
	for _, place := range part {
		if _, held := r.held[place]; held {
			continue
		}
		p, err := r.take(asking, place)
		if err != nil {
			return err
		}
		if p != nil {
			r.held[place] = r.start(ctx, p)
		}
	}
	return nil
}

// places lists the partitions of the topics, in their order.
func (c *consumer) places(ctx context.Context) (list []place, err error) {
	answer, err := c.client.Metadata(ctx, &kafka.MetadataRequest{Topics: c.topics})
	if err != nil {
		return nil, fmt.Errorf("ask Kafka for partitions: %w", err)
	}
	for _, topic := range answer.Topics {
		if topic.Error != nil {
			return nil, fmt.Errorf("ask Kafka for the partitions of %s: %w", topic.Name, topic.Error)
		}
		for _, p := range topic.Partitions {
			list = append(list, place{topic.Name, p.ID})
		}
	}
	slices.SortFunc(list, place.compare)
	return list, nil
}

// part gives the partitions that are for this replica, by its rank among all.
// Two parts differ by one partition at most.
func (r *replica) part(ctx context.Context, places []place) ([]place, error) {
	among, err := pg.One[struct{ Rank, Replicas int }](ctx, r.conn, `SELECT count(*) FILTER (WHERE pid < pg_backend_pid()) AS rank, count(*) AS replicas
		FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND (classid::bigint << 32) | objid::bigint = `+lock+`
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, "")
	if err != nil {
		return nil, err
	}
	return places[among.Rank*len(places)/among.Replicas : (among.Rank+1)*len(places)/among.Replicas], nil
}

// take makes this process the owner of a partition, unless another reads it:
// then it gives none. The first owner ever goes on where the consumer group had
// come to that read the topic in former releases.
func (r *replica) take(ctx context.Context, at place) (*partition, error) {
	free, err := pg.Value[bool](ctx, r.conn, `SELECT pg_try_advisory_lock(`+lock+`)`, at.name())
	if err != nil || !free {
		return nil, err
	}
	type row struct{ Owner, NextOffset int64 }
	own, err := pg.One[row](ctx, r.conn, `UPDATE read_partitions SET owner = owner + 1 WHERE topic = $1 AND partition = $2 RETURNING owner, next_offset`, at.topic, at.number)
	if errors.Is(err, apierr.NotFound) {
		if own.NextOffset, err = groupOffset(ctx, r.client, r.outbox.topic, at.topic, at.number); err != nil {
			return nil, err
		}
		_, err = pg.Exec(ctx, r.conn, `INSERT INTO read_partitions (topic, partition, owner, next_offset) VALUES ($1, $2, $3, $4)`, at.topic, at.number, own.Owner, own.NextOffset)
	}
	if err != nil {
		return nil, err
	}
	return &partition{consumer: r.consumer, place: at, owner: own.Owner, committed: own.NextOffset}, nil
}

// start reads a partition until it is stopped.
func (r *replica) start(ctx context.Context, p *partition) reading {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer p.behind(ctx, 0) // whoever reads it next tells
		persist(ctx, "a partition is read again", p.topic, func(ctx context.Context) error {
			err := p.follow(ctx)
			if errors.Is(err, errTaken) {
				r.fail(err)
			}
			return err
		})
	}()
	return reading{cancel, done}
}

// release stops reading a partition and leaves it to others.
func (r *replica) release(ctx context.Context, at place) error {
	r.held[at].stop()
	delete(r.held, at)
	_, err := pg.Exec(ctx, r.conn, `SELECT pg_advisory_unlock(`+lock+`)`, at.name())
	return err
}
