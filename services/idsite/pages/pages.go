// Package pages draws the hosted pages: page.html has what they show, page.css
// how. They run no script, load nothing, and can be framed by nobody.
package pages

import (
	"bytes"
	_ "embed"
	"html/template"
)

var (
	//go:embed page.html
	html string
	//go:embed page.css
	style string

	document = template.Must(template.New("page").Parse(html))
)

// Policy is the Content-Security-Policy of every page: its own style, forms to
// its own origin, and nothing else.
var Policy = "default-src 'none'; style-src '" + hashOf(style) + "'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// Page is what one page shows.
type Page struct {
	Product string // the name of the deployment
	Title   string
	Text    string
	Problem string // why the last try was refused, if it was
	Form    *Form  // nil where there is nothing to do
}

// Form is what the user can send.
type Form struct {
	Button   string
	Token    string // of the mailed link
	Login    string // whose password is set, for password managers
	Password bool   // asks for a new password, twice
}

// Render gives the HTML of a page.
func Render(p Page) ([]byte, error) {
	var out bytes.Buffer
	err := document.Execute(&out, struct {
		Page
		Style template.CSS
	}{p, template.CSS(style)}) //nolint:gosec // the file beside this one
	return out.Bytes(), err
}
