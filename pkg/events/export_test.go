package events

import (
	"context"
	"time"
)

// SetPace lets tests fail fast: it sets the first pause after a failure.
func SetPace(first time.Duration) { firstPause = first }

// ForgetOnce lets a test drop what was seen long ago.
func (o *Outbox) ForgetOnce(ctx context.Context) error { return o.forget(ctx) }

// ErrTaken is what a transaction of a stale holder ends with.
var ErrTaken = errTaken
