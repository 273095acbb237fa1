package field

import (
	"strings"
	"unicode"
)

// PhoneNumber returns a telephone number without bidirectional marks and other format characters,
// which address books put around it (U+202A, U+202C). The mfa service parses the rest.
func PhoneNumber(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, text)
}
