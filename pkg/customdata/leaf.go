package customdata

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/list"
)

// The limits of the values that can be searched (docs/interface/search.md#custom-data). A path and a
// text together stay below the 2,704 bytes that PostgreSQL allows for a row of an index.
const (
	MaxLeaves = 1000 // of a document: its first values other than null; later values are not found
	MaxText   = 512  // characters; a longer text is not found, also not by a prefix
	MaxPath   = 512  // characters of a joined path; values below a longer one are not found
	maxDigits = 400  // of a number written out; a longer one is found by its text only
)

// Leaf is a value of a document that a search can find. Null, empty objects and arrays, and texts
// with NUL, which PostgreSQL cannot store, are not leaves.
type Leaf struct {
	// Path is the keys of the value joined by dots, which no key contains:
	// "greetings.morning". The elements of an array have the path of the array.
	Path string
	// Element says that the value is in an array, so that its path may have several values.
	Element bool
	// Text is the value in the normal form of field.Fold: a string, the digits
	// of a number as they were sent, true or false.
	Text string
	// Number is a JSON number as it was sent, which PostgreSQL reads as
	// numeric; nil for other values.
	Number *string
	// Start is the first instant of the period that a string names, as a
	// datetime or a prefix of one; nil for other values.
	Start *time.Time
}

// Leaves returns the values that can be searched, in the order of the document.
func (d Document) Leaves() []Leaf {
	w := walker{in: decoder([]byte(d))}
	for w.values < MaxLeaves && w.next() == nil {
	}
	return w.leaves
}

// walker reads a document in one pass. Like the parser it does not recurse.
type walker struct {
	in     *jsontext.Decoder
	path   []byte
	open   []int // the length of the path of each object or array that has begun
	arrays int   // number of open arrays
	values int   // number of values so far, without null
	leaves []Leaf
}

// next reads the next bracket, key or scalar; at the end it returns an error.
func (w *walker) next() error {
	within, length := w.in.StackIndex(w.in.StackDepth())
	kind := w.in.PeekKind()
	if len(w.open) > 0 && kind != '}' && kind != ']' && (within == '[' || length%2 == 0) {
		w.path = w.path[:w.open[len(w.open)-1]]
	}
	switch kind {
	case '{', '[':
		w.open = append(w.open, len(w.path))
		if kind == '[' {
			w.arrays++
		}
	case '}', ']':
		w.open = w.open[:len(w.open)-1]
		if kind == ']' {
			w.arrays--
		}
	default:
		value, err := w.in.ReadValue()
		switch {
		case err != nil:
			return err
		case within == '{' && length%2 == 0:
			if len(w.path) > 0 {
				w.path = append(w.path, '.')
			}
			w.path = append(w.path, value[1:len(value)-1]...)
		case kind == '"':
			w.text(value)
		case kind != 'n':
			w.scalar(string(value))
		}
		return nil
	}
	_, err := w.in.ReadToken()
	return err
}

// text adds a string.
func (w *walker) text(quoted jsontext.Value) {
	w.values++
	const longest = len(`\ud83d\ude00`) // the longest escape of one character
	if len(w.path) > MaxPath || len(quoted) > longest*MaxText+len(`""`) {
		return
	}
	var text string
	if json.Unmarshal(quoted, &text) != nil || strings.ContainsRune(text, 0) || !isShort(text) {
		return
	}
	leaf := Leaf{Text: field.Fold(text)}
	if start, ok := list.Start(text); ok {
		leaf.Start = &start
	}
	w.add(leaf)
}

// isShort reports whether a text has at most MaxText characters after normalisation (NFKC), which
// can make eighteen characters of one.
func isShort(text string) bool {
	var form norm.Iter
	form.InitString(norm.NFKC, text)
	n := 0
	for n <= MaxText && !form.Done() {
		n += utf8.RuneCount(form.Next())
	}
	return n <= MaxText
}

// scalar adds a number, true or false.
func (w *walker) scalar(text string) {
	w.values++
	if len(w.path) > MaxPath || len(text) > MaxText {
		return
	}
	leaf := Leaf{Text: field.Fold(text)}
	if text != "true" && text != "false" && digits(text) <= maxDigits {
		leaf.Number = &text
	}
	w.add(leaf)
}

func (w *walker) add(leaf Leaf) {
	leaf.Path, leaf.Element = string(w.path), w.arrays > 0
	if utf8.RuneCountInString(leaf.Text) <= MaxText { // case folding can make three characters of one
		w.leaves = append(w.leaves, leaf)
	}
}

// digits returns the number of digits of a JSON number without an exponent. For a huge exponent it is
// maxDigits + 1.
func digits(number string) int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift < -maxDigits || shift > maxDigits {
			return maxDigits + 1
		}
	}
	return max(len(whole)+shift, 1) + max(len(fraction)-shift, 0)
}
