package screens

import (
	"bytes"
	"compress/gzip"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/locale"
)

func open(t testing.TB) *Screens {
	t.Helper()
	s, err := New("https://localhost:8443")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var (
	placeholder = regexp.MustCompile(`\{\w+\}`)
	call        = regexp.MustCompile(`\bt\(([^)]*)`)
	literal     = regexp.MustCompile(`'([A-Za-z-]+)'`)
)

func TestEveryLanguageHasEveryText(t *testing.T) {
	t.Parallel()
	english := texts["en"]
	for _, language := range locale.Languages {
		have := texts[language]
		if file, _ := embedded.ReadFile("static/texts/" + language + ".json"); bytes.Count(file, []byte("\n"))-2 != len(have) {
			t.Errorf("%s has a text twice, or two in a line", language)
		}
		for key, text := range english {
			other, ok := have[key]
			if !ok || other == "" {
				t.Errorf("%s lacks %s", language, key)
				continue
			}
			want, got := placeholder.FindAllString(text, -1), placeholder.FindAllString(other, -1)
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(want, got) {
				t.Errorf("%s of %s has the values %v, want %v", key, language, got, want)
			}
		}
		for key := range have {
			if _, ok := english[key]; !ok {
				t.Errorf("%s has %s, which en lacks", language, key)
			}
		}
	}
	entries, err := embedded.ReadDir("static/texts")
	if err != nil || len(entries) != len(locale.Languages) {
		t.Errorf("%d files for %d languages, %v", len(entries), len(locale.Languages), err)
	}
}

// A call of t may choose between keys; each of them is a text.
func TestEveryTextThatAScreenNamesIsThere(t *testing.T) {
	t.Parallel()
	s := open(t)
	english := texts["en"]
	used := 0
	for name, content := range s.files {
		if !strings.HasSuffix(name, ".js") {
			continue
		}
		for _, c := range call.FindAllStringSubmatch(string(content.Plain), -1) {
			arguments, _, _ := strings.Cut(c[1], "{") // the values
			if _, keys, chosen := strings.Cut(arguments, "?"); chosen {
				arguments = keys
			}
			for _, key := range literal.FindAllStringSubmatch(arguments, -1) {
				used++
				if english[key[1]] == "" {
					t.Errorf("%s names the text %s, which is not there", name, key[1])
				}
			}
		}
	}
	if used < 60 {
		t.Errorf("%d texts are named", used)
	}
}

// An error that a user of the pages can cause has a text, in every language: the
// messages of the service are in English.
func TestTheRefusalsOfThePagesHaveATextInEveryLanguage(t *testing.T) {
	t.Parallel()
	list := regexp.MustCompile(`(?m)^  \[t\('(\w+)'\), ([\d, ]+)\],`).FindAllStringSubmatch(string(open(t).files["form.js"].Plain), -1)
	have := map[int]string{}
	for _, line := range list {
		for _, number := range strings.Split(line[2], ", ") {
			code, err := strconv.Atoi(number)
			if err != nil || have[code] != "" {
				t.Errorf("%s of %s stands twice, %v", number, line[1], err)
			}
			if _, known := apierr.Find(code); !known && code != 0 {
				t.Errorf("%d of %s is no error", code, line[1])
			}
			have[code] = line[1]
		}
	}
	for _, e := range []*apierr.Error{
		apierr.WrongPassword, apierr.AccountDisabled, apierr.AccountUnverified, apierr.AccountLocked, apierr.NoSuchAccount, apierr.GroupDisabled,
		apierr.DirectoryDisabled, apierr.OrganizationDisabled, apierr.NotMapped, apierr.Reference, apierr.Required, apierr.Exists, apierr.Format,
		apierr.TooShort, apierr.TooLong, apierr.BadRequest, apierr.PasswordReused, apierr.OutsideDomains, apierr.DomainBlacklisted, apierr.DomainNotWhitelisted,
		apierr.NoAccountStore, apierr.AccountStoreDisabled, apierr.ProviderRefused, apierr.ServerUnreachable, apierr.PhoneNumberInvalid,
		apierr.PhoneHasFactor, apierr.CodeWrong, apierr.CodeExpired, apierr.ChallengeFinished, apierr.ChallengeFailures, apierr.FactorDisabled,
		apierr.PhoneDisabled, apierr.Forbidden, apierr.NotFound, apierr.TooMany, apierr.Internal, apierr.Unavailable,
	} {
		if texts["en"][have[e.Code]] == "" {
			t.Errorf("%d has no text: %s", e.Code, e.Message)
		}
	}
}

func unzipped(t *testing.T, content []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// Every module is loaded before the first screen is shown.
func TestThePagesAreSmall(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, language := range locale.Languages {
		index := s.Index(language)
		size := len(index.Zipped)
		for _, content := range s.files {
			size += len(content.Zipped)
		}
		if size >= 60_000 {
			t.Errorf("the pages in %s have %d bytes", language, size)
		}
		// Browsers open six connections to a host: of more files one would wait for another.
		if files := strings.Count(string(index.Plain), "/static/"); files > 6 {
			t.Errorf("the page in %s names %d files", language, files)
		}
	}
}

func TestTheIndexNamesFilesThatAreThere(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, language := range locale.Languages {
		page := string(unzipped(t, s.Index(language).Zipped))
		for _, want := range []string{`<html lang="` + language + `"`, `<meta name="api" content="https://localhost:8443">`,
			`<link rel="preconnect" href="https://localhost:8443" crossorigin>`, `"signIn":"` + Text(language, "signIn") + `"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page in %s has no %s", language, want)
			}
		}
		if Text(language, "signInTitle") == "" || Text(language, "noScript") == "" {
			t.Errorf("%s has no title or no text for browsers without scripts", language)
		}
		named := regexp.MustCompile(`/static/([^"]+)"`).FindAllStringSubmatch(page, -1)
		if len(named) < 5 {
			t.Errorf("the page names %d files", len(named))
		}
		for _, file := range named {
			if served, ok := s.File(file[1]); !ok || served.Type == "" {
				t.Errorf("the page names %s, which is not served", file[1])
			}
		}
	}
}

func TestAFileIsServedUnderItsVersionAlone(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name := range s.files {
		if file, ok := s.File(s.version + "/" + name); !ok || len(file.Plain) == 0 || !bytes.Equal(unzipped(t, file.Zipped), file.Plain) {
			t.Errorf("%s is not served", name)
		}
		if _, ok := s.File("0000000000000000/" + name); ok {
			t.Errorf("%s is served under another version", name)
		}
	}
	for _, name := range []string{"", "index.html", s.version + "/index.html", s.version + "/../screens.go", s.version + "/"} {
		if _, ok := s.File(name); ok {
			t.Errorf("%q is served", name)
		}
	}
}

func TestTheLanguageFollowsTheBrowser(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]string{
		"": "en", "de": "de", "de-AT,en;q=0.5": "de", "en;q=0.3, fr;q=0.9": "fr", "pt-BR": "pt", "uk, ja;q=0.1": "ja", "es-419": "es", "*": "en", ";;;": "en",
		"JA-jp": "ja", "xx-invalid-tag-that-is-long, de": "en", "de;q=0": "en",
		strings.Repeat("de,", 10_000): "en",
	} {
		if got := Language(accept); got != want {
			t.Errorf("%q gets %s, want %s", accept, got, want)
		}
	}
}

func FuzzAcceptLanguage(f *testing.F) {
	for _, seed := range []string{"", "de-AT,en;q=0.5", "*;q=0", strings.Repeat("a-", 300), "de;q=1e9", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		if got := Language(accept); !slices.Contains(locale.Languages, got) || !utf8.ValidString(got) {
			t.Fatalf("%q gets %q", accept, got)
		}
	})
}

// A button of a social provider shows its mark; the letter of a name is for providers that have none
// here.
func TestEachSocialProviderHasItsMark(t *testing.T) {
	page, err := embedded.ReadFile("static/screens/password.js")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`const names = \{([^}]*)\}`).FindSubmatch(page)
	if names == nil {
		t.Fatal("password.js names no providers")
	}
	for _, name := range regexp.MustCompile(`(\w+):`).FindAllStringSubmatch(string(names[1]), -1) {
		mark := regexp.MustCompile(`\.provider\.` + name[1] + `::before \{[^}]*clip-path: path\("[^"]+"\)`)
		if !mark.MatchString(Style()) {
			t.Errorf("style.css draws no mark of %s", name[1])
		}
	}
}
