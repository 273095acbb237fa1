package contract_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

func lists(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second, third := n.directory(t, "First"), n.directory(t, "Second"), n.directory(t, "Third")
	for i := range 3 {
		n.account(t, first, fmt.Sprintf("ann%d@example.test", i))
		n.account(t, second, fmt.Sprintf("bob%d@example.test", i),
			func(in *directoryapi.CreateAccount) { in.Account.Surname = field.Some("Stone") })
	}
	n.account(t, first, "idle@example.test", status("DISABLED"))
	n.account(t, third, "unlisted@example.test")

	for _, c := range []struct {
		what  string
		in    []id.ID
		query list.Query
		size  int
		want  []string
	}{
		{"all the accounts of the stores, in the order of their creation", []id.ID{first, second}, list.First(), 7,
			[]string{"ann0", "bob0", "ann1", "bob1", "ann2", "bob2", "idle"}},
		{
			"each once, though a store is named twice", []id.ID{first, first}, list.First(), 4,
			[]string{"ann0", "ann1", "ann2", "idle"},
		},
		{"none of no store", nil, list.First(), 0, nil},
		{"none of a store that is not there", []id.ID{NewID()}, list.First(), 0, nil},
		{"none of another tenant's store", []id.ID{other.administrators}, list.First(), 0, nil},
		{"a page in the middle", []id.ID{first, second}, query(func(q *list.Query) { q.Offset, q.Limit = 2, 3 }), 7,
			[]string{"ann1", "bob1", "ann2"}},
		{"a page past the end", []id.ID{first, second}, query(func(q *list.Query) { q.Offset = 7 }), 7, nil},
		{"by a whole value, in any case", []id.ID{first, second}, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "email", Text: "BOB1@example.test"}}
		}), 1, []string{"bob1"}},
		{"by the beginning of a value", []id.ID{first, second}, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "username", Match: list.Prefix, Text: "ann"}}
		}), 3, []string{"ann0", "ann1", "ann2"}},
		{"by status", []id.ID{first, second}, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "status", Text: directoryapi.Disabled}}
		}), 1, []string{"idle"}},
		{
			"by a text in any attribute", []id.ID{first, second}, query(func(q *list.Query) { q.Q = "tOn" }), 3,
			[]string{"bob0", "bob1", "bob2"},
		},
		{"sorted the other way", []id.ID{first}, query(func(q *list.Query) {
			q.Order = []list.Order{{Attribute: "email", Descending: true}}
		}), 4, []string{"idle", "ann2", "ann1", "ann0"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			page := must(s.API.ListAccounts(t.Context(),
				directoryapi.ListAccounts{Tenant: n.id, Stores: stores(c.in...), Query: c.query}))(t)
			var got, want []string
			for _, a := range page.Items {
				got = append(got, a.Email)
			}
			for _, name := range c.want {
				want = append(want, name+"@example.test")
			}
			if !slices.Equal(got, want) {
				t.Errorf("the page holds %v, want %v", got, want)
			}
			wantEqual(t, "the size", page.Size, c.size)
			wantEqual(t, "the offset", page.Offset, c.query.Offset)
			wantEqual(t, "the limit", page.Limit, c.query.Limit)
		})
	}
}
