// Package screens are the built-in pages of the hosted login: static files that
// speak the browser transport of docs/interface/id-site.md#browser-transport. No
// build step makes them: app.js is the entry, screens/ has one function per page,
// texts/ one file per language. The style is in the page itself, and a browser loads
// six files at once: no request waits for another.
package screens

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"path"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

//go:embed static
var embedded embed.FS

// Languages are those of the texts, the first being the fallback.
var Languages = []string{"en", "de", "es", "fr", "ja"}

var matcher = language.NewMatcher(tags())

func tags() []language.Tag {
	out := make([]language.Tag, len(Languages))
	for i, name := range Languages {
		out[i] = language.MustParse(name)
	}
	return out
}

// Language returns the language of a page for a header Accept-Language.
func Language(accept string) string {
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return Languages[0]
	}
	_, index, _ := matcher.Match(wanted...)
	return Languages[index]
}

// Screens serves the built-in pages.
type Screens struct {
	index   *template.Template
	files   map[string][]byte
	version string // changes with the files, so that browsers may keep them for ever
	modules []string
}

// New reads the embedded files.
func New() (*Screens, error) {
	s := &Screens{files: map[string][]byte{}}
	hash := sha256.New()
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		name = strings.TrimPrefix(name, "static/")
		fmt.Fprintf(hash, "%s %d\n%s", name, len(content), content)
		s.files[name] = content
		if strings.HasSuffix(name, ".js") && name != "app.js" && !strings.HasPrefix(name, "texts/") {
			s.modules = append(s.modules, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.version = base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:16]
	s.index, err = template.New("index").Parse(string(s.files["index.html"]))
	delete(s.files, "index.html")
	delete(s.files, "style.css")
	return s, err
}

// Index renders the page in a language. api is the address of the service
// without its version, which the page calls.
func (s *Screens) Index(api, lang string) ([]byte, error) {
	var out bytes.Buffer
	err := s.index.Execute(&out, map[string]any{
		"API": api, "Language": lang, "Version": s.version, "Style": template.CSS(Style()), //nolint:gosec // an embedded file
		"Title": Text(lang, "signInTitle"), "NoScript": Text(lang, "noScript"),
		"Modules": slices.Concat(s.modules, []string{"texts/" + lang + ".js"}),
	})
	return out.Bytes(), err
}

// Text returns a text of a language, or "". The lines of its file have the form
// key: "text",.
func Text(lang, key string) string {
	content, err := embedded.ReadFile("static/texts/" + lang + ".js")
	if err != nil {
		return ""
	}
	line := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(key) + `: "(.*)",$`).FindSubmatch(content)
	if line == nil {
		return ""
	}
	return string(line[1])
}

// Style returns the style sheet, for pages that look the same.
func Style() string {
	content, err := embedded.ReadFile("static/style.css")
	if err != nil {
		panic(err) // an embedded file
	}
	return string(content)
}

// File returns a static file and its content type, or false. The name begins with
// the version of the files.
func (s *Screens) File(name string) (content []byte, kind string, ok bool) {
	rest, current := strings.CutPrefix(name, s.version+"/")
	content, ok = s.files[rest]
	return content, mime.TypeByExtension(path.Ext(rest)), current && ok
}

// HashOf is a source of a Content-Security-Policy: what is in the page itself and has
// this text.
func HashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var styleSource = HashOf(Style())

// Policy is the Content-Security-Policy of the pages: their own files, calls of
// the service, and pictures for the logo.
func Policy(api string) string {
	return "default-src 'none'; script-src 'self'; style-src " + styleSource + "; img-src 'self' data: https:; connect-src " + api +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
