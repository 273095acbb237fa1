package pages

import (
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/locale"
)

// Every form of the template is drawn with hostile text: it stays text, the
// style is the one that the policy knows, and nothing else is loaded or run.
func TestPagesShowTextAndTheirOwnStyleAlone(t *testing.T) {
	const hostile = `"><script>alert(1)</script>{{.}}`
	form := &Form{
		Button: hostile, Hidden: map[string]string{"sptoken": hostile}, Login: hostile,
		Fields: []Field{{"email", hostile, "email", "email", hostile, hostile, []string{hostile}}, {"password", hostile, "password", hostile, "", hostile, nil}},
	}
	for _, p := range []Page{{}, {Form: form}, {Download: &Download{hostile, hostile, hostile}}, {Link: &Link{hostile, "javascript:alert(1)"}, Samples: []Sample{{hostile, hostile}}}} {
		p.Language, p.Product, p.Title, p.Text, p.Problem = "en", hostile, hostile, hostile, hostile
		p.Detail, p.Missing = hostile, []string{hostile}
		out, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		html := string(out)
		if strings.Contains(html, `type="email"`) || strings.Contains(html, "<input id") !=
			strings.Contains(html, `inputmode="email" pattern=".+@.+\..+"`) {
			t.Errorf("a browser would rewrite an internationalized address: %s", html)
		}
		if regexp.MustCompile(`(?i)<script>[^f]|<script |<img|<iframe|\son\w+=|src=|href="[^d#]|href="data:[^,t]`).MatchString(html) {
			t.Errorf("the page is %s", html)
		}
		sum := sha256.Sum256([]byte(regexp.MustCompile(`(?s)<style>(.*)</style>`).FindStringSubmatch(html)[1]))
		if !strings.Contains(Policy, base64.StdEncoding.EncodeToString(sum[:])) {
			t.Errorf("the policy %s refuses the page's style", Policy)
		}
	}
}

func TestEveryLanguageHasEveryTextOfThePages(t *testing.T) {
	placeholder := regexp.MustCompile(`\{\w+\}`)
	for _, language := range locale.Languages {
		if len(texts[language]) != len(texts["en"]) {
			t.Errorf("%s has %d texts, want %d", language, len(texts[language]), len(texts["en"]))
		}
		for key, english := range texts["en"] {
			text := texts[language][key]
			want, got := placeholder.FindAllString(english, -1), placeholder.FindAllString(text, -1)
			slices.Sort(want)
			slices.Sort(got)
			if text == "" || !slices.Equal(want, got) {
				t.Errorf("%s says for %s %q", language, key, text)
			}
		}
		if Text(language, "signInTitle") == "" || strings.Contains(Text(language, "readyText", "key", "calm-otter"), "{") {
			t.Errorf("%s lacks a text of the screens, or a value", language)
		}
	}
}

// A page that posts itself runs the script that its policy names, and posts to an
// address of the web alone.
func TestAPageThatPostsItsFormByItself(t *testing.T) {
	out, err := Render(Page{Form: &Form{Action: "https://wiki.test/acs?a=1&b", Button: "Continue",
		Hidden: map[string]string{"RelayState": `"><b>`}}})
	if err != nil {
		t.Fatal(err)
	}
	html := string(out)
	if !strings.Contains(html, `action="https://wiki.test/acs?a=1&amp;b"`) || strings.Contains(html, "<b>") ||
		strings.Contains(PostPolicy, "form-action") {
		t.Errorf("the page is %s under %s", html, PostPolicy)
	}
	script := regexp.MustCompile(`(?s)<script>(.*)</script>`).FindStringSubmatch(html)
	if sum := sha256.Sum256([]byte(script[1])); !strings.Contains(PostPolicy,
		"script-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
		t.Errorf("the policy %s refuses the script %s", PostPolicy, script[1])
	}
	out, err = Render(Page{Form: &Form{Action: "javascript:alert(1)"}})
	if err != nil || strings.Contains(string(out), "javascript:") {
		t.Errorf("the page is %s, %v", out, err)
	}
}
