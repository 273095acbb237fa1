package purge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
)

var (
	mu      sync.Mutex
	workers = map[*atomic.Int64]bool{} // when each worker has last purged, in nanoseconds since 1970
	observe = sync.OnceFunc(func() {
		_, err := otel.Meter("purge").Float64ObservableGauge("doorward_purge_age_seconds", metric.WithUnit("s"),
			metric.WithDescription("time since the least recent purge among the purge workers of this process"),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				mu.Lock()
				defer mu.Unlock()
				now := time.Now().UnixNano()
				oldest := now
				for last := range workers {
					oldest = min(oldest, last.Load())
				}
				o.Observe(time.Duration(now - oldest).Seconds())
				return nil
			}))
		if err != nil {
			otel.Handle(err)
		}
	})
)

// observeAge makes the metric of a worker that begins; forget ends it.
func registerWorker() (last *atomic.Int64, forget func()) {
	observe()
	last = new(atomic.Int64)
	last.Store(time.Now().UnixNano())
	mu.Lock()
	defer mu.Unlock()
	workers[last] = true
	return last, func() {
		mu.Lock()
		defer mu.Unlock()
		delete(workers, last)
	}
}
