package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// scrapeTimeout bounds the queries of all observable gauges in one scrape together.
// The SDK runs them one after the other, and Prometheus drops a scrape of more than ten
// seconds, with the metrics that say why it took so long.
const scrapeTimeout = 2 * time.Second

// scrapeEnd is when the queries of the scrape under way have to end; nil while none is.
var scrapeDeadline atomic.Pointer[time.Time]

// scrape gives the queries of a scrape their time.
func withScrapeTimeout(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(scrapeTimeout)
		scrapeDeadline.Store(&end)
		defer scrapeDeadline.CompareAndSwap(&end, nil) // of several scrapes at once the last one counts
		metrics.ServeHTTP(w, r)
	})
}

// QueryContext returns the context of the query that an observable gauge makes, in no
// trace. It may take half of the time that the scrape has left, one second at first, so
// that a table that is locked makes its own metrics be missing, and not the others.
func QueryContext(ctx context.Context) (context.Context, context.CancelFunc) {
	left := scrapeTimeout
	if end := scrapeDeadline.Load(); end != nil {
		left = time.Until(*end)
	}
	return context.WithTimeout(Untraced(ctx), left/2)
}
