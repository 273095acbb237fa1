package pg_test

import (
	"testing"
	"time"
)

// An idle deployment keeps few sessions of PostgreSQL, each of which takes some MiB.
func TestConnectionsThatNothingUsesAreClosedWithinSeconds(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	cfg := db.Config()
	if longest := cfg.MaxConnIdleTime + cfg.HealthCheckPeriod; longest > 15*time.Second || cfg.MinConns != 0 || cfg.MinIdleConns != 0 {
		t.Errorf("a connection that nothing uses is kept for up to %s, and at least %d of them", longest, max(cfg.MinConns, cfg.MinIdleConns))
	}
}
