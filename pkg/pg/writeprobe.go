package pg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	probeEvery   = 5 * time.Second
	probeAgain   = time.Second // after a write that failed
	probeTimeout = 4 * time.Second
)

// ErrOnlyReads is in the error of WriteProbe.Check while the database can be read and not be written to.
var ErrOnlyReads = errors.New("the database can only be read")

// WriteProbe writes a row of write_probes each five seconds, so that a database that cannot be written to is
// known without a request: one that is read-only, has no space left, or cannot load PL/pgSQL.
type WriteProbe struct {
	db     *DB
	writer string // the row of this process
	now    func() time.Time

	mu      sync.Mutex
	written bool          // a write of this process has succeeded
	failure error         // of the last write
	clock   time.Duration // between this machine and PostgreSQL, at the last write that succeeded
}

// NewWriteProbe returns the probe of a schema.
func NewWriteProbe(db *DB) *WriteProbe {
	return &WriteProbe{db: db, writer: telemetry.InstanceID(), now: time.Now}
}

// Run is the worker that writes until ctx ends.
func (p *WriteProbe) Run(ctx context.Context) error {
	ctx = telemetry.Untraced(ctx)
	for _, register := range []func() (metric.Registration, error){p.registerMetrics, p.db.registerArchiveMetrics} {
		metrics, err := register()
		if err != nil {
			return err
		}
		defer func() { _ = metrics.Unregister() }() // never fails
	}
	for {
		pause := probeEvery
		if p.try(ctx) != nil {
			pause = probeAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// try writes once, and logs when that begins to fail, and when it ends.
func (p *WriteProbe) try(ctx context.Context) error {
	clock, err := p.db.probeWrite(ctx, p.writer, p.now)
	if ctx.Err() != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && p.failure == nil:
		slog.WarnContext(ctx, "the database cannot be written to", "schema", p.db.schema, "error", err.Error())
	case err == nil && p.failure != nil:
		slog.WarnContext(ctx, "the database can be written to again", "schema", p.db.schema)
	}
	p.failure, p.written = err, p.written || err == nil
	if err == nil {
		p.clock = clock
	}
	return err
}

// ProbeWrite writes the row of a writer through PL/pgSQL. It takes a connection of its own: a session that is
// open already keeps the language that it has loaded.
func (db *DB) ProbeWrite(ctx context.Context, writer string) error {
	_, err := db.probeWrite(ctx, writer, time.Now)
	return err
}

// probeWrite is ProbeWrite. It also returns the difference between the clocks of this machine and of PostgreSQL.
func (db *DB) probeWrite(ctx context.Context, writer string, now func() time.Time) (clock time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, db.Pool.Config().ConnConfig)
	if err != nil {
		return 0, Error(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var theirs time.Time
	before := now()
	err = conn.QueryRow(ctx, `SELECT probe_write($1), clock_timestamp()`, writer).Scan(nil, &theirs)
	if err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("a write took longer than %s: %w", probeTimeout, Error(err))
	}
	return theirs.Sub(before.Add(now().Sub(before) / 2)).Abs(), Error(err)
}

// Check is the readiness check. It fails until the first write of this process has succeeded, and while the
// database cannot be reached; while later writes fail, its error is ErrOnlyReads.
func (p *WriteProbe) Check(ctx context.Context) error {
	reached := p.db.Ping(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch failure := p.failure; {
	case !p.written && failure != nil:
		return errors.New(Cause(failure))
	case !p.written:
		return errors.Join(reached, errors.New("nothing has been written yet"))
	case reached == nil && failure == nil:
		return nil
	case reached == nil:
		return fmt.Errorf("%w: %s: %s", ErrOnlyReads, p.db.schema, Cause(failure))
	case strings.HasPrefix(Code(reached), "53"): // it has too many connections, or no memory for another
		return fmt.Errorf("%w: %s: %s", ErrOnlyReads, p.db.schema, Cause(reached))
	}
	return errors.New(Cause(reached))
}

// Reason returns what the error of Check says behind ErrOnlyReads: the schema, what failed and the SQLSTATE.
func Reason(err error) string { return strings.TrimPrefix(err.Error(), ErrOnlyReads.Error()+": ") }

// registerMetrics registers doorward_database_writable and doorward_database_clock_difference_seconds. The shard is the
// number of the database among those that hold the schema: there is one, 0.
func (p *WriteProbe) registerMetrics() (metric.Registration, error) {
	meter := otel.Meter("pg")
	writable, err := meter.Int64ObservableGauge("doorward_database_writable",
		metric.WithDescription("1 while the last write of the process to the schema has succeeded, else 0"))
	if err != nil {
		return nil, err
	}
	clock, err := meter.Float64ObservableGauge("doorward_database_clock_difference_seconds",
		metric.WithDescription(
			"difference between the clocks of the process and of PostgreSQL, at the last write to the schema"))
	if err != nil {
		return nil, err
	}
	of := metric.WithAttributes(attribute.String("schema", p.db.schema), attribute.String("shard", "0"))
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		value := int64(0)
		if p.written && p.failure == nil {
			value = 1
		}
		o.ObserveInt64(writable, value, of)
		if p.written {
			o.ObserveFloat64(clock, p.clock.Seconds(), metric.WithAttributes(attribute.String("schema", p.db.schema)))
		}
		return nil
	}, writable, clock)
}
