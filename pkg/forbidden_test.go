package pkg_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// forbidden are words for documents that are not in the project. (They are put
// together here so that this file does not have them.)
var forbidden = regexp.MustCompile(`(?i)\b` + "resolu" + `tions\b`)

func TestNoCommentCitesWhatIsNotInTheProject(t *testing.T) {
	walk(t, func(path, text string) {
		for i, line := range strings.Split(text, "\n") {
			if forbidden.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, strings.TrimSpace(line))
			}
		}
	}, ".go", ".sql", ".md", ".yaml", ".yml")
}

// seventh is the seventh parameter of a statement, or a later one.
var seventh = regexp.MustCompile(`\$([7-9]|[1-9]\d)\b`)

// A statement with more than six parameters has names for them (pg.Named).
func TestNoStatementHasMoreThanSixPositions(t *testing.T) {
	walk(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "deploy/bench/") { // whose baseline is the bare driver
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if seventh.MatchString(line) {
				t.Errorf("%s:%d: give the parameters names, as in %s", path, i+1, "@email")
			}
		}
	}, ".go")
}

// driverNames are the named arguments of the driver. (They are put together here so that this file does not
// have them.)
var driverNames = regexp.MustCompile(`\bpgx\.(Strict)?` + `NamedArgs\b`)

// The driver sends NULL for a name without a value; pg.Named refuses the statement.
func TestNamedArgumentsAreThoseOfPg(t *testing.T) {
	walk(t, func(path, text string) {
		if at := driverNames.FindStringIndex(text); at != nil {
			t.Errorf("%s:%d: take the arguments from pg.Named", path, 1+strings.Count(text[:at[0]], "\n"))
		}
	}, ".go")
}

// mostColumns is the width of the longest line outside tests, where a tab has four columns; mostInWider is that in
// the folders which are not yet broken at it, where a tab has one. No folder is added to wider.
const (
	mostColumns = 120
	mostInWider = 140
)

var wider = []string{"services/oauth/", "services/idsite/", "gateway/operator/", "deploy/", ".ci/"}

func TestNoLineIsTooLong(t *testing.T) {
	walk(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".gen.go") {
			return
		}
		tab, most := "    ", mostColumns
		if slices.ContainsFunc(wider, func(folder string) bool { return strings.HasPrefix(path, folder) }) {
			tab, most = "\t", mostInWider
		}
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", tab)); n > most {
				t.Errorf("%s:%d has %d columns; break it at %d", path, i+1, n, most)
			}
		}
	}, ".go")
}

// noColumns is the beginning of a SELECT without a column, which engines other than PostgreSQL refuse. (It
// is put together here so that this file does not have it.)
var noColumns = regexp.MustCompile(`(?i)\bselect` + `\s+from\b`)

func TestEverySelectNamesAColumn(t *testing.T) {
	walk(t, func(path, text string) {
		if at := noColumns.FindStringIndex(text); at != nil {
			line := 1 + strings.Count(text[:at[0]], "\n")
			t.Errorf("%s:%d: name a column, such as SELECT 1 FROM", path, line)
		}
	}, ".go", ".sql")
}
