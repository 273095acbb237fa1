package e2e

import (
	"strings"
	"testing"
)

// Object is a resource as it came over the wire.
type Object map[string]any

// Text returns a string field, or "" when it is absent, null or of another
// type.
func (o Object) Text(name string) string {
	text, _ := o[name].(string)
	return text
}

// Href is the resource's own address.
func (o Object) Href() string { return o.Text("href") }

// ID is the last segment of the address.
func (o Object) ID() string {
	href := o.Href()
	return href[strings.LastIndex(href, "/")+1:]
}

// Object returns a nested object; nil when there is none.
func (o Object) Object(name string) Object {
	nested, _ := o[name].(map[string]any)
	return nested
}

// Link returns the address that a link field points at and fails the test when
// the field is no link.
func (o Object) Link(t testing.TB, name string) string {
	t.Helper()
	href := o.Object(name).Href()
	if href == "" {
		t.Fatalf("%s has no link %q: %v", o.Href(), name, o[name])
	}
	return href
}

// Number returns a numeric field and fails the test when it is none.
func (o Object) Number(t testing.TB, name string) int {
	t.Helper()
	number, ok := o[name].(float64)
	if !ok {
		t.Fatalf("%s has no number %q: %v", o.Href(), name, o[name])
	}
	return int(number)
}

// Items are the resources of one page of a collection.
func (o Object) Items(t testing.TB) []Object {
	t.Helper()
	items := o.Objects("items")
	if items == nil {
		t.Fatalf("%s has no list of objects as its items: %v", o.Href(), o)
	}
	return items
}

// Objects are those of a nested list; nil when it is none, or has something else.
func (o Object) Objects(name string) []Object {
	list, ok := o[name].([]any)
	if !ok {
		return nil
	}
	objects := make([]Object, len(list))
	for i, item := range list {
		if objects[i], ok = item.(map[string]any); !ok {
			return nil
		}
	}
	return objects
}
