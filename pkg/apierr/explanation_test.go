package apierr

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestEveryErrorIsExplained(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Za-z0-9].*\.$`)
	codes, meanings := map[string]bool{}, map[string]int{}
	for _, e := range Catalogue() {
		for what, text := range map[string]string{"meaning": e.Meaning, "cause": e.Cause, "remedy": e.Remedy} {
			if !sentence.MatchString(text) {
				t.Errorf("the %s of %d is %q", what, e.Code, text)
			}
		}
		if other := meanings[e.Meaning]; other != 0 {
			t.Errorf("%d and %d have the same meaning, %q", other, e.Code, e.Meaning)
		}
		meanings[e.Meaning] = e.Code
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

// Every code has a sentence of its own for the end user; the apology is for a
// refusal without a code.
func TestMessagesAreSentences(t *testing.T) {
	sentence := regexp.MustCompile(`^[A-Z].*\.$`)
	for _, e := range All() {
		if !sentence.MatchString(e.Message) && e != TokenSignature { // whose text clients compare
			t.Errorf("the message of %d is %q", e.Code, e.Message)
		}
		if e.Message == apology && e != BadRequest {
			t.Errorf("the message of %d is the apology", e.Code)
		}
	}
}

func TestAnErrorWithoutAReasonSaysWhatItMeansAndWhatToChange(t *testing.T) {
	want := regexp.MustCompile(`^[a-z][^.;]*; [a-z].*[^.]$`)
	for _, e := range All() {
		var body struct{ DeveloperMessage string }
		err := json.Unmarshal(e.Body("", ""), &body)
		if err != nil || !want.MatchString(body.DeveloperMessage) &&
			body.DeveloperMessage != cmp.Or(fixedMessages[e.Code], comparedMessages[e.Code]) {
			t.Errorf("the developerMessage of %d is %q, %v", e.Code, body.DeveloperMessage, err)
		}
	}
}
