package apierr

import (
	_ "embed"
	"strconv"
	"strings"
)

// Explanation is what the page of an error says to a developer, a sentence or two
// each.
type Explanation struct {
	Meaning string `json:"meaning"` // what the code means
	Cause   string `json:"cause"`   // why it happens
	Remedy  string `json:"remedy"`  // what to change
}

// Entry is an error of the catalogue as its page shows it.
type Entry struct {
	Status  int    `json:"status"`
	Code    int    `json:"code"`
	Message string `json:"message"`
	Explanation
}

//go:embed explanations.txt
var explanations string

// Catalogue returns every error that the product can return, in the order of the
// catalogue, with its explanation.
func Catalogue() []Entry {
	explained := map[int]Explanation{}
	for block := range strings.SplitSeq(strings.TrimSpace(explanations), "\n\n") {
		lines := strings.Split(block, "\n") // the code, and then a line each
		if code, err := strconv.Atoi(lines[0]); err == nil && len(lines) == 4 {
			explained[code] = Explanation{lines[1], lines[2], lines[3]}
		}
	}
	entries := make([]Entry, len(catalog))
	for i, e := range catalog {
		entries[i] = Entry{e.Status, e.Code, e.Message, explained[e.Code]}
	}
	return entries
}

// Find returns the error of a code.
func Find(code int) (Entry, bool) {
	for _, entry := range Catalogue() {
		if entry.Code == code {
			return entry, true
		}
	}
	return Entry{}, false
}
