package apierr

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// Explanation is the explanation of an error code for a developer, on the page of the error.
type Explanation struct {
	Meaning string `json:"meaning"` // what the code means
	Cause   string `json:"cause"`   // why it happens
	Remedy  string `json:"remedy"`  // what to change
}

// Entry is an error of the catalogue with its explanation.
type Entry struct {
	Status  int    `json:"status"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Explanation
}

//go:embed explanations.txt
var explanations string

// explanationsByCode parses explanations.txt.
var explanationsByCode = sync.OnceValue(func() map[int]Explanation {
	found := map[int]Explanation{}
	for block := range strings.SplitSeq(strings.TrimSpace(explanations), "\n\n") {
		lines := strings.Split(block, "\n") // the code, and then a line each
		if code, err := strconv.Atoi(lines[0]); err == nil && len(lines) == 4 {
			found[code] = Explanation{lines[1], lines[2], lines[3]}
		}
	}
	return found
})

// Catalogue returns every error that the product can return, in the order of the
// catalogue, with its explanation.
func Catalogue() []Entry {
	entries := make([]Entry, len(catalog))
	for i, e := range catalog {
		entries[i] = Entry{e.Status, e.Code, e.Message, explanationsByCode()[e.Code]}
	}
	return entries
}

// defaultReason returns the reason of an error without a reason: the meaning of its code and the
// remedy, in the style of developer messages.
func defaultReason(code int) string {
	return firstSentence(explanationsByCode()[code].Meaning) + "; " + firstSentence(explanationsByCode()[code].Remedy)
}

// firstSentence returns the first sentence of a text, without its full stop and with a small first letter.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSuffix(text, "."), ". ")
	return strings.ToLower(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// Find returns the entry of a code.
func Find(code int) (Entry, bool) {
	for _, entry := range Catalogue() {
		if entry.Code == code {
			return entry, true
		}
	}
	return Entry{}, false
}
