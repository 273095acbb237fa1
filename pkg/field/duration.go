package field

import (
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

const day = 24 * time.Hour

// isoDuration is an ISO 8601 duration whose parts are units, in their order. The
// library sosodev/duration reads parts in any order, fractions of all of them, and
// numbers as floats, which lose the last seconds of long lifetimes.
var isoDuration = regexp.MustCompile(`^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?` +
	`(T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d{1,9}))?S)?)?$`)

// units are the lengths of the groups of isoDuration, zero for that of the clock
// part. A year has 365 days and a month 30 (docs/interface/oauth.md#token-contents).
var units = []time.Duration{365 * day, 30 * day, 7 * day, day, 0, time.Hour, time.Minute, time.Second, time.Nanosecond}

// ParseDuration reads an ISO 8601 duration such as PT1H, P60D or P1DT12H. Only
// seconds may have a fraction. A duration longer than time.Duration can hold (292
// years) is read as the longest one. Other text is apierr.Format.
func ParseDuration(text string) (time.Duration, error) {
	groups := isoDuration.FindStringSubmatch(text)
	if groups == nil || text[len(text)-1] == 'P' || text[len(text)-1] == 'T' {
		return 0, apierr.Format.Because("%q is not an ISO 8601 duration such as PT1H or P60D", text)
	}
	var total time.Duration
	for i, number := range groups[1:] {
		if number == "" || units[i] == 0 {
			continue
		}
		if units[i] == time.Nanosecond {
			number = (number + "000000000")[:9]
		}
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n > (math.MaxInt64-int64(total))/int64(units[i]) {
			return math.MaxInt64, nil
		}
		total += time.Duration(n) * units[i]
	}
	return total, nil
}

// Duration checks an ISO 8601 duration and returns its text unchanged. A longer one than most is
// apierr.AfterMaximum, a shorter one than least apierr.BelowMinimum.
func Duration(in Text, name string, least, most time.Duration) (string, error) {
	text, err := Required(in, name, 255)
	if err != nil {
		return "", err
	}
	d, err := ParseDuration(text)
	switch {
	case err != nil:
		return "", apierr.Format.Because("%s: %s", name, apierr.From(err).Reason)
	case d < least:
		return "", apierr.BelowMinimum.Because("%s must be at least %s", name, least)
	case d > most:
		return "", apierr.AfterMaximum.Because("%s must be at most %s", name, most)
	}
	return text, nil
}
