package expansion

import (
	"net/url"
	"slices"
	"strings"
	"testing"
)

// What was accepted of an expand query means what it says, and no more.
func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"tenant", "tenant,groups(offset:0,limit:10)", "groups(limit:1) , tenant", "(", ")", ",", "a(b(c))", "groups(offset:-1)", "tenant()", "groups(limit:99999999999999999999)", "\x00", "tenant\xff"} {
		f.Add(seed)
	}
	allowed := []Link{{"tenant", false}, {"groups", true}, {"directory", true}}
	names := []string{"tenant", "groups", "directory"}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Parse(text, allowed)
		if err != nil {
			return
		}
		if len(all) == 0 || len(all) > len(allowed) {
			t.Fatalf("%q returns %d names", text, len(all))
		}
		var again []string
		for _, e := range all {
			query, err := url.ParseQuery(e.Page)
			if !slices.Contains(names, e.Name) || !strings.Contains(text, e.Name) || err != nil || len(query) > 2 || e.Name == "tenant" && e.Page != "" {
				t.Fatalf("%q returns %+v", text, e)
			}
			page := strings.NewReplacer("=", ":", "&", ",").Replace(e.Page)
			if page != "" {
				page = "(" + page + ")"
			}
			again = append(again, e.Name+page)
		}
		if second, err := Parse(strings.Join(again, ","), allowed); err != nil || !slices.Equal(all, second) {
			t.Fatalf("%q returns %v, read again %v, %v", text, all, second, err)
		}
	})
}
