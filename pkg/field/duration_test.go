package field

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT1H":                     time.Hour,
		"PT0M":                     0,
		"PT0S":                     0,
		"P0D":                      0,
		"P60D":                     60 * day,
		"P10Y":                     3650 * day,
		"P1M":                      30 * day,
		"PT1M":                     time.Minute,
		"P2W":                      14 * day,
		"P1Y2M3W4DT5H6M7S":         (365+60+21+4)*day + 5*time.Hour + 6*time.Minute + 7*time.Second,
		"PT1.5S":                   1500 * time.Millisecond,
		"PT1,25S":                  1250 * time.Millisecond,
		"PT0.000000001S":           time.Nanosecond,
		"PT0000000000000000001S":   time.Second,
		"PT9223372036854775807S":   math.MaxInt64,
		"P99999999999999999999Y":   math.MaxInt64,
		"P292Y":                    292 * 365 * day,
		"P292YT9999999999999H":     math.MaxInt64,
		"P292YT9999999999999H1M1S": math.MaxInt64,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "P", "PT", "T1H", "1H", "P1", "PT1", "P1H", "PT1D", "P1S", "P1DT", "PTT1S", "PT1ST1S", "P1D1D", "PT1S1M", "P1D1Y", "-PT1H", "P-1D",
		"PT-1S",
		"PT1.S", "PT.5S", "PT1.5M", "P1.5D", "PT1.0000000001S", "PT1.5.5S", "pt1h", "PT1h", "PT1ſ", "PT1H ", " PT1H", "PT１H", "PT1H\x00",
		"P1DT1", "3600",
	} {
		if got, err := ParseDuration(text); !errors.Is(err, apierr.Format) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, apierr.Format)
		}
	}
}

// FuzzParseDuration checks that the parser never panics, never returns a negative duration, and
// accepts only text that begins with P and ends with a designator.
func FuzzParseDuration(f *testing.F) {
	for _, seed := range []string{"PT1H", "P60D", "P1Y2M3W4DT5H6M7.8S", "PT", "P1DT", "PT9223372036854775807S", "PT1.0000000001S"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			if !errors.Is(err, apierr.Format) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if d < 0 || !strings.HasPrefix(text, "P") || !strings.ContainsAny(text[len(text)-1:], "YMWDHS") {
			t.Fatalf("%q is %v", text, d)
		}
	})
}
