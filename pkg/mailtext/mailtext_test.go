package mailtext

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/macro"
)

var all = []string{Verification, VerificationSuccess, Welcome, Reset, ResetSuccess, ExistingAccount, SignUp, Invitation,
	FactorAdded, FactorRemoved, SMTPAlert, AdminKey}

var placeholder = regexp.MustCompile(`\{n\}|\{name\}`)

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// Every file is read, also one of a language that the pages do not have yet.
func TestEveryLanguageHasEveryTextOfTheMails(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("texts/*.json")
	if err != nil || len(names) < len(locale.Languages) {
		t.Fatalf("there are the files %v, %v; want one for each of %v", names, err, locale.Languages)
	}
	english := byLanguage["en"]
	if got := sorted(slices.Collect(maps.Keys(english.Mails))); !slices.Equal(got, sorted(slices.Clone(all))) {
		t.Errorf("the English mails are %v, want %v", got, all)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var have texts
		decoder := json.NewDecoder(strings.NewReader(string(content)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&have); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key, text := range map[string]string{"greetingWithoutName": have.GreetingWithoutName, "linkBelow": have.LinkBelow, "signIn": have.SignIn} {
			if text == "" {
				t.Errorf("%s lacks %s", name, key)
			}
		}
		if !strings.Contains(have.Greeting, "{name}") || !strings.Contains(have.Hours["other"], "{n}") {
			t.Errorf("%s: the greeting %q and the hours %q lack their placeholder", name, have.Greeting, have.Hours["other"])
		}
		for kind := range english.Factors {
			if have.Factors[kind] == "" {
				t.Errorf("%s lacks the name of the factor %s", name, kind)
			}
		}
		for key, want := range english.Mails {
			got := have.Mails[key]
			if got.Subject == "" || got.Text == "" || (got.Button == "") != (want.Button == "") || (got.Note == "") != (want.Note == "") {
				t.Errorf("%s: the mail %s lacks a text, or has one too many", name, key)
			}
			for part, texts := range map[string][2]string{"subject": {got.Subject, want.Subject}, "text": {got.Text, want.Text}, "note": {got.Note, want.Note}} {
				macros, err := macro.Names(texts[0])
				wanted, _ := macro.Names(texts[1])
				if err != nil || !slices.Equal(sorted(macros), sorted(wanted)) {
					t.Errorf("%s: the %s of %s has the macros %v, %v; want %v", name, part, key, macros, err, wanted)
				}
			}
			if placeholder.MatchString(got.Subject + got.Text + got.Note) {
				t.Errorf("%s: the mail %s has a placeholder that nothing replaces", name, key)
			}
		}
	}
}

func TestAMailLoadsNothing(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages {
		for _, name := range all {
			mail := Of(language, name, true)
			if regexp.MustCompile(`(?i)<img|<script|<link|src=|url\(|@import|@font-face`).MatchString(mail.HTML) {
				t.Errorf("%s in %s loads something, or runs a script", name, language)
			}
			if strings.Contains(mail.HTML, "{{") || strings.Contains(mail.HTML, "<no value>") || !strings.Contains(mail.HTML, `lang="`+language+`"`) {
				t.Errorf("%s in %s was not rendered", name, language)
			}
			if hasLink := byLanguage[language].Mails[name].Button != ""; strings.Count(mail.HTML, `href="$!{url}"`) != 2 && hasLink ||
				strings.Count(mail.Text, "$!{url}") != 1 && hasLink {
				t.Errorf("%s in %s does not have its link as a button, once more below, and in the text", name, language)
			}
		}
	}
}

// Mails in Arabic and Hebrew are written from right to left, all others from left to right.
func TestAMailHasTheDirectionOfItsLanguage(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages {
		want := `<html lang="` + language + `" dir="ltr">`
		if language == "ar" || language == "he" {
			want = `<html lang="` + language + `" dir="rtl">`
		}
		if mail := Of(language, Reset, false); !strings.Contains(mail.HTML, want) {
			t.Errorf("the mail lacks %s: %.200s", want, mail.HTML)
		}
	}
}

func TestHoursHaveThePluralFormsOfTheirLanguage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		language string
		n        int
		want     string
	}{
		{"en", 1, "1 hour"}, {"en", 24, "24 hours"}, {"de", 1, "1 Stunde"}, {"de", 48, "48 Stunden"}, {"fr", 1, "1 heure"}, {"ja", 24, "24 時間"},
		{"tlh", 24, "24 hours"}, {"", 1, "1 hour"},
	} {
		if got := Hours(c.language, c.n); got != c.want {
			t.Errorf("%d hours in %s are %q, want %q", c.n, c.language, got, c.want)
		}
	}
}
