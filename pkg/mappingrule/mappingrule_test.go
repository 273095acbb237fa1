package mappingrule

import (
	"strings"
	"testing"
)

// FuzzTarget: what a rule may name is an attribute of the list, or a path
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
