package directoryfake

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/list"
)

// attributes are what a resource is searched and sorted by.
type attributes struct {
	texts  map[string]string
	status string
	times  map[string]time.Time
}

// page returns the page of the resources that a query asks for.
func page[T any](all []T, of func(T) attributes, query list.Query) list.Page[T] {
	found := []T{}
	for _, item := range all {
		if matches(of(item), query) {
			found = append(found, item)
		}
	}
	slices.SortStableFunc(found, func(a, b T) int { return compare(of(a), of(b), query.Order) })
	size := len(found)
	page := list.NewPage[T](query)
	page.Size, page.Items = size, found[min(query.Offset, size):min(query.Offset+query.Limit, size)]
	return page
}

// orEmpty returns an optional text, empty for nil.
func orEmpty(part *string) string {
	if part == nil {
		return ""
	}
	return *part
}

func matches(of attributes, query list.Query) bool {
	for _, f := range query.Filters {
		if at, ok := of.times[f.Attribute]; ok {
			if at.Before(f.From) || !f.Until.IsZero() && !at.Before(f.Until) {
				return false
			}
			continue
		}
		if f.Attribute == "status" {
			if of.status != f.Text {
				return false
			}
			continue
		}
		value, wanted := field.LoginName(of.texts[f.Attribute]), field.LoginName(f.Text)
		if !map[list.Match]bool{
			list.Equal: value == wanted, list.Prefix: strings.HasPrefix(value, wanted),
			list.Suffix: strings.HasSuffix(value, wanted), list.Contains: strings.Contains(value, wanted),
		}[f.Match] {
			return false
		}
	}
	for _, value := range of.texts {
		if strings.Contains(field.FoldForSearch(value), field.FoldForSearch(query.Q)) {
			return true
		}
	}
	return false
}

func compare(a, b attributes, order []list.Order) int {
	for _, o := range order {
		c := cmp.Compare(field.Fold(a.texts[o.Attribute]), field.Fold(b.texts[o.Attribute]))
		if o.Descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
