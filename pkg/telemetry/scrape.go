package telemetry

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// scrapeTimeout bounds the database queries of all observable gauges in one scrape together. The
// SDK runs them one after the other, and Prometheus drops a scrape that takes more than ten
// seconds, and with it the metrics that tell the reason.
const scrapeTimeout = 2 * time.Second

// scrapeDeadline is when the queries of the running scrape have to end; nil while none runs.
var scrapeDeadline atomic.Pointer[time.Time]

// withScrapeTimeout sets the deadline of the queries of each scrape.
func withScrapeTimeout(metrics http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end := time.Now().Add(scrapeTimeout)
		scrapeDeadline.Store(&end)
		defer scrapeDeadline.CompareAndSwap(&end, nil) // of concurrent scrapes the deadline of the last applies
		metrics.ServeHTTP(w, r)
	})
}

// QueryContext returns the context of the database query of an observable gauge, which is not
// traced. The query may take half of the time that the scrape has left, one second at first: when
// a table is locked, only its own metrics are missing.
func QueryContext(ctx context.Context) (context.Context, context.CancelFunc) {
	left := scrapeTimeout
	if end := scrapeDeadline.Load(); end != nil {
		left = time.Until(*end)
	}
	return context.WithTimeout(Untraced(ctx), left/2)
}
