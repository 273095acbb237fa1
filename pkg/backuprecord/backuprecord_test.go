package backuprecord_test

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry/metrictest"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestTheLastBackupIsRecordedAndReported(t *testing.T) {
	db, err := pg.Open(t.Context(), pg.Config{
		URL: secure.Secret(pgtest.New(t, nil)), Schema: "vault", Migrations: []fs.FS{backuprecord.Migrations()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	worktest.Start(t, backuprecord.Metric(db))
	if _, err := backuprecord.Last(t.Context(), db); !errors.Is(err, apierr.NotFound) {
		t.Errorf("without a backup the last one is %v", err)
	}
	wantAge(t, 0)
	now := time.Now().UTC().Truncate(time.Second)
	for _, at := range []time.Time{now.Add(-2 * time.Hour), now.Add(-time.Hour), now.Add(-3 * time.Hour)} {
		if err := backuprecord.Record(t.Context(), db, at); err != nil {
			t.Fatal(err)
		}
	}
	if last, err := backuprecord.Last(t.Context(), db); err != nil || !last.Equal(now.Add(-time.Hour)) {
		t.Errorf("the last backup is of %s, %v, want the newest", last, err)
	}
	wantAge(t, time.Hour)
}

// wantAge waits for the metric, which the worker registers, and wants its value within a minute.
func wantAge(t *testing.T, want time.Duration) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		found, err := metrictest.Find(t.Context(), "doorward_backup_age_seconds")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the metric is %v, %v", found, err)
		}
		if len(found) == 0 {
			continue
		}
		tick.Stop()
		got := found[0].Data.(metricdata.Gauge[float64]).DataPoints[0].Value
		if off := time.Duration(got*float64(time.Second)) - want; off < 0 || off > time.Minute {
			t.Errorf("the age of the backup is %.1f s, want %s", got, want)
		}
		return
	}
}
