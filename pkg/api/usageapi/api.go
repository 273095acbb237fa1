// Package usageapi is the contract by which services report how much each tenant uses: the application service counts
// logins, the notification service mails and text messages (package usage).
package usageapi

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

//go:generate go run ../internal/generate usage API

// API is implemented by each service that counts.
type API interface {
	// Usage returns what the service has counted, the newest first, none empty. It returns apierr.ParameterInvalid for
	// more than MaxCounts.
	Usage(context.Context, Query) (Report, error)
}

// The lengths of time by which counts are summed.
const (
	Hour  = "hour"
	Day   = "day" // of UTC
	Month = "month"
)

// MaxCounts is how many counts a report has at most.
const MaxCounts = 50_000

// Query says which counts are asked for.
type Query struct {
	Tenants []id.ID   `json:"tenants,omitempty"` // none: of all tenants
	From    time.Time `json:"from"`              // inclusive
	Until   time.Time `json:"until"`             // exclusive
	By      string    `json:"by"`                // Hour, Day or Month
}

// Report is what a service has counted.
type Report struct {
	Counts []Count `json:"counts"`
}

// Count is what a tenant used within an hour, a day or a month.
type Count struct {
	Tenant       id.ID     `json:"tenant" db:"tenant_id"`
	From         time.Time `json:"from" db:"since"`
	Logins       int64     `json:"logins"`
	FailedLogins int64     `json:"failedLogins"`
	Mails        int64     `json:"mails"` // taken by the mail server
	Texts        int64     `json:"texts"` // taken by the SMS provider
}

// How long hours and days are kept.
const (
	KeepHours = 35 * 24 * time.Hour
	KeepDays  = 400 * 24 * time.Hour
)

// defaultDays is how many days a query has that names none.
const defaultDays = 30

// ParseQuery returns the query of parameters as texts: two days, both inclusive, and Hour, Day or Month. It returns
// apierr.ParameterInvalid, and apierr.RangeReversed.
func ParseQuery(from, to, by string, now time.Time) (Query, error) {
	q := Query{By: cmp.Or(by, Day), Until: now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)}
	if !slices.Contains([]string{Hour, Day, Month}, q.By) {
		return q, apierr.ParameterInvalid.Because("by is hour, day or month, not %q", by)
	}
	if to != "" {
		last, err := parseDay("to", to)
		if err != nil {
			return q, err
		}
		q.Until = last.AddDate(0, 0, 1)
	}
	q.From = q.Until.AddDate(0, 0, -defaultDays)
	if from != "" {
		var err error
		if q.From, err = parseDay("from", from); err != nil {
			return q, err
		}
	}
	if !q.From.Before(q.Until) {
		return q, apierr.RangeReversed.Because("to is before from")
	}
	if q.By == Hour && q.From.Before(now.Add(-KeepHours)) {
		return q, apierr.ParameterInvalid.Because("hours are kept for 35 days; ask for days, or from a later one")
	}
	return q, nil
}

func parseDay(name, text string) (time.Time, error) {
	day, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return day, apierr.ParameterInvalid.Because("%s is a day such as 2026-11-27, not %q", name, text)
	}
	return day, nil
}

// Totals adds up what several services have counted of each tenant.
func Totals(reports ...Report) map[id.ID]Count {
	sums := map[id.ID]Count{}
	for _, c := range Merge(reports...) {
		sum := sums[c.Tenant]
		sum.Logins, sum.FailedLogins = sum.Logins+c.Logins, sum.FailedLogins+c.FailedLogins
		sum.Mails, sum.Texts = sum.Mails+c.Mails, sum.Texts+c.Texts
		sums[c.Tenant] = sum
	}
	return sums
}

// Merge adds up what several services have counted, the newest first, then by tenant.
func Merge(reports ...Report) []Count {
	type key struct {
		tenant id.ID
		from   int64
	}
	sums := map[key]*Count{}
	for _, report := range reports {
		for _, c := range report.Counts {
			at := key{c.Tenant, c.From.Unix()}
			sum, ok := sums[at]
			if !ok {
				sum = &Count{Tenant: c.Tenant, From: c.From.UTC()}
				sums[at] = sum
			}
			sum.Logins, sum.FailedLogins = sum.Logins+c.Logins, sum.FailedLogins+c.FailedLogins
			sum.Mails, sum.Texts = sum.Mails+c.Mails, sum.Texts+c.Texts
		}
	}
	all := make([]Count, 0, len(sums))
	for _, sum := range sums {
		all = append(all, *sum)
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(b.From.Compare(a.From), slices.Compare(a.Tenant[:], b.Tenant[:]))
	})
	return all
}
