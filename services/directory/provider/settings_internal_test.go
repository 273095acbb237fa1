package provider

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIDField(t *testing.T) {
	for path, want := range map[string]bool{
		"id": true, "data.id": true, "items[0].user_id": true, "a[0][12].b-c.d": true, "über.ID$": true, "a[9999]": true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "a[": false, "a[]": false, "a]": false,
		"[0].id": false, "a[-1]": false, "a[x]": false,
		"a[0]b": false, "a b": false, "a\tb": false, "a[10000]": false, "a.[0]": false,
	} {
		if _, err := idField("idField", path); (err == nil) != want {
			t.Errorf("idField %q: %v", path, err)
		}
	}
}

// FuzzIDField compares the pattern with a reader of the same grammar.
func FuzzIDField(f *testing.F) {
	for _, seed := range []string{"id", "data.id", "items[0].user_id", "a[1][2].b", "a..b", "[0]", "a[0]b", "a[00000]"} {
		f.Add(seed)
	}
	index := regexp.MustCompile(`^\d{1,4}\]$`)
	f.Fuzz(func(t *testing.T, path string) {
		if !utf8.ValidString(path) {
			return // no body holds it
		}
		want := true
		for part := range strings.SplitSeq(path, ".") {
			name, places, indexed := strings.Cut(part, "[")
			want = want && name != "" && !strings.ContainsAny(name, "] \t\n\f\r\v\x00")
			if indexed {
				for place := range strings.SplitSeq(places, "[") {
					want = want && index.MatchString(place)
				}
			}
		}
		_, err := idField("idField", path)
		if err == nil && !want {
			t.Errorf("%q is taken", path)
		}
		if err != nil && want && !regexp.MustCompile(`\pC`).MatchString(path) {
			t.Errorf("%q is refused: %v", path, err)
		}
	})
}
