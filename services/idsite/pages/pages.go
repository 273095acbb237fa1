// Package pages draws the pages that need no script: those that mailed links lead
// to, the sign-up, and refusals. They look like the built-in screens, whose style
// and texts they share, load nothing, and can be framed by nobody.
package pages

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"strings"

	"github.com/doorward/doorward/services/idsite/screens"
)

var (
	//go:embed page.html
	html string
	//go:embed texts
	files embed.FS

	document = template.Must(template.New("page").Funcs(template.FuncMap{"text": text}).Parse(html))
	style    = screens.Style()
	texts    = readTexts()
)

// Policy is the Content-Security-Policy of every page: its own style, forms to
// its own origin, and nothing else.
var Policy = "default-src 'none'; img-src data:; style-src " + screens.CSPHash(style) +
	"; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// readTexts reads the texts that the screens do not have, by language.
func readTexts() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, language := range screens.Languages {
		content, err := files.ReadFile("texts/" + language + ".json")
		own := map[string]string{}
		if err == nil {
			err = json.Unmarshal(content, &own)
		}
		if err != nil {
			panic(err) // an embedded file, which a test reads
		}
		all[language] = own
	}
	return all
}

// Text returns a text in a language, with the values put in for {name}, name and
// value in turn.
func Text(language, key string, values ...string) string {
	text, own := texts[language][key]
	if !own {
		text = screens.Text(language, key)
	}
	for i := 0; i+1 < len(values); i += 2 {
		text = strings.ReplaceAll(text, "{"+values[i]+"}", values[i+1])
	}
	return text
}

// text is Text for the template.
func text(language, key string) string { return Text(language, key) }

// Page is what one page shows.
type Page struct {
	Language string
	Product  string // the name of the application, the directory or the deployment
	Title    string
	Text     string
	Detail   string // for the developer of an application
	Problem  string // why the last attempt was refused, if it was
	Missing  []string
	Form     *Form // nil where there is nothing to do
	Download *Download
}

// Form is what the user can send.
type Form struct {
	Action string // of another site, to which the page posts the form by itself (PostPolicy); empty: its own address
	Button string
	Hidden map[string]string
	Login  string // whose password is set, for password managers
	Fields []Field
}

// Field is a text that the user enters. The Type email becomes text in the page:
// browsers would rewrite internationalized addresses, and refuse some.
type Field struct {
	Name, Label, Type, Autocomplete, Value, Hint string
	Rules                                        []string // that a value must keep
}

// Download is a text that the user can save as a file.
type Download struct{ Text, Name, Content string }

// URL is the address of the file, which is in the page itself.
func (d Download) URL() template.URL {
	return template.URL("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte(d.Content))) //nolint:gosec // Base64
}

// Render returns the HTML of a page.
func Render(p Page) ([]byte, error) {
	var out bytes.Buffer
	err := document.Execute(&out, struct {
		Page
		Style template.CSS
	}{p, template.CSS(style)}) //nolint:gosec // an embedded file
	return out.Bytes(), err
}
