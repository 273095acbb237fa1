package apierr

import (
	"regexp"
	"strings"
	"testing"
)

func TestEveryErrorIsExplained(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Za-z0-9].*\.$`)
	codes := map[string]bool{}
	for _, e := range Catalogue() {
		for what, text := range map[string]string{"meaning": e.Meaning, "cause": e.Cause, "remedy": e.Remedy} {
			if !sentence.MatchString(text) {
				t.Errorf("the %s of %d is %q", what, e.Code, text)
			}
		}
		found, ok := Find(e.Code)
		if !ok || found != e {
			t.Errorf("Find(%d) = %+v, %v", e.Code, found, ok)
		}
	}
	for block := range strings.SplitSeq(strings.TrimSpace(explanations), "\n\n") {
		code, _, _ := strings.Cut(block, "\n")
		if codes[code] {
			t.Errorf("%s is explained twice", code)
		}
		codes[code] = true
	}
	if len(codes) != len(All()) {
		t.Errorf("%d codes are explained, %d are in the catalogue", len(codes), len(All()))
	}
	if _, ok := Find(1); ok {
		t.Error("there is an error 1")
	}
}
