package list

import (
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

// layouts are the prefixes of an ISO-8601 datetime, each with the length of
// the period that it names.
var layouts = []struct {
	layout string
	next   func(time.Time) time.Time
}{
	{"2006", func(t time.Time) time.Time { return t.AddDate(1, 0, 0) }},
	{"2006-01", func(t time.Time) time.Time { return t.AddDate(0, 1, 0) }},
	{"2006-01-02", func(t time.Time) time.Time { return t.AddDate(0, 0, 1) }},
	{"2006-01-02T15", func(t time.Time) time.Time { return t.Add(time.Hour) }},
	{"2006-01-02T15:04", func(t time.Time) time.Time { return t.Add(time.Minute) }},
	{"2006-01-02T15:04:05", func(t time.Time) time.Time { return t.Add(time.Second) }},
	{"2006-01-02T15:04:05.000", func(t time.Time) time.Time { return t.Add(time.Millisecond) }},
}

// period gives the first instant of the period that value names, and the first
// after it.
func period(value string) (from, until time.Time, err error) {
	text := strings.TrimSuffix(strings.TrimSpace(value), "Z")
	for _, l := range layouts {
		if len(text) != len(l.layout) {
			continue
		}
		if t, err := time.Parse(l.layout, text); err == nil && t.After(time.Time{}) { // the zero time means an open end
			return t, l.next(t), nil
		}
	}
	return from, until, apierr.ParameterInvalid.Because("%q is not the beginning of a datetime such as 2026-11-20T20:25:00.000Z", value)
}

// parsePeriod reads a datetime search (resolutions, section 7.3): a bare
// prefix, or a range whose square brackets include and whose round ones
// exclude the period at that end. A zero time is an open end.
func parsePeriod(value string) (from, until time.Time, err error) {
	value = strings.TrimSpace(value)
	if value == "" || !strings.ContainsRune("[(", rune(value[0])) {
		return period(value)
	}
	last := value[len(value)-1]
	if len(value) < 2 || (last != ']' && last != ')') {
		return from, until, apierr.ParameterInvalid.Because("the range %q has no closing bracket", value)
	}
	low, high, isRange := strings.Cut(value[1:len(value)-1], ",")
	low, high = strings.TrimSpace(low), strings.TrimSpace(high)
	if !isRange {
		return period(low)
	}
	if low == "" && high == "" {
		return from, until, apierr.ParameterInvalid.Because("the range %q has no end", value)
	}
	var start time.Time
	if low != "" {
		first, after, err := period(low)
		if err != nil {
			return from, until, err
		}
		start = first
		if from = first; value[0] == '(' {
			from = after
		}
	}
	if high != "" {
		first, after, err := period(high)
		if err != nil {
			return from, until, err
		}
		if until = after; last == ')' {
			until = first
		}
		if first.Before(start) {
			return from, until, apierr.RangeReversed.Because("the range %q ends before it starts", value)
		}
	}
	return from, until, nil
}

// Start gives the first instant of the period that text names, if it is a
// datetime or the beginning of one.
func Start(text string) (time.Time, bool) {
	from, _, err := period(text)
	return from, err == nil
}
