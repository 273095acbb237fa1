package directory

import (
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// ParseReference returns the id in a required link (href) of a body to a resource of that kind. It
// returns apierr.Required for a link that is absent, apierr.Reference for a link to anything else,
// and apierr.NotFound for an id that is malformed, which is also the error for an id that does not
// exist or belongs to another tenant.
func (s *Service) ParseReference(in field.Link, name, kind string) (id.ID, error) {
	if !in.Given() {
		return id.ID{}, apierr.Required.Because("%s is required; it cannot be null", name)
	}
	ref, ok := s.base.Parse(in.Value.Href)
	if ref.Kind != kind {
		return id.ID{}, apierr.Reference.Because(
			"%s must be an href of the form %s/%s/{id}, as answers have it; it is %q",
			name, s.base,
			kind, in.Value.Href)
	}
	if !ok {
		return id.ID{}, missingError(name, in, apierr.NotFound)
	}
	return ref.ID, nil
}

// asReferenceError turns apierr.NotFound into apierr.Reference: the link of a body is wrong, not
// the path of the request.
func asReferenceError(err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.Reference.Because("%s", apierr.From(err).Reason)
	}
	return err
}

// missingError adds to apierr.NotFound which link of a body leads to no resource. Other errors are
// returned unchanged.
func missingError(name string, in field.Link, err error) error {
	if errors.Is(err, apierr.NotFound) {
		return apierr.NotFound.Because("%s: there is nothing at %q", name, in.Value.Href)
	}
	return err
}
