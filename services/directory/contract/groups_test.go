package contract_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// group creates a group with that name.
func (n tenant) group(t *testing.T, directory id.ID, name string) id.ID {
	t.Helper()
	return must(n.API.CreateGroup(t.Context(), n.newGroup(directory, name)))(t).ID
}

func (n tenant) newGroup(directory id.ID, name string) directoryapi.CreateGroup {
	return directoryapi.CreateGroup{
		Tenant: n.id, ID: NewID(), Directory: directory, Group: directoryapi.NewGroup{Name: field.Some(name)},
	}
}

// inGroup adds a new account to a group.
func inGroup(group id.ID) func(*directoryapi.CreateAccount) {
	return func(in *directoryapi.CreateAccount) { in.Group = group }
}

func groups(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	d := n.directory(t, "People")

	t.Run("a new one is complete", func(t *testing.T) {
		in := n.newGroup(d, " Editors ")
		in.Group.Description = field.Some("They edit")
		made := must(s.API.CreateGroup(t.Context(), in))(t)
		read := must(s.API.Group(t.Context(), n.ref(in.ID)))(t)
		for what, g := range map[string]directoryapi.Group{"made": made, "read": read} {
			wantEqual(t, what+", the id", g.ID, in.ID)
			wantEqual(t, what+", the tenant", g.TenantID, n.id)
			wantEqual(t, what+", the directory", g.DirectoryID, d)
			wantEqual(t, what+", the name", g.Name, "Editors")
			wantEqual(t, what+", the status", g.Status, directoryapi.Enabled)
			if g.Description == nil || *g.Description != "They edit" {
				t.Errorf("%s, the description is %v", what, g.Description)
			}
			if g.CreatedAt.IsZero() || g.ModifiedAt.IsZero() {
				t.Errorf("%s, a time is missing: %+v", what, g)
			}
		}
		t.Run("a repeated call returns it", func(t *testing.T) {
			again := must(s.API.CreateGroup(t.Context(), in))(t)
			wantEqual(t, "the id", again.ID, made.ID)
			wantEqual(t, "the time of creation", again.CreatedAt.UTC(), made.CreatedAt.UTC())
		})
		t.Run("its name is taken in the directory, in any case", func(t *testing.T) {
			wantError(s.API.CreateGroup(t.Context(), n.newGroup(d, "EDITORS")))(t, apierr.Exists)
			n.group(t, n.directory(t, "Other people"), "Editors")
		})
		t.Run("another tenant cannot see it", func(t *testing.T) {
			wantError(s.API.Group(t.Context(), other.ref(in.ID)))(t, apierr.NotFound)
		})
	})
	t.Run("one can be made disabled", func(t *testing.T) {
		in := n.newGroup(d, "Idle")
		in.Group.Status = field.Some("disabled")
		wantEqual(t, "the status", must(s.API.CreateGroup(t.Context(), in))(t).Status, directoryapi.Disabled)
	})
	t.Run("of parallel calls for one name one succeeds", func(t *testing.T) {
		wantOneSuccess(t, 4, apierr.Exists, func(int) error {
			_, err := s.API.CreateGroup(t.Context(), n.newGroup(d, "Contended"))
			return err
		})
	})
	t.Run("an invalid one is refused", func(t *testing.T) {
		for what, c := range map[string]struct {
			change func(*directoryapi.NewGroup)
			want   error
		}{
			"no name":      {func(g *directoryapi.NewGroup) { g.Name = field.Text{} }, apierr.Required},
			"a blank name": {func(g *directoryapi.NewGroup) { g.Name = field.Some(" ") }, apierr.Required},
			"a long name": {
				func(g *directoryapi.NewGroup) { g.Name = field.Some(strings.Repeat("x", 256)) }, apierr.TooLong,
			},
			"a long description": {
				func(g *directoryapi.NewGroup) { g.Description = field.Some(strings.Repeat("x", 1001)) }, apierr.TooLong,
			},
			"an unknown status": {func(g *directoryapi.NewGroup) { g.Status = field.Some("UNVERIFIED") }, apierr.Unsupported},
		} {
			t.Run(what, func(t *testing.T) {
				in := n.newGroup(d, "Invalid")
				c.change(&in.Group)
				wantError(s.API.CreateGroup(t.Context(), in))(t, c.want)
				wantError(s.API.Group(t.Context(), n.ref(in.ID)))(t, apierr.NotFound)
			})
		}
	})
	t.Run("a directory that is not there", func(t *testing.T) {
		wantError(s.API.CreateGroup(t.Context(), n.newGroup(NewID(), "Editors")))(t, apierr.NotFound)
	})
	t.Run("a directory of another tenant", func(t *testing.T) {
		wantError(s.API.CreateGroup(t.Context(), n.newGroup(other.administrators, "Editors")))(t, apierr.NotFound)
	})
	t.Run("one goes with its directory", func(t *testing.T) {
		gone := n.directory(t, "Gone")
		group := n.group(t, gone, "Editors")
		must(s.API.DeleteDirectory(t.Context(), n.ref(gone)))(t)
		wantError(s.API.Group(t.Context(), n.ref(group)))(t, apierr.NotFound)
	})
	t.Run("lists", func(t *testing.T) { groupLists(t, s) })
	t.Run("members", func(t *testing.T) { groupMembers(t, s) })
}

func groupLists(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	first, second := n.directory(t, "First"), n.directory(t, "Second")
	writers := n.group(t, first, "Writers")
	n.group(t, second, "Readers")
	idle := n.newGroup(first, "editors")
	idle.Group.Status, idle.Group.Description = field.Some("DISABLED"), field.Some("read and write")
	editors := must(s.API.CreateGroup(t.Context(), idle))(t).ID
	foreign := other.group(t, other.administrators, "Foreign")

	ofDirectory := func(v id.ID) directoryapi.Store { return directoryapi.Store{Kind: directoryapi.Directories, ID: v} }
	ofGroup := func(v id.ID) directoryapi.Store { return directoryapi.Store{Kind: directoryapi.Groups, ID: v} }
	both := []directoryapi.Store{ofDirectory(first), ofDirectory(second)}
	for _, c := range []struct {
		what  string
		in    []directoryapi.Store
		query list.Query
		size  int
		want  []string
	}{
		{
			"all the groups of the directories, in the order of their names", both, list.First(), 3,
			[]string{"editors", "Readers", "Writers"},
		},
		{"a group that is a store", []directoryapi.Store{ofGroup(editors)}, list.First(), 1, []string{"editors"}},
		{"each once, though named twice and beside its directory",
			append([]directoryapi.Store{ofGroup(writers), ofGroup(writers), ofDirectory(first)}, both...),
			list.First(), 3, []string{"editors", "Readers", "Writers"}},
		{"a directory and a group of another", []directoryapi.Store{ofDirectory(second), ofGroup(editors)}, list.First(), 2,
			[]string{"editors", "Readers"}},
		{"none of no store", nil, list.First(), 0, nil},
		{
			"none of a store that is not there", []directoryapi.Store{ofDirectory(NewID()), ofGroup(NewID())}, list.First(), 0,
			nil,
		},
		{"none where the kind is another", []directoryapi.Store{ofGroup(first), ofDirectory(writers)}, list.First(), 0, nil},
		{
			"none of another tenant's stores", []directoryapi.Store{ofDirectory(other.administrators), ofGroup(foreign)},
			list.First(), 0, nil,
		},
		{"a page in the middle", both, query(func(q *list.Query) { q.Offset, q.Limit = 1, 1 }), 3, []string{"Readers"}},
		{"a page past the end", both, query(func(q *list.Query) { q.Offset = 3 }), 3, nil},
		{"by a whole name, in any case", both, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "name", Text: "EDITORS"}}
		}), 1, []string{"editors"}},
		{"by the end of a description", both, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "description", Match: list.Suffix, Text: "WRITE"}}
		}), 1, []string{"editors"}},
		{"by status", both, query(func(q *list.Query) {
			q.Filters = []list.Filter{{Attribute: "status", Text: directoryapi.Enabled}}
		}), 2, []string{"Readers", "Writers"}},
		{"by a text in any attribute", both, query(func(q *list.Query) { q.Q = "READ" }), 2, []string{"editors", "Readers"}},
		{"sorted by name the other way, in any case", both, query(func(q *list.Query) {
			q.Order = []list.Order{{Attribute: "name", Descending: true}}
		}), 3, []string{"Writers", "Readers", "editors"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			page := must(s.API.ListGroups(t.Context(), directoryapi.ListGroups{Tenant: n.id, Stores: c.in, Query: c.query}))(t)
			var got []string
			for _, g := range page.Items {
				got = append(got, g.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the page holds %v, want %v", got, c.want)
			}
			wantEqual(t, "the size", page.Size, c.size)
			wantEqual(t, "the offset", page.Offset, c.query.Offset)
			wantEqual(t, "the limit", page.Limit, c.query.Limit)
		})
	}
}

func groupMembers(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	d := n.directory(t, "People")
	editors := n.group(t, d, "Editors")
	n.group(t, d, "Readers")

	t.Run("an account without groups is in its directory", func(t *testing.T) {
		jo := n.account(t, d, "jo@example.test")
		wantStores(t, must(s.API.StoresOf(t.Context(), n.ref(jo.ID)))(t),
			directoryapi.Store{Kind: directoryapi.Directories, ID: d})
		wantError(s.API.StoresOf(t.Context(), other.ref(jo.ID)))(t, apierr.NotFound)
	})
	t.Run("an account that is made in a group is in both", func(t *testing.T) {
		al := n.account(t, d, "al@example.test", inGroup(editors))
		wantStores(t, must(s.API.StoresOf(t.Context(), n.ref(al.ID)))(t),
			directoryapi.Store{Kind: directoryapi.Directories, ID: d},
			directoryapi.Store{Kind: directoryapi.Groups, ID: editors})
	})
	t.Run("an account that is not there has no stores", func(t *testing.T) {
		wantError(s.API.StoresOf(t.Context(), n.ref(NewID())))(t, apierr.NotFound)
	})
}

// wantStores wants a directory and its groups, in any order.
func wantStores(t *testing.T, got directoryapi.StoresOf, want ...directoryapi.Store) {
	t.Helper()
	if len(got.Stores) != len(want) {
		t.Errorf("the stores are %v, want %v", got.Stores, want)
	}
	for _, store := range want {
		if !slices.Contains(got.Stores, store) {
			t.Errorf("the stores are %v, want %v", got.Stores, want)
		}
	}
}
