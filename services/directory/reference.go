package directory

import (
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// reference reads a required link of a body to a resource of that kind. An
// absent link is apierr.Required, a link to anything else Reference. An id that
// cannot be is apierr.NotFound, as one that never was and one of another tenant
// are when they are looked up.
func (s *Service) reference(in field.Link, name, kind string) (id.ID, error) {
	if !in.Given() {
		return id.ID{}, apierr.Required.Because("%s is required; it cannot be null", name)
	}
	ref, ok := s.base.Parse(in.Value.Href)
	if ref.Kind != kind {
		return id.ID{}, apierr.Reference.Because("%s must be an href of the form %s/%s/{id}, as answers have it; it is %q", name, s.base,
			kind, in.Value.Href)
	}
	if !ok {
		return id.ID{}, missing(name, in, apierr.NotFound)
	}
	return ref.ID, nil
}

// asReference says of a link that leads nowhere that the body is wrong, not the
// path: apierr.Reference.
func asReference(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.Reference.Because("%s", apierr.From(err).Reason)
	}
	return err
}

// missing says which link of a body leads nowhere, where that is the error.
func missing(name string, in field.Link, err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound.Because("%s: there is nothing at %q", name, in.Value.Href)
	}
	return err
}
