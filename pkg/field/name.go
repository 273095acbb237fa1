package field

import (
	"errors"
	"strings"
	"unicode"

	"github.com/doorward/doorward/pkg/apierr"
)

// Name is Required for a name by which people tell things apart: a character
// that nobody sees is 2006 (docs/interface/limits.md#field-limits).
func Name(f Text, name string, most int) (string, error) {
	text, err := Required(f, name, most)
	if err == nil && strings.ContainsFunc(text, IsInvisible) {
		err = apierr.Format.Because("%s has a control character or another one that cannot be seen; leave it out", name)
	}
	return text, err
}

// IsInvisible reports whether a character shows nothing, not even a space:
// control and format characters, separators of lines, and what Unicode says is
// not drawn.
func IsInvisible(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// First is the refusal that a client is told of several: what is required before
// what has a wrong value, and that before what has a wrong form. Of the same kind
// it is the first; nil when there is none.
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
