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
	workers = map[*atomic.Int64]bool{} // time of the last purge of each worker, in nanoseconds since 1970
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

// registerWorker adds a worker to the metric doorward_purge_age_seconds; unregister removes it.
func registerWorker() (last *atomic.Int64, unregister func()) {
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
