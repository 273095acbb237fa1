package list

import (
	"regexp"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

// layouts are the prefixes of an ISO 8601 datetime, each with the function that returns the end of the
// period that it names.
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
}

// timezone matches the time zone at the end of a datetime. In a query the plus sign of an offset may
// have been decoded to a space. An offset is less than a day (RFC 3339, section 5.6).
var timezone = regexp.MustCompile(`(T[0-9:.]+)(Z|[+ -]([01][0-9]|2[0-3]):[0-5][0-9])$`)

// period returns the first instant of the period that value names, and the first instant after it. It
// refuses the zero time, which means an open end.
func period(value string) (from, until time.Time, err error) {
	text, zone := strings.TrimSpace(value), time.UTC
	if found := timezone.FindStringSubmatchIndex(text); found != nil {
		offset := strings.Replace(text[found[4]:], " ", "+", 1)
		text = text[:found[4]]
		if at, err := time.Parse("Z07:00", offset); err == nil {
			zone = at.Location()
		}
	}
	text = strings.TrimSuffix(text, "Z")
	whole, fraction, hasFraction := strings.Cut(text, ".")
	for _, l := range layouts {
		if len(whole) != len(l.layout) {
			continue
		}
		t, err := time.ParseInLocation(l.layout, whole, zone)
		if err != nil || !t.After(time.Time{}) {
			continue
		}
		if !hasFraction {
			return t.UTC(), l.next(t).UTC(), nil
		}
		if l.layout == time.DateOnly+"T"+time.TimeOnly && isFraction(fraction) {
			return fractionOf(t.UTC(), fraction)
		}
	}
	return from, until, apierr.ParameterInvalid.Because(
		"%q is not the beginning of a datetime such as 2026-11-20T20:25:00.000Z", value)
}

func isFraction(digits string) bool {
	return len(digits) >= 1 && len(digits) <= 9 && strings.Trim(digits, "0123456789") == ""
}

// fractionOf returns the period that a fraction of a second names, of at least a microsecond, the
// precision of the database.
func fractionOf(second time.Time, digits string) (from, until time.Time, err error) {
	nanoseconds, err := time.ParseDuration("0." + digits + "s")
	length := time.Second
	for range digits {
		length /= 10
	}
	from = second.Add(nanoseconds).Truncate(time.Microsecond)
	return from, from.Add(max(length, time.Microsecond)), err
}

// parsePeriod parses a filter by datetime (docs/interface/search.md#datetimes): a prefix of a datetime,
// or a range whose square brackets include, and whose round brackets exclude, the period at that end.
// A zero time is an open end.
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

// Start returns the first instant of the period that text names, if it is a
// datetime or the beginning of one.
func Start(text string) (time.Time, bool) {
	from, _, err := period(text)
	return from, err == nil
}
