package field

import (
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// First is the refusal that a client gets of several: what is required before
// what has a wrong value, and that before what has a wrong form
// (docs/interface/errors.md#statuses). Of the same kind it is the first, whose
// reason names all that is required; nil when there is none.
func First(refusals ...error) error {
	var first error
	var required []error
	best := 3
	for _, err := range refusals {
		if err == nil {
			continue
		}
		rank := 2
		switch {
		case errors.Is(err, apierr.Required):
			rank = 0
			required = append(required, err)
		case errors.Is(err, apierr.Invalid), errors.Is(err, apierr.Unsupported):
			rank = 1
		}
		if rank < best {
			first, best = err, rank
		}
	}
	if len(required) > 1 {
		return apierr.From(first).Because("%s", reasons(required))
	}
	return first
}

// reasons joins the reasons of refusals, each once.
func reasons(refusals []error) string {
	var all []string
	for _, err := range refusals {
		reason := strings.TrimSuffix(strings.TrimSuffix(apierr.From(err).Reason, notBlank), notNull)
		for part := range strings.SplitSeq(reason, "; ") {
			if !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return strings.Join(all, "; ")
}

// Refusals collects what a rule refuses of the members of a body.
type Refusals []error

// Add notes a refusal; nil is none.
func (r *Refusals) Add(err error) { *r = append(*r, err) }

// Optional reads a text into to where the body has it. Null clears it.
func (r *Refusals) Optional(to **string, in Text, name string, most int) {
	if in.Present {
		var err error
		*to, err = Optional(in, name, most)
		r.Add(err)
	}
}

// Required reads a text into to where the body has it; the body of what is new must.
func (r *Refusals) Required(to *string, in Text, name string, most int, isNew bool) {
	if in.Present || isNew {
		var err error
		*to, err = Required(in, name, most)
		r.Add(err)
	}
}

// Verbatim is Required for a text whose white space at its ends is kept.
func (r *Refusals) Verbatim(to *string, in Text, name string, most int, isNew bool) {
	if in.Present || isNew {
		var err error
		*to, err = Verbatim(in, name, most)
		r.Add(err)
	}
}

// Enum reads one of several words into to, which stays as it is where the body has none.
func (r *Refusals) Enum(to *string, in Text, name string, words ...string) {
	var err error
	*to, err = Enum(in, name, *to, words...)
	r.Add(err)
}

// Whole reads a number from least to most into to, which stays as it is where the body
// has none.
func (r *Refusals) Whole(to *int, in Int, name string, least, most int) {
	var err error
	*to, err = Whole(in, name, *to, least, most)
	r.Add(err)
}

// First is the refusal that the client receives, nil for none: see First.
func (r Refusals) First() error { return First(r...) }
