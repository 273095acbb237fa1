package id

import (
	"strings"
	"testing"
	"time"
)

func TestTextFormRoundTrips(t *testing.T) {
	now := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	for range 1000 {
		want := New(now)
		text := want.String()
		if len(text) != 22 {
			t.Fatalf("%q has %d characters, want 22", text, len(text))
		}
		got, err := Parse(text)
		if err != nil || got != want {
			t.Fatalf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestLaterIDsSortAfterEarlierOnes(t *testing.T) {
	now := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	earlier, later := New(now), New(now.Add(time.Millisecond))
	if earlier.String() >= later.String() {
		t.Fatalf("%s does not sort before %s", earlier, later)
	}
}

func TestParseRefusesWhatStringNeverWrites(t *testing.T) {
	for _, s := range []string{"", "abc", strings.Repeat("z", 22), strings.Repeat("0", 21) + "-", strings.Repeat("0", 23)} {
		if _, err := Parse(s); err == nil {
			t.Errorf("Parse(%q) succeeded", s)
		}
	}
}

func TestShape(t *testing.T) {
	for s, want := range map[string]bool{
		strings.Repeat("z", 22): true, strings.Repeat("0", 20): true, strings.Repeat("z", 23): false, strings.Repeat("a", 19): false,
		strings.Repeat("0", 20) + "-": false, New(time.Unix(0, 0)).String(): true,
	} {
		if HasShape(s) != want {
			t.Errorf("HasShape(%q) is %t", s, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(New(time.Unix(0, 0)).String())
	f.Add(strings.Repeat("z", 22))
	f.Fuzz(func(t *testing.T, s string) {
		v, err := Parse(s)
		if err != nil || v.IsZero() {
			return
		}
		if v.String() != s {
			t.Fatalf("Parse(%q).String() = %q", s, v.String())
		}
	})
}
