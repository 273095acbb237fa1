package outbox

import (
	"context"
	"log/slog"

	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// addToLag adds the partition to those whose consumer lag (doorward_events_lag) reportLag reports,
// until end is called. Then the next member that reads the partition reports its lag.
func (p *partition) addToLag(ctx context.Context) (end func()) {
	c := p.consumer
	c.assignedMu.Lock()
	defer c.assignedMu.Unlock()
	c.assigned[p] = true
	return func() {
		c.assignedMu.Lock()
		defer c.assignedMu.Unlock()
		delete(c.assigned, p)
		c.lag.Record(ctx, 0, p.labels())
	}
}

// recordLag reports how many events of the partition are not handled yet, from the last answer of
// the broker.
func (p *partition) recordLag(ctx context.Context) {
	if next := p.next.Load(); next >= 0 { // kafka.FirstOffset until the first fetch
		p.lag.Record(ctx, max(0, p.end.Load()-next), p.labels())
	}
}

func (p *partition) labels() metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("group", p.group),
		attribute.String("topic", p.topic), attribute.Int("partition", p.number))
}

// reportLag updates the lag of partitions each lagInterval, until ctx ends. It asks the broker only for
// partitions without a fetch in flight, whose handler is busy or blocked: recordLag reports the lag of
// the others by the answer to their fetch.
func (c *consumer) reportLag(ctx context.Context) {
	for wait(ctx, c.outbox.lagInterval) == nil {
		if err := c.updateLag(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "asking for the ends of partitions failed, retrying", "topic", c.group, "error",
				err.Error())
		}
	}
}

// updateLag requests the first and last offsets of the partitions without a fetch in flight from the broker.
func (c *consumer) updateLag(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	topics := map[string][]int{}
	c.assignedMu.Lock()
	for p := range c.assigned {
		if !p.fetching.Load() {
			topics[p.topic] = append(topics[p.topic], p.number)
		}
	}
	c.assignedMu.Unlock()
	if len(topics) == 0 {
		return nil
	}
	found, err := offsets(ctx, c.client, topics, kafka.FirstOffsetOf, kafka.LastOffsetOf)
	if err != nil {
		return err
	}
	c.assignedMu.Lock()
	defer c.assignedMu.Unlock() // so that the lag of a revoked partition stays 0
	for p := range c.assigned {
		if at, known := found[p.topic][p.number]; known {
			p.end.Store(at.LastOffset)
			c.lag.Record(ctx, max(0, at.LastOffset-max(at.FirstOffset, p.next.Load())), p.labels())
		}
	}
	return nil
}

// offsets returns the answers of the brokers to offset requests for each of the partitions.
func offsets(ctx context.Context, client *kafka.Client, topics map[string][]int,
	requests ...func(partition int) kafka.OffsetRequest) (
	map[string]map[int]kafka.PartitionOffsets, error,
) {
	asked := map[string][]kafka.OffsetRequest{}
	for topic, partitions := range topics {
		for _, p := range partitions {
			for _, request := range requests {
				asked[topic] = append(asked[topic], request(p))
			}
		}
	}
	answer, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked})
	if err != nil {
		return nil, err
	}
	found := map[string]map[int]kafka.PartitionOffsets{}
	for topic, partitions := range answer.Topics {
		found[topic] = map[int]kafka.PartitionOffsets{}
		for _, p := range partitions {
			if p.Error != nil {
				return nil, p.Error
			}
			found[topic][p.Partition] = p
		}
	}
	return found, nil
}
