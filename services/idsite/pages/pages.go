// Package pages renders the pages that need no script: those of mailed links (email verification,
// password reset), the sign-up of a tenant, errors of a login, and the form post of a SAML response.
// They are one HTML template, load nothing, and cannot be framed. The pages of the hosted login,
// which are an app in JavaScript, are in the package screens; the pages here share their style
// and their texts.
package pages

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/services/idsite/screens"
)

var (
	//go:embed page.html
	html string
	//go:embed texts
	files embed.FS

	document = template.Must(template.New("page").Funcs(template.FuncMap{"text": text,
		"direction": screens.Direction}).Parse(html))
	style = screens.Style()
	texts = readTexts()
)

// reveal is the script of a form with passwords: it gives each a button that shows what is typed. The form
// works without it.
//
//go:embed reveal.js
var reveal string

// Policy is the Content-Security-Policy (CSP) of the pages. It allows their style, the script reveal and forms to
// their own origin, and nothing else.
var Policy = "default-src 'none'; img-src data:; style-src " + screens.CSPHash(style) + "; script-src " + screens.CSPHash(reveal) +
	"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// DecisionPolicy is the CSP of a page whose form leads to another site after it: browsers apply form-action to the
// redirect too.
var DecisionPolicy = strings.Replace(Policy, "; form-action 'self'", "", 1)

// FramePolicy is the CSP of a page that loads frames of other sites, by their addresses.
func FramePolicy(frames []string) string {
	sources := []string{}
	for _, frame := range frames {
		u, err := url.Parse(frame)
		if err == nil && u.Scheme == "https" {
			sources = append(sources, "https://"+u.Host)
		}
	}
	if len(sources) == 0 {
		return DecisionPolicy
	}
	return DecisionPolicy + "; frame-src " + strings.Join(slices.Compact(slices.Sorted(slices.Values(sources))), " ")
}

// readTexts reads the texts of this package, by language: those that the package screens lacks.
func readTexts() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, language := range locale.Languages {
		content, err := files.ReadFile("texts/" + language + ".json")
		read := map[string]string{}
		if err == nil {
			err = json.Unmarshal(content, &read)
		}
		if err != nil {
			panic(err) // an embedded file, which a test reads
		}
		all[language] = read
	}
	return all
}

// Text returns the text of a key in a language. values are names and values in turn: each {name} in
// the text is replaced by its value.
func Text(language, key string, values ...string) string {
	text, found := texts[language][key]
	if !found {
		text = screens.Text(language, key)
	}
	for i := 0; i+1 < len(values); i += 2 {
		text = strings.ReplaceAll(text, "{"+values[i]+"}", values[i+1])
	}
	return text
}

// text is the function text of the template.
func text(language, key string) string { return Text(language, key) }

// Page is the content of a page.
type Page struct {
	Language string
	Product  string // the name of the application, the tenant or the deployment
	Title    string
	Text     string
	Detail   string    // smaller, for the developer of an application
	Problem  string    // why the last attempt was refused, or ""
	Missing  []string  // what an entry lacks, below Problem
	Items    []string  // a list below the text, such as what a client asks for
	Frames   []string  // addresses of other sites that the page loads, unseen (FramePolicy)
	Refresh  bool      // the browser goes on to Link by itself, after Frames
	Form     *Form     // nil: the user has nothing to do
	Download *Download // nil: nothing to save
	Samples  []Sample  // what the user can copy
	Link     *Link     // the way on from the page; nil: none
}

// Link is a link that looks like a button.
type Link struct{ Text, URL string }

// Sample is a text for a terminal, with its heading.
type Sample struct{ Title, Text string }

// Form is the form of a page.
type Form struct {
	Action string // address of another site, to which the page posts the form by itself (PostPolicy); "": its own
	Button string
	// ButtonName is the name of the button; "": none. Cancel is the text of a second one, with the name cancel; "":
	// there is none.
	ButtonName, Cancel string
	Hidden             map[string]string
	Login              string // user name whose password is set, for password managers
	Fields             []Field
}

// Field is an input of a form. The Type email becomes text in the HTML, because browsers rewrite
// internationalized email addresses, and refuse some.
type Field struct {
	Name, Label, Type, Autocomplete, Value, Hint string
	Rules                                        []string // of a password policy, shown below the input
}

// Download is a file that the user can save, such as an API key.
type Download struct{ Text, Name, Content string }

// URL is the data: URL of the file.
func (d Download) URL() template.URL {
	return template.URL("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(d.Content))) //nolint:gosec // Base64
}

// hasPassword reports whether the form of the page asks for a password.
func (p Page) hasPassword() bool {
	return p.Form != nil && slices.ContainsFunc(p.Form.Fields, func(f Field) bool { return f.Type == "password" })
}

// Render returns the HTML of a page.
func Render(p Page) ([]byte, error) {
	var out bytes.Buffer
	err := document.Execute(&out, struct {
		Page
		Style       template.CSS
		Reveal      template.JS
		HasPassword bool
	}{p, template.CSS(style), template.JS(reveal), p.hasPassword()}) //nolint:gosec // embedded files
	return out.Bytes(), err
}
