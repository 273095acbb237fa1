package notification

import (
	"strings"
	"testing"
	"unicode"
)

func TestNamesAreSanitizedOfLinks(t *testing.T) {
	for given, want := range map[string]string{
		"Jo":                                  "Jo",
		"  Anne   Marie ":                     "Anne Marie",
		"J.R. Smith":                          "J. R. Smith",
		"O'Neil-Åström":                       "O'Neil-Åström",
		"山田 太郎":                               "山田 太郎",
		"Jo\r\nBcc: x@example.com":            "Jo Bcc: x@example. com",
		"Jo\u2028Doe":                         "Jo Doe",
		"Jo\u202eeoD":                         "JoeoD",
		"http://evil.example/x":               "",
		"Win at HTTPS://EVIL.example?a=b now": "Win at now",
		"click www.evil.example!":             "click",
		"evil.example/path":                   "evil. example/path",
		"evil。example":                        "evil。 example",
		"javascript:alert(1)":                 "",
		"mailto:boss@evil.example":            "",
		"evil.example:8080/x":                 "",
		"Jo\x00\x1b[31m":                      "Jo [31m",
		"...":                                 "...",
	} {
		if got := sanitizeName(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

func TestUserNamesAreKeptUnlessTheyAreLinks(t *testing.T) {
	for given, want := range map[string]string{
		"jo.doe":                  "jo.doe",
		"jo@example.test":         "jo@example.test",
		"JO@example.test":         "JO@example.test",
		"see http://evil.example": "see",
		"http://evil.example":     "",
		"www.evil.example":        "",
		"visit evil.example now":  "visit evil. example now",
		"a\r\nb":                  "a b",
		"1.2.3":                   "1.2.3",
		"jo@evil.com":             "jo@evil.com",
		"evil.com":                "evil. com",
		"win-at.EVIL.co.uk!":      "win-at. EVIL. co. uk!",
		"evil。com":                "evil。 com",
		"зло.рф":                  "зло. рф",
	} {
		if got := sanitizeUsername(given, "jo@example.test"); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, seed := range []string{"Jo", "http://a.b", "hhttp://ttp://a", "a.b.c", "www.www.", "a\r\nb", "a:b:c",
		"\xff\xfe"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := sanitizeName(text)
		if strings.ContainsFunc(got, unicode.IsControl) || linkPattern.MatchString(got) || innerDot.MatchString(got) {
			t.Fatalf("%q became %q", text, got)
		}
		if typed := sanitizeUsername(text, ""); strings.ContainsFunc(typed, unicode.IsControl) ||
			linkPattern.MatchString(typed) {
			t.Fatalf("the user name %q became %q", text, typed)
		}
		if again := sanitizeName(got); again != got {
			t.Fatalf("%q became %q, and then %q", text, got, again)
		}
	})
}
