package pages

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
)

var (
	//go:embed post.html
	postHTML string

	postDocument = template.Must(template.New("post").Parse(postHTML))
)

// submit is the script of post.html. Without JavaScript the user presses the button.
const submit = "document.forms[0].submit()"

// PostPolicy is the Content-Security-Policy of Post: its own style and its own
// script. It names no form-action, because browsers would apply that to the
// redirects of the receiver too.
var PostPolicy = "default-src 'none'; style-src '" + hashOf(style) + "'; script-src '" + hashOf(submit) + "'; base-uri 'none'; frame-ancestors 'none'"

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// Post is a page that posts a form to another site by itself.
type Post struct {
	Product string // the name of the deployment
	Action  string
	Fields  []PostField
}

// PostField is a hidden field of the form.
type PostField struct{ Name, Value string }

// RenderPost returns the HTML of the page.
func RenderPost(p Post) ([]byte, error) {
	var out bytes.Buffer
	err := postDocument.Execute(&out, struct {
		Post
		Style template.CSS
	}{p, template.CSS(style)}) //nolint:gosec // the file beside this one
	return out.Bytes(), err
}
