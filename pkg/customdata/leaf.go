package customdata

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/list"
)

// What of a document can be searched (resolutions, section 7.4) is bounded, so
// that a row for each leaf fits PostgreSQL: a path and a text together stay
// below the 2,704 bytes that a row of an index can have.
const (
	MaxLeaves = 1000 // of a document, in its order; those behind are not found
	MaxText   = 512  // characters; a longer text is not found, also not by its beginning
	MaxPath   = 512  // characters of a joined path; values below a longer one are not found
	maxDigits = 400  // of a number written out; a longer one is found by its text only
)

// Leaf is a value of a document that a search can find. Null, empty objects and
// arrays, and texts with NUL, which PostgreSQL cannot hold, are none.
type Leaf struct {
	// Path is the keys that lead to the value, joined by dots, which no key
	// has: "greetings.morning". The elements of an array are at its own path.
	Path string
	// Element says that the value is somewhere in an array: its path may have
	// other values too.
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

// Leaves gives what can be searched, in the order of the document.
func (d Document) Leaves() []Leaf {
	w := walker{text: string(d)}
	w.run()
	return w.leaves
}

// walker goes once over a document. Like the parser it does not recurse.
type walker struct {
	text   string
	at     int
	path   []byte
	open   []place
	arrays int  // that are open
	key    bool // the next string is a key
	leaves []Leaf
}

// place is an object or array that has begun, and the length of its path.
type place struct {
	object bool
	path   int
}

func (w *walker) run() {
	for w.at < len(w.text) && len(w.leaves) < MaxLeaves {
		c := w.text[w.at]
		switch c {
		case '{', '[':
			w.key = c == '{'
			w.open = append(w.open, place{w.key, len(w.path)})
			if !w.key {
				w.arrays++
			}
			w.at++
		case '}', ']':
			w.open, w.key = w.open[:len(w.open)-1], false
			if c == ']' {
				w.arrays--
			}
			w.at++
		case ',':
			top := w.open[len(w.open)-1]
			w.key, w.path = top.object, w.path[:top.path]
			w.at++
		case ':':
			w.at++
		case '"':
			w.word()
		default:
			w.scalar()
		}
	}
}

// word takes a string: a key, or a text.
func (w *walker) word() {
	end := stringEnd(w.text, w.at)
	quoted := w.text[w.at:end]
	w.at = end
	if w.key {
		w.key = false
		if len(w.path) > 0 {
			w.path = append(w.path, '.')
		}
		w.path = append(w.path, quoted[1:len(quoted)-1]...)
		return
	}
	const longest = len(`\ud83d\ude00`) // of a character
	if len(quoted) > longest*MaxText+len(`""`) {
		return
	}
	var text string
	if json.Unmarshal([]byte(quoted), &text) != nil || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) > MaxText {
		return
	}
	leaf := Leaf{Text: field.Fold(text)}
	if start, ok := list.Start(text); ok {
		leaf.Start = &start
	}
	w.add(leaf)
}

// scalar takes a number, true, false or null.
func (w *walker) scalar() {
	end := scalarEnd(w.text, w.at)
	text := w.text[w.at:end]
	w.at = end
	if text == "null" || len(text) > MaxText {
		return
	}
	leaf := Leaf{Text: field.Fold(text)}
	if text != "true" && text != "false" && digits(text) <= maxDigits {
		leaf.Number = &text
	}
	w.add(leaf)
}

func (w *walker) add(leaf Leaf) {
	if len(w.path) > MaxPath || utf8.RuneCountInString(leaf.Text) > MaxText {
		return
	}
	leaf.Path, leaf.Element = string(w.path), w.arrays > 0
	w.leaves = append(w.leaves, leaf)
}

// digits gives how many digits a JSON number has when it is written out without
// an exponent. An absurd exponent counts as too many.
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
