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

// Unchanged reports whether a member posts a value back as it stands. A rule of form, characters or
// length holds for a value that is being set: one that became stricter does not lock out a client that
// sends back the resource that it has read (docs/interface/conventions.md#resources).
func Unchanged(in Text, current string) bool {
	return in.Given() && current != "" && in.Value == current
}

// Set sets to by read, if the body has the member or the resource is new. It does not read a value that
// is Unchanged.
func (e *Errors) Set(to *string, in Text, isNew bool, read func(Text) (string, error)) {
	if !in.Present && !isNew || !isNew && Unchanged(in, *to) {
		return
	}
	var err error
	*to, err = read(in)
	e.Add(err)
}

// Optional sets to by field.Optional, if the body has the member. Null clears it.
func (e *Errors) Optional(to **string, in Text, name string, most int) {
	e.SetOptional(to, in, func(in Text) (*string, error) { return Optional(in, name, most) })
}

// SetOptional is Set for a member that may be null.
func (e *Errors) SetOptional(to **string, in Text, read func(Text) (*string, error)) {
	if !in.Present || *to != nil && Unchanged(in, **to) {
		return
	}
	var err error
	*to, err = read(in)
	e.Add(err)
}

// Required sets to by field.Required, if the body has the member or the resource is new.
func (e *Errors) Required(to *string, in Text, name string, most int, isNew bool) {
	e.Set(to, in, isNew, func(in Text) (string, error) { return Required(in, name, most) })
}

// Verbatim sets to by field.Verbatim, if the body has the member or the resource is new.
func (e *Errors) Verbatim(to *string, in Text, name string, most int, isNew bool) {
	e.Set(to, in, isNew, func(in Text) (string, error) { return Verbatim(in, name, most) })
}

// Name sets to by field.Name, if the body has the member or the resource is new.
func (e *Errors) Name(to *string, in Text, name string, most int, isNew bool) {
	e.Set(to, in, isNew, func(in Text) (string, error) { return Name(in, name, most) })
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
