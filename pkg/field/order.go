package field

import (
	"errors"

	"github.com/doorward/doorward/pkg/apierr"
)

// First is the refusal that a client gets of several: what is required before
// what has a wrong value, and that before what has a wrong form
// (docs/interface/errors.md#statuses). Of the same kind it is the first; nil when
// there is none.
func First(refusals ...error) error {
	var first error
	best := 3
	for _, err := range refusals {
		if err == nil {
			continue
		}
		rank := 2
		switch {
		case errors.Is(err, apierr.Required):
			rank = 0
		case errors.Is(err, apierr.Invalid), errors.Is(err, apierr.Unsupported):
			rank = 1
		}
		if rank < best {
			first, best = err, rank
		}
	}
	return first
}

// Refusals collects what a rule refuses of the members of a body.
type Refusals []error

// Add notes a refusal; nil is none.
func (r *Refusals) Add(err error) { *r = append(*r, err) }

// First is the refusal that the client receives, nil for none: see First.
func (r Refusals) First() error { return First(r...) }
