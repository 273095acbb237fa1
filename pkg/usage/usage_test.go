package usage

import (
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/clocktest"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func config(url secure.Secret) pg.Config {
	return pg.Config{URL: url, Schema: "usage", Migrations: []fs.FS{Migrations()}}
}

// Two processes count into one row, and what is read is that of the tenant, the hours and days that are asked for.
func TestUsageIsCounted(t *testing.T) {
	t.Parallel()
	db, clock := pgtest.Open(t, config), &clocktest.Clock{}
	tenant, other := id.New(clock.Now()), id.New(clock.Now().Add(time.Second))
	one, two := NewCounter(db, clock.Now), NewCounter(db, clock.Now)
	for _, outcome := range []error{
		nil, apierr.WrongPassword, apierr.TooMany, errors.New("a failure of the deployment"), apierr.Required, apierr.Unavailable,
	} {
		one.AddLogin(tenant, outcome)
	}
	two.AddLogin(tenant, nil)
	two.AddMail(tenant)
	two.AddText(tenant)
	two.AddLogin(other, nil)
	for _, c := range []*Counter{one, two, one} {
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	clock.Move(25 * time.Hour)
	one.AddMail(tenant)
	if err := one.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(of id.ID, from, to, by string) []usageapi.Count {
		t.Helper()
		query, err := usageapi.ParseQuery(from, to, by, clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		if !of.IsZero() {
			query.Tenants = []id.ID{of}
		}
		report, err := one.Usage(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		return usageapi.Merge(report)
	}
	sum := usageapi.Count{Tenant: tenant, Logins: 2, FailedLogins: 2, Mails: 1, Texts: 1}
	for _, by := range []string{usageapi.Hour, usageapi.Day, ""} {
		got := read(tenant, "", "", by)
		if len(got) != 2 || got[0].Mails != 1 || got[0].Logins != 0 || !got[0].From.After(got[1].From) {
			t.Fatalf("by %s the tenant used %+v", by, got)
		}
		sum.From = got[1].From
		if got[1] != sum {
			t.Errorf("by %s the tenant used %+v, want %+v", by, got[1], sum)
		}
	}
	yesterday := clock.Now().Add(-25 * time.Hour).Format(time.DateOnly)
	if got := read(id.ID{}, yesterday, yesterday, usageapi.Day); len(got) != 2 || got[1].Tenant != other || got[1].Logins != 1 {
		t.Errorf("on %s all tenants used %+v", yesterday, got)
	}
	total := int64(0)
	for _, c := range read(tenant, "", "", usageapi.Month) {
		total += c.Mails
		if c.From.Day() != 1 || c.From.Hour() != 0 {
			t.Errorf("a month begins at %s", c.From)
		}
	}
	if total != 2 {
		t.Errorf("by month the tenant has %d mails, want 2", total)
	}
}

// What could not be written is written later, and a process that stops writes what it has.
func TestCountsAreNotLost(t *testing.T) {
	t.Parallel()
	db, tenant := pgtest.Open(t, config), id.New(time.Now())
	c := NewCounter(db, time.Now)
	c.AddMail(tenant)
	if _, err := db.Exec(t.Context(), `ALTER TABLE usage_counts RENAME TO elsewhere`); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(t.Context()); err == nil {
		t.Fatal("counts are written without their table")
	}
	if _, err := db.Exec(t.Context(), `ALTER TABLE elsewhere RENAME TO usage_counts`); err != nil {
		t.Fatal(err)
	}
	stop := worktest.Start(t, c.Run)
	c.AddMail(tenant)
	stop()
	query, err := usageapi.ParseQuery("", "", "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if report, err := c.Usage(t.Context(), query); err != nil || len(report.Counts) != 1 || report.Counts[0].Mails != 2 {
		t.Errorf("two mails are counted as %+v, %v", report, err)
	}
}

func TestQueriesOfUsage(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 13, 0, 0, 0, time.UTC)
	q, err := usageapi.ParseQuery("", "", "", now)
	if err != nil || q.By != usageapi.Day || q.From.Format(time.DateOnly) != "2026-10-30" || q.Until.Format(time.DateOnly) != "2026-11-29" {
		t.Errorf("without parameters the query is %+v, %v", q, err)
	}
	for _, c := range []struct {
		from, to, by string
		want         error
	}{
		{"2026-11-01", "2026-11-01", "hour", nil}, {"yesterday", "", "", apierr.ParameterInvalid}, {"", "2026-13-01", "", apierr.ParameterInvalid},
		{"", "", "week", apierr.ParameterInvalid}, {"2026-11-02", "2026-11-01", "", apierr.RangeReversed},
		{"2026-10-01", "", "hour", apierr.ParameterInvalid}, {"2026-10-01", "", "month", nil},
	} {
		if _, err := usageapi.ParseQuery(c.from, c.to, c.by, now); !errors.Is(err, c.want) {
			t.Errorf("the query from %q to %q by %q returns %v, want %v", c.from, c.to, c.by, err, c.want)
		}
	}
}
