package list

import (
	"errors"
	"math/big"
	"regexp"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// numberPattern is a decimal number with an optional exponent (RFC 8259), which
// PostgreSQL reads as a numeric.
var numberPattern = regexp.MustCompile(`^-?[0-9]{1,100}(\.[0-9]{1,100})?([eE][+-]?[0-9]{1,2})?$`)

// ParseNumber reports whether text is a number that values can be compared with.
func ParseNumber(text string) (string, bool) {
	text = strings.TrimSpace(text)
	return text, numberPattern.MatchString(text)
}

// customFilter parses a filter by custom data (docs/interface/search.md#custom-data): a text with * at
// either end, or a range of numbers or of datetimes. A range such as [2015,2016] may be both: the
// type of the stored value decides.
func customFilter(f Filter) (Filter, error) {
	value := strings.TrimSpace(f.Text)
	if !strings.HasPrefix(value, "[") && !strings.HasPrefix(value, "(") {
		f.Text, f.Match = parseWildcards(f.Text)
		return f, nil
	}
	f.Text, f.Match = "", Range
	numbers, numbersErr := numberRange(value)
	from, until, timesErr := parsePeriod(value)
	switch {
	case numbersErr != nil && timesErr != nil:
		if errors.Is(numbersErr, apierr.RangeReversed) {
			return f, numbersErr
		}
		return f, timesErr
	case numbersErr == nil:
		f.Numbers = numbers
	}
	if timesErr == nil {
		f.From, f.Until = from, until
	}
	return f, nil
}

// numberRange parses "[0,1000)", "[50,]" or "[10]".
func numberRange(value string) (r NumberRange, err error) {
	invalid := apierr.ParameterInvalid.Because("%q is not a range such as [0,1000) or [2015-01,2015-06]", value)
	last := value[len(value)-1]
	if len(value) < 2 || last != ']' && last != ')' {
		return r, invalid
	}
	least, most, isRange := strings.Cut(value[1:len(value)-1], ",")
	if !isRange {
		most = least
	}
	r.Above, r.Below = value[0] == '(' && isRange, last == ')' && isRange
	for _, end := range []struct {
		text string
		to   *string
	}{{least, &r.Least}, {most, &r.Most}} {
		text, ok := ParseNumber(end.text)
		if text != "" && !ok {
			return r, invalid
		}
		*end.to = text
	}
	if r.Least == "" && r.Most == "" {
		return r, invalid
	}
	if r.Least != "" && r.Most != "" && isBelow(r.Most, r.Least) {
		return r, apierr.RangeReversed.Because("the range %q ends before it starts", value)
	}
	return r, nil
}

// isBelow reports whether a is less than b; both match numberPattern.
func isBelow(a, b string) bool {
	left, ok := new(big.Rat).SetString(a)
	right, also := new(big.Rat).SetString(b)
	return ok && also && left.Cmp(right) < 0
}
