package outbox

import (
	"context"
	"time"

	"github.com/segmentio/kafka-go"
)

// SetIntervals makes tests quick: it sets the first delay after a failure and the
// interval of heartbeats.
func SetIntervals(delay, heartbeat time.Duration) { firstBackoff, heartbeatInterval = delay, heartbeat }

// SetTimes sets the deadline of a handler and how often the lag is asked for.
func (o *Outbox) SetTimes(handler, lag time.Duration) { o.handlerTimeout, o.lagInterval = handler, lag }

// PurgeOnce deletes old entries of the list of seen events.
func (o *Outbox) PurgeOnce(ctx context.Context) error { return o.purgeSeen(ctx) }

// Sign returns the header of an envelope that is sent to the topic.
func Sign(cfg Config, topic string, envelope []byte) kafka.Header {
	s, err := newSigner(cfg)
	if err != nil {
		panic(err)
	}
	return s.signatureHeader(topic, envelope)
}
