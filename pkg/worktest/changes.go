package worktest

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
)

// Changes waits until a feed is not Behind, and returns a function that says whether the feed has
// since reported a change of one of the resources, or a gap.
func Changes(t testing.TB, ask cache.Source) (reported func(of ...id.ID) (changed, gap bool)) {
	t.Helper()
	position := cache.Position{}
	after := func() cache.Page {
		page, err := ask(t.Context(), position)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	Await(t, "the feed of changes", func() bool {
		page := after()
		position[page.Log] = page.Next
		return !page.Behind
	})
	return func(of ...id.ID) (changed, gap bool) {
		page := after()
		return slices.ContainsFunc(page.Changed, func(changed id.ID) bool {
			return slices.Contains(of, changed)
		}), page.Gap
	}
}
