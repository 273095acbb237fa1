package notification

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/notification/mailtest"
)

// Not parallel: the metrics and the log are those of the process.
func TestAScrapeOfTheMetrics(t *testing.T) {
	former := slog.Default()
	started, err := telemetry.Start(t.Context(), "test", telemetry.Config{LogLevel: "error"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slog.SetDefault(former) })
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	scrape := func() string {
		t.Helper()
		answer, began := httptest.NewRecorder(), time.Now()
		started.Metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the scrape took %s", took)
		}
		return answer.Body.String()
	}
	want := func(when, metrics string, names ...string) {
		t.Helper()
		for _, name := range names {
			if !strings.Contains(metrics, "\n"+name) {
				t.Errorf("%s the metrics lack %s", when, name)
			}
		}
	}
	want("without a delivery", scrape(), "doorward_notification_deliveries_waiting 0",
		"doorward_notification_oldest_delivery_seconds 0", "doorward_notification_logouts_waiting 0")
	o.order(s, 2)
	o.endSession(s, o.tenant, id.New(clock), id.New(clock), id.New(clock))
	o.turn(90 * time.Second)
	want("with two deliveries", scrape(), "doorward_notification_deliveries_waiting 2",
		"doorward_notification_oldest_delivery_seconds 90", "doorward_notification_smtp_circuit_open 0",
		"doorward_notification_logouts_waiting 3")

	t.Run("while the deliveries are locked", func(t *testing.T) {
		err := o.db.InTx(t.Context(), func(tx *pg.Tx) error {
			if _, err := pg.Exec(t.Context(), tx, `LOCK TABLE deliveries IN ACCESS EXCLUSIVE MODE`); err != nil {
				return err
			}
			metrics := scrape()
			want("with a locked table", metrics, "doorward_notification_smtp_circuit_open 0", "doorward_db_connections{")
			if strings.Contains(metrics, "\ndoorward_notification_deliveries_waiting ") {
				t.Error("the number of deliveries in a locked table is reported")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
	t.Run("while the pool is used up", func(t *testing.T) {
		for range o.db.Stat().MaxConns() {
			conn, err := o.db.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
		}
		want("with a pool that is used up", scrape(), "doorward_db_connections{")
	})
}
