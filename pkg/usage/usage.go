// Package usage counts how much each tenant uses (docs/operations.md#usage): logins, mails, text messages. A count is
// kept in memory and added to the table of the service's schema every few seconds, so that a login costs no write; a
// process that is killed loses those seconds.
package usage

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

//go:embed migrations/*.sql
var files embed.FS

// Migrations makes the table in a service's schema.
func Migrations() fs.FS { return pg.Embedded(files) }

// Rows are the counts that have expired, for the purge.
var Rows = purgesql.Rows{Table: "usage_counts", Time: "expires_at"}

const (
	flushInterval = 3 * time.Second
	flushTimeout  = 5 * time.Second // of the last flush of a process
)

// What is counted. A failed login is counted by its code.
const (
	login  = "login"
	failed = "failed " // and the code
	mail   = "mail"
	text   = "text"
)

// Counter counts for one process of a service.
type Counter struct {
	db  *pg.DB
	now func() time.Time

	mu     sync.Mutex
	counts map[count]int64
}

var _ usageapi.API = (*Counter)(nil)

// count is what is counted of a tenant, in the hour or day that starts at a time (Unix seconds).
type count struct {
	tenant  id.ID
	span    string // usageapi.Hour or Day
	startAt int64
	what    string
}

// NewCounter makes the counter of a service.
func NewCounter(db *pg.DB, now func() time.Time) *Counter {
	return &Counter{db: db, now: now, counts: map[count]int64{}}
}

// AddLogin counts the attempt of a person to log in, by its outcome. A malformed attempt, and one that a failure of the
// deployment ended, is not counted.
func (c *Counter) AddLogin(tenant id.ID, outcome error) {
	if outcome == nil {
		c.add(tenant, login)
		return
	}
	if code := apierr.From(outcome).Code; isFailedLogin(code) {
		c.add(tenant, failed+strconv.Itoa(code))
	}
}

// isFailedLogin reports whether an error of a code refused an attempt: the codes of logins, accounts and stores,
// factors, agents, providers, and those of the lockout.
func isFailedLogin(code int) bool {
	switch {
	case code/100 == 71, code/100 == 72, code/1000 == 9, code/100 == 101:
		return true
	}
	return code == 4605 || code == 5105 || code == apierr.TooMany.Code
}

// AddMail counts a mail that the mail server has taken.
func (c *Counter) AddMail(tenant id.ID) { c.add(tenant, mail) }

// AddText counts a text message that the SMS provider has taken.
func (c *Counter) AddText(tenant id.ID) { c.add(tenant, text) }

func (c *Counter) add(tenant id.ID, what string) {
	now := c.now().UTC()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[count{tenant, usageapi.Hour, now.Truncate(time.Hour).Unix(), what}]++
	c.counts[count{tenant, usageapi.Day, now.Truncate(24 * time.Hour).Unix(), what}]++
}

// Run is the worker that flushes the counts until ctx ends, and then those that are left.
func (c *Counter) Run(ctx context.Context) error {
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			c.flushOrKeep(last)
			return nil
		case <-ticker.C:
			c.flushOrKeep(ctx)
		}
	}
}

func (c *Counter) flushOrKeep(ctx context.Context) {
	if err := c.Flush(ctx); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "the counts of usage could not be written, retrying", "error", err.Error())
	}
}

// Flush adds the counts to the table. Those that it could not write are kept.
func (c *Counter) Flush(ctx context.Context) error {
	c.mu.Lock()
	taken := c.counts
	c.counts = map[count]int64{}
	c.mu.Unlock()
	if len(taken) == 0 {
		return nil
	}
	if err := c.write(ctx, taken); err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		for key, n := range taken {
			c.counts[key] += n
		}
		return err
	}
	return nil
}

// write adds counts to their rows in one statement. The order of the rows is that of all processes, so that two wait
// for each other and do not deadlock.
func (c *Counter) write(ctx context.Context, counts map[count]int64) error {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b count) int {
		return cmp.Or(bytes.Compare(a.tenant[:], b.tenant[:]), cmp.Compare(a.span, b.span),
			cmp.Compare(a.startAt, b.startAt), cmp.Compare(a.what, b.what))
	})
	tenants, spans, whats := make([]id.ID, len(keys)), make([]string, len(keys)), make([]string, len(keys))
	starts, ends, ns := make([]time.Time, len(keys)), make([]time.Time, len(keys)), make([]int64, len(keys))
	for i, k := range keys {
		tenants[i], spans[i], whats[i], ns[i], starts[i] = k.tenant, k.span, k.what, counts[k], time.Unix(k.startAt, 0)
		ends[i] = starts[i].Add(usageapi.KeepDays)
		if k.span == usageapi.Hour {
			ends[i] = starts[i].Add(usageapi.KeepHours)
		}
	}
	_, err := pg.Exec(ctx, c.db, `INSERT INTO usage_counts AS u (tenant_id, span, starts_at, what, n, expires_at)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::text[], $5::bigint[], $6::timestamptz[])
		ON CONFLICT (tenant_id, span, starts_at, what) DO UPDATE SET n = u.n + excluded.n`,
		tenants, spans, starts, whats, ns, ends)
	return err
}

// Usage returns what the service has counted.
func (c *Counter) Usage(ctx context.Context, in usageapi.Query) (usageapi.Report, error) {
	return Read(ctx, c.db, in)
}

// Read returns what the service of a database has counted, the newest first. It returns apierr.ParameterInvalid for
// more than usageapi.MaxCounts.
func Read(ctx context.Context, db pg.Querier, in usageapi.Query) (report usageapi.Report, err error) {
	span, trunc := usageapi.Day, in.By
	if in.By == usageapi.Hour {
		span = usageapi.Hour
	}
	report.Counts, err = pg.All[usageapi.Count](ctx, db, `SELECT tenant_id, date_trunc($5, starts_at, 'UTC') AS since,
			coalesce(sum(n) FILTER (WHERE what = 'login'), 0)::bigint AS logins,
			coalesce(sum(n) FILTER (WHERE what LIKE 'failed %'), 0)::bigint AS failed_logins,
			coalesce(sum(n) FILTER (WHERE what = 'mail'), 0)::bigint AS mails,
			coalesce(sum(n) FILTER (WHERE what = 'text'), 0)::bigint AS texts
		FROM usage_counts WHERE ($1::uuid[] IS NULL OR tenant_id = ANY ($1)) AND span = $2 AND starts_at >= $3
		AND starts_at < $4
		GROUP BY 1, 2 ORDER BY 2 DESC, 1 LIMIT $6`,
		pg.CustomPlan, in.Tenants, span, in.From, in.Until, trunc, usageapi.MaxCounts+1)
	if err == nil && len(report.Counts) > usageapi.MaxCounts {
		return usageapi.Report{}, apierr.ParameterInvalid.Because(
			"this is more than %d rows; ask for one tenant, for fewer days, or by "+
				"month", usageapi.MaxCounts)
	}
	return report, err
}
