package list_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

func TestAPageIsReadAgainWithoutTheItemsOfDeletedOwners(t *testing.T) {
	alive, deleted, broken := id.ID{1}, id.ID{2}, id.ID{3}
	failure := errors.New("the owner cannot be read")
	var owners []id.ID
	var asked []id.ID
	read := func() (list.Page[id.ID], error) { return list.Page[id.ID]{Items: slices.Clone(owners)}, nil }
	find := func(owner id.ID) error {
		asked = append(asked, owner)
		return map[id.ID]error{deleted: apierr.NotFound.Because("deleted"), broken: failure}[owner]
	}
	remove := func(gone []id.ID) error {
		owners = slices.DeleteFunc(owners, func(owner id.ID) bool { return slices.Contains(gone, owner) })
		return nil
	}
	self := func(owner id.ID) id.ID { return owner }

	owners = []id.ID{alive, deleted, alive, deleted}
	page, err := list.WithoutDeleted(read, self, find, remove)
	if want := []id.ID{alive, alive}; err != nil || !slices.Equal(page.Items, want) {
		t.Errorf("the page has %v, %v, want %v", page.Items, err, want)
	}
	if want := []id.ID{alive, deleted, alive}; !slices.Equal(asked, want) {
		t.Errorf("%v are asked for, want each owner once in each page: %v", asked, want)
	}
	owners = []id.ID{alive, broken}
	if _, err := list.WithoutDeleted(read, self, find, remove); !errors.Is(err, failure) {
		t.Errorf("an owner that cannot be read ends with %v", err)
	}
	owners = []id.ID{deleted}
	if _, err := list.WithoutDeleted(read, self, find, func([]id.ID) error { return failure }); !errors.Is(err, failure) {
		t.Errorf("items that cannot be removed end with %v", err)
	}
}
