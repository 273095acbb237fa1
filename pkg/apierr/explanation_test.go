package apierr

import (
	"encoding/json"
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

// What an end user can cause has a sentence of its own; the apology is for
// configuration and for what only a client's code can send.
func TestMessagesAreSentences(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Z].*\.$`)
	endUser := func(code int) bool {
		for _, within := range [][2]int{{401, 503}, {1100, 1101}, {2000, 2024}, {4600, 4601}, {4605, 4605}, {5100, 5101}, {5105, 5105},
			{5114, 5117}, {5120, 5122}, {6100, 6101}, {6401, 6401}, {7100, 7206}, {7500, 7501}, {7503, 9006}, {10010, 10019}, {10100, 10102},
			{11001, 12002}, {13100, 13110}, {13112, 13113}} {
			if within[0] <= code && code <= within[1] {
				return true
			}
		}
		return false
	}
	for _, e := range All() {
		if !sentence.MatchString(e.Message) {
			t.Errorf("the message of %d is %q", e.Code, e.Message)
		}
		if e.Message == apology && endUser(e.Code) {
			t.Errorf("an end user can cause %d, and its message is the apology", e.Code)
		}
	}
}

func TestAnErrorWithoutAReasonHasTheMeaningOfItsCode(t *testing.T) {
	want := regexp.MustCompile(`^[a-z][^.]*$`)
	for _, e := range All() {
		var body struct{ DeveloperMessage string }
		if err := json.Unmarshal(e.Body("", ""), &body); err != nil || !want.MatchString(body.DeveloperMessage) {
			t.Errorf("the developerMessage of %d is %q, %v", e.Code, body.DeveloperMessage, err)
		}
	}
}
