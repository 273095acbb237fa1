package field

import (
	"errors"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// First returns the error that a client gets if several members of a body are invalid: a missing
// required member first, then an invalid value, then any other error
// (docs/interface/errors.md#statuses). Among errors of the same kind it is the first in order; the
// error of a missing member names all missing members. It returns nil if all errors are nil.
func First(errs ...error) error {
	var first error
	var required []error
	best := 3
	for _, err := range errs {
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

// reasons joins the different reasons of errors.
func reasons(errs []error) string {
	var all []string
	for _, err := range errs {
		reason := strings.TrimSuffix(strings.TrimSuffix(apierr.From(err).Reason, notBlank), notNull)
		for part := range strings.SplitSeq(reason, "; ") {
			if !slices.Contains(all, part) {
				all = append(all, part)
			}
		}
	}
	return strings.Join(all, "; ")
}

// Errors collects the errors of the members of a body.
type Errors []error

// Add adds an error; nil adds nothing to the result of First.
func (e *Errors) Add(err error) { *e = append(*e, err) }

// Optional sets to by field.Optional, if the body has the member. Null clears it.
func (e *Errors) Optional(to **string, in Text, name string, most int) {
	if in.Present {
		var err error
		*to, err = Optional(in, name, most)
		e.Add(err)
	}
}

// Required sets to by field.Required, if the body has the member or the resource is new.
func (e *Errors) Required(to *string, in Text, name string, most int, isNew bool) {
	if in.Present || isNew {
		var err error
		*to, err = Required(in, name, most)
		e.Add(err)
	}
}

// Verbatim sets to by field.Verbatim, if the body has the member or the resource is new.
func (e *Errors) Verbatim(to *string, in Text, name string, most int, isNew bool) {
	if in.Present || isNew {
		var err error
		*to, err = Verbatim(in, name, most)
		e.Add(err)
	}
}

// Enum sets to by field.Enum; it stays unchanged if the body has no such member.
func (e *Errors) Enum(to *string, in Text, name string, words ...string) {
	var err error
	*to, err = Enum(in, name, *to, words...)
	e.Add(err)
}

// Int sets to by field.Int; it stays unchanged if the body has no such member.
func (e *Errors) Int(to *int, in Int, name string, least, most int) {
	var err error
	*to, err = Whole(in, name, *to, least, most)
	e.Add(err)
}

// First returns the error that the client gets, or nil: see the function First.
func (e Errors) First() error { return First(e...) }
