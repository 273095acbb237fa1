package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
)

// Every form of the template is drawn with hostile text: it stays text, the
// style is the one that the policy knows, and nothing else is loaded or run.
func TestPagesShowTextAndTheirOwnStyleAlone(t *testing.T) {
	const hostile = `"><script>alert(1)</script>{{.}}`
	for _, form := range []*Form{nil, {Button: hostile, Token: hostile}, {Button: hostile, Token: hostile, Login: hostile, Password: true}} {
		out, err := Render(Page{Product: hostile, Title: hostile, Text: hostile, Problem: hostile, Form: form})
		if err != nil {
			t.Fatal(err)
		}
		html := string(out)
		if regexp.MustCompile(`(?i)<script|<img|<link|<iframe|\son\w+=|src=|href=`).MatchString(html) {
			t.Errorf("the page is %s", html)
		}
		sum := sha256.Sum256([]byte(regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(html)[1]))
		if !strings.Contains(Policy, base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("the policy %s refuses the page's style", Policy)
		}
	}
}
