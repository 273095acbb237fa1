// Package screens has the built-in pages of the hosted login (login page, registration, MFA): one
// app in JavaScript, which is shown at the domain of a tenant and calls the service with a session
// token (docs/interface/id-site.md#session-token-api). The pages that need no script, such as those
// of mailed links, are in the package pages.
//
// There is no build step. static/app.js has the routes, static/screens one function for each page,
// static/texts one file for each language. The style and the texts are embedded in index.html, and
// a browser loads the five modules at once, so that no request waits for another.
package screens

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"path"
	"strings"

	"github.com/doorward/doorward/pkg/locale"
)

//go:embed static
var embedded embed.FS

// Language returns the language of a page for a header Accept-Language.
func Language(accept string) string { return cmp.Or(locale.OfHeader(accept), locale.Languages[0]) }

// Asset is a file as it is sent to a browser.
type Asset struct {
	Type          string
	Plain, Zipped []byte
}

// Screens has the files of the built-in pages.
type Screens struct {
	index   map[string]Asset // by language
	files   map[string]Asset
	version string // hash of all files, a part of their addresses, so that browsers may cache them for ever
}

// New reads the embedded files. api is the address that the pages call, without its version.
func New(api string) (*Screens, error) {
	s := &Screens{index: map[string]Asset{}, files: map[string]Asset{}}
	hash := sha256.New()
	var index string
	var modules []string
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
		switch {
		case name == "index.html":
			index = string(content)
			return nil
		case name == "style.css", strings.HasPrefix(name, "texts/"): // embedded in index.html
			return nil
		case name != "session.js":
			modules = append(modules, name)
		}
		s.files[name], err = newAsset(mime.TypeByExtension(path.Ext(name)), content)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.version = base64.RawURLEncoding.EncodeToString(hash.Sum(nil))[:16]
	document, err := template.New("index").Parse(index)
	if err != nil {
		return nil, err
	}
	for _, lang := range locale.Languages {
		var out bytes.Buffer
		if err := document.Execute(&out, map[string]any{
			"API": api, "Language": lang, "Direction": Direction(lang), "Version": s.version,
			"Style": template.CSS(Style()), //nolint:gosec // an embedded file
			"Title": Text(lang, "signInTitle"), "NoScript": Text(lang, "noScript"), "Texts": texts[lang], "Modules": modules,
		}); err != nil {
			return nil, err
		}
		if s.index[lang], err = newAsset("text/html; charset=utf-8", out.Bytes()); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// newAsset compresses a file with gzip.
func newAsset(kind string, content []byte) (Asset, error) {
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return Asset{}, err
	}
	if _, err := w.Write(content); err != nil {
		return Asset{}, err
	}
	if err := w.Close(); err != nil {
		return Asset{}, err
	}
	return Asset{Type: kind, Plain: content, Zipped: zipped.Bytes()}, nil
}

// Index returns index.html in a language.
func (s *Screens) Index(lang string) Asset { return s.index[lang] }

// texts are those of static/texts, by language and key.
var texts = func() map[string]map[string]string {
	out := make(map[string]map[string]string, len(locale.Languages))
	for _, lang := range locale.Languages {
		content, err := embedded.ReadFile("static/texts/" + lang + ".json")
		if err == nil {
			in := map[string]string{}
			err = json.Unmarshal(content, &in)
			out[lang] = in
		}
		if err != nil {
			panic(err) // an embedded file
		}
	}
	return out
}()

// Direction returns the direction in which a language is written, as the attribute dir of HTML has it.
func Direction(lang string) string {
	if locale.IsRightToLeft(lang) {
		return "rtl"
	}
	return "ltr"
}

// Text returns the text of a key in a language, or "".
func Text(lang, key string) string { return texts[lang][key] }

// Style returns the style sheet, which the package pages uses too.
func Style() string {
	content, err := embedded.ReadFile("static/style.css")
	if err != nil {
		panic(err) // an embedded file
	}
	return string(content)
}

// File returns a static file, or false. Its name begins with the version of the files.
func (s *Screens) File(name string) (Asset, bool) {
	rest, current := strings.CutPrefix(name, s.version+"/")
	file, ok := s.files[rest]
	return file, current && ok
}

// CSPHash is a source of a Content-Security-Policy: an inline script or style with this text.
func CSPHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

var styleSource = CSPHash(Style())

// Policy is the Content-Security-Policy (CSP) of the pages. It allows their own files, calls of the
// service, and images for the logo.
func Policy(api string) string {
	return "default-src 'none'; script-src 'self'; style-src " + styleSource + "; img-src 'self' data: https:; connect-src 'self' " + api +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
