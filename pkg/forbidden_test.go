package pkg_test

import (
	"regexp"
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

// longestLine is the number of characters of the longest line outside tests.
const longestLine = 140

func TestNoLineIsTooLong(t *testing.T) {
	walk(t, func(path, text string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".gen.go") {
			return
		}
		for i, line := range strings.Split(text, "\n") {
			if n := utf8.RuneCountInString(line); n > longestLine {
				t.Errorf("%s:%d has %d characters; break it at %d", path, i+1, n, longestLine)
			}
		}
	}, ".go")
}
