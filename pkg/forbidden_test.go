package pkg_test

import (
	"regexp"
	"strings"
	"testing"
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
