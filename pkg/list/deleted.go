package list

import (
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// WithoutDeleted returns a page whose items have not lost their owner, a resource of another service. The
// event of its deletion removes them, but a moment later (docs/interface/conventions.md#cascades): until
// then remove does what the event does, and the page is read again. find returns apierr.NotFound for the
// owner of an item that was deleted.
func WithoutDeleted[T any](
	read func() (Page[T], error), owner func(T) id.ID, find func(T) error, remove func(owners []id.ID) error,
) (Page[T], error) {
	for {
		page, err := read()
		if err != nil {
			return page, err
		}
		deleted, asked := []id.ID{}, map[id.ID]bool{}
		for _, item := range page.Items {
			if asked[owner(item)] {
				continue
			}
			asked[owner(item)] = true
			switch err := find(item); {
			case errors.Is(err, apierr.NotFound):
				deleted = append(deleted, owner(item))
			case err != nil:
				return page, err
			}
		}
		if len(deleted) == 0 {
			return page, nil
		}
		if err := remove(deleted); err != nil {
			return page, err
		}
	}
}
