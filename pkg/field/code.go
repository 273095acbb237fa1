package field

import (
	"strings"
	"unicode"
)

// Code returns a one-time code as all services compare it: without white space and format
// characters (invisible ones, such as bidirectional marks), which come with a code that is copied
// or typed in groups ("123 456"), and with the digits of every script, full-width ones too, in
// ASCII. Everything else stays, so that a text that is no code is none.
func Code(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
			return -1
		case r > unicode.MaxASCII && unicode.IsDigit(r):
			return '0' + digitValue(r)
		}
		return r
	}, text)
}

// digitValue returns the value of a decimal digit. The digits of a script follow each other from
// zero to nine (Unicode, section 4.6), and the ranges of the table begin with a zero.
func digitValue(r rune) rune {
	for _, digits := range unicode.Nd.R16 {
		if first := rune(digits.Lo); first <= r && r <= rune(digits.Hi) {
			return (r - first) % 10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if first := rune(digits.Lo); first <= r && r <= rune(digits.Hi) {
			return (r - first) % 10
		}
	}
	return 0
}
