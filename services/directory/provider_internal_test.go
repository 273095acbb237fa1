package directory

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestIDField(t *testing.T) {
	for path, want := range map[string]bool{
		"id": true, "data.id": true, "items[0].user_id": true, "a[0][12].b-c.d": true, "über.ID$": true, "a[9999]": true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "a[": false, "a[]": false, "a]": false, "[0].id": false, "a[-1]": false, "a[x]": false,
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

// FuzzTarget: what a rule may write to is an attribute of the list, or a path
// of keys that customData can have.
func FuzzTarget(f *testing.F) {
	for _, seed := range []string{"email", "customData.a", "customData.a.b_c-1", "customData.", "customData.meta", "customData.a.-b", "status", "customData.a\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if !isTarget(target) {
			return
		}
		path, custom := strings.CutPrefix(target, "customData.")
		if !custom {
			if !strings.Contains(" email username givenName middleName surname ", " "+target+" ") || strings.Contains(target, " ") {
				t.Errorf("%q is taken", target)
			}
			return
		}
		for key := range strings.SplitSeq(path, ".") {
			if key == "" || len(key) > 255 || key[0] == '-' || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" ||
				strings.Contains(" href createdAt modifiedAt meta spMeta spmeta ionmeta ionMeta ", " "+key+" ") {
				t.Errorf("%q is taken for its key %q", target, key)
			}
		}
	})
}
