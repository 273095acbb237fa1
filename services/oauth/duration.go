package oauth

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

const day = 24 * time.Hour

// designators are the parts of an ISO 8601 duration in their order. A year has
// 365 days and a month 30 (resolutions, section 8.3).
var designators = []struct {
	letter byte
	clock  bool // after the T
	unit   time.Duration
}{
	{'Y', false, 365 * day}, {'M', false, 30 * day}, {'W', false, 7 * day}, {'D', false, day},
	{'H', true, time.Hour}, {'M', true, time.Minute}, {'S', true, time.Second},
}

// parseDuration reads an ISO 8601 duration such as PT1H, P60D or P1DT12H. Only
// seconds may have a fraction, of at most nine digits. What is longer than a
// time.Duration can hold (292 years) is that longest one. Other text is
// apierr.Format.
func parseDuration(text string) (time.Duration, error) {
	malformed := apierr.Format.Because("%q is not an ISO 8601 duration such as PT1H or P60D", text)
	rest, ok := strings.CutPrefix(text, "P")
	if !ok {
		return 0, malformed
	}
	var total time.Duration
	next, clock := 0, false // the first designator that may come, and whether the T has
	for first := true; rest != "" || first; first = false {
		if strings.HasPrefix(rest, "T") && !clock {
			clock, rest = true, rest[1:]
		}
		whole := digits(rest)
		fraction := ""
		rest = rest[len(whole):]
		if rest != "" && (rest[0] == '.' || rest[0] == ',') {
			fraction = digits(rest[1:])
			rest = rest[1+len(fraction):]
			if fraction == "" || len(fraction) > 9 || !strings.HasPrefix(rest, "S") {
				return 0, malformed
			}
		}
		if whole == "" || rest == "" {
			return 0, malformed
		}
		for next < len(designators) && (designators[next].letter != rest[0] || designators[next].clock != clock) {
			next++
		}
		if next == len(designators) {
			return 0, malformed
		}
		total = sum(total, times(whole, designators[next].unit))
		if fraction != "" {
			total = sum(total, times((fraction + "000000000")[:9], time.Nanosecond))
		}
		next++
		rest = rest[1:]
	}
	return total, nil
}

// digits gives the decimal digits at the beginning of text.
func digits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

// times multiplies, up to the longest duration.
func times(number string, unit time.Duration) time.Duration {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// sum adds, up to the longest duration.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
