package field

import (
	"unicode"

	"github.com/doorward/doorward/pkg/apierr"
)

// Name is Required for the name of a user, a group or a directory. It returns apierr.Format (2006) for
// an invisible character (see Visible), because people distinguish resources by their names.
func Name(f Text, name string, most int) (string, error) {
	text, err := Required(f, name, most)
	if err != nil {
		return "", err
	}
	return text, Visible(name, text)
}

// Visible returns apierr.Format (2006) for a text with an invisible character: a control, format,
// bidirectional, private-use or unassigned character, or another without a glyph.
func Visible(name, text string) error {
	for _, r := range text {
		if isInvisible(r) {
			return apierr.Format.Because("%s holds the invisible character U+%04X; remove it", name, r).
				Saying("A name or an address has a character that cannot be seen. Please enter it again.")
		}
	}
	return nil
}

// brailleBlank is a symbol by its Unicode category, but is shown as a blank.
const brailleBlank = '\u2800'

func isInvisible(r rune) bool {
	return !unicode.IsGraphic(r) || r == brailleBlank ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
