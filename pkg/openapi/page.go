package openapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

//go:embed page/*.html page/*.css page/*.js page/samples/*
var pageFiles embed.FS

// File is a file of the API reference in HTML.
type File struct {
	Type string // Content-Type
	Body []byte
}

// PagePolicy is the Content-Security-Policy of the API reference: it allows nothing from other hosts,
// and no inline style or script.
const PagePolicy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'none'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Pages returns the API reference by the paths below /docs: a page for each topic, with "" for the first
// page, and the style sheet and script that they share.
func (d *Document) Pages() (map[string]File, error) {
	templates, err := template.New("").Funcs(template.FuncMap{"text": prose, "slug": slug}).ParseFS(pageFiles,
		"page/*.html")
	if err != nil {
		return nil, err
	}
	samples, err := hostedLoginSamples()
	if err != nil {
		return nil, err
	}
	view := bookView{Claims: d.Claims, Samples: samples, Text: text(get(d.at("info"), "description")),
		Base: text(get(d.at("servers")[0].Value.(object), "url"))}
	for _, topic := range d.Topics {
		t := topicView{Name: topic.Name, Text: topic.Description}
		for _, op := range d.Operations {
			if op.Topic == topic.Name {
				t.Operations = append(t.Operations, d.view(op, view.Base))
			}
		}
		view.Topics = append(view.Topics, t)
	}
	files := map[string]File{}
	for name, kind := range map[string]string{"docs.css": "text/css", "docs.js": "text/javascript"} {
		body, err := pageFiles.ReadFile("page/" + name)
		if err != nil {
			return nil, err
		}
		files[name] = File{kind + "; charset=utf-8", body}
	}
	write := func(path string) error {
		var out bytes.Buffer
		err := templates.ExecuteTemplate(&out, "page.html", view)
		files[path] = File{"text/html; charset=utf-8", out.Bytes()}
		return err
	}
	if err := write(""); err != nil {
		return nil, err
	}
	for i := range view.Topics {
		view.Topic = &view.Topics[i]
		if err := write(slug(view.Topic.Name)); err != nil {
			return nil, err
		}
	}
	view.Topic, view.HostedLogin = nil, true
	return files, write("hosted-login-guide")
}

// hostedLoginSamples returns the programs of page/samples, which deploy/e2e runs.
func hostedLoginSamples() (samples []exampleView, err error) {
	for _, sample := range []struct{ language, file string }{
		{"Python", "hosted_login.py"}, {"Node.js", "hosted_login.mjs"}, {"Go", "hosted_login.go"},
	} {
		text, err := pageFiles.ReadFile("page/samples/" + sample.file)
		if err != nil {
			return nil, err
		}
		samples = append(samples, exampleView{sample.language, string(text)})
	}
	return samples, nil
}

type (
	bookView struct {
		Text, Base  string
		Topics      []topicView
		Topic       *topicView // that the page is about; nil for the first page and for that of hosted logins
		HostedLogin bool       // the page is that of hosted logins
		Claims      *Claims
		Samples     []exampleView
	}
	topicView struct {
		Name, Text string
		Operations []operationView
	}
	operationView struct {
		ID, Method, Path, Summary, Text string
		Public                          bool
		Parameters, Fields              []fieldView
		Kind                            string // of the body
		Examples                        []exampleView
		Answers                         []answerView
		Codes                           []codeView
		Terms                           string // what a search finds it by
	}
	fieldView struct {
		Name, Type, Limits, Text string
		Required                 bool
	}
	exampleView struct{ Name, Command string }
	answerView  struct {
		Status, Text, Example string
		Fields                []fieldView
	}
	codeView struct{ Status, Code, Text string }
)

// view returns the view of an operation on a page.
func (d *Document) view(op *Operation, host string) operationView {
	o := op.object
	v := operationView{
		ID: op.ID, Method: op.Method, Path: op.Server + op.Path, Summary: text(get(o, "summary")),
		Text:   text(get(o, "description")),
		Public: get(o, "security") != nil,
	}
	if strings.TrimSuffix(v.Text, ".") == v.Summary {
		v.Text = ""
	}
	parameters, _ := get(o, "parameters").([]any)
	for _, p := range parameters {
		p := d.resolve(p)
		f := d.field(text(get(p, "name")), get(p, "schema"))
		f.Text, f.Required = text(get(p, "description")), get(p, "required") == true
		v.Parameters = append(v.Parameters, f)
	}
	content, _ := get(d.resolve(get(o, "requestBody")), "content").(object)
	for _, media := range content {
		v.Kind = media.Key.(string)
		media := media.Value.(object)
		v.Fields = d.fields(get(media, "schema"), "", false, 0)
		examples, _ := get(media, "examples").(object)
		if example := get(media, "example"); example != nil {
			examples = object{{Key: "", Value: object{{Key: "value", Value: example}}}}
		}
		for _, example := range examples {
			v.Examples = append(v.Examples, exampleView{example.Key.(string),
				d.command(v, host, get(example.Value.(object), "value"))})
		}
	}
	if len(v.Examples) == 0 {
		v.Examples = []exampleView{{"", d.command(v, host, nil)}}
	}
	terms := []string{op.ID, op.Method, op.Path, v.Summary}
	for _, member := range get(o, "responses").(object) {
		status := member.Key.(string)
		response := d.resolve(member.Value)
		about := text(get(response, "description"))
		if status >= "400" {
			v.Codes = append(v.Codes, codes(status, about)...)
			continue
		}
		a := answerView{Status: status, Text: about}
		if content, ok := get(response, "content").(object); ok {
			schema := get(content[0].Value.(object), "schema")
			a.Fields = d.fields(schema, "", true, 0)
			if example := d.example(schema); example != nil {
				a.Example = indented(example)
			}
		}
		v.Answers = append(v.Answers, a)
	}
	for _, f := range slices.Concat(v.Parameters, v.Fields) {
		terms = append(terms, f.Name)
	}
	v.Terms = strings.ToLower(strings.Join(terms, " "))
	return v
}

var listed = regexp.MustCompile("(?m)^- `(\\d+)` (.*)$")

// codes parses the error codes in the description of an error answer.
func codes(status, about string) []codeView {
	var out []codeView
	for _, match := range listed.FindAllStringSubmatch(about, -1) {
		out = append(out, codeView{status, match[1], match[2]})
	}
	if out == nil {
		code := status
		if named := regexp.MustCompile(`\(code (\d+)\)`).FindStringSubmatch(about); named != nil {
			code, about = named[1], strings.Replace(about, " "+named[0], "", 1)
		}
		out = append(out, codeView{status, code, about})
	}
	return out
}

// command returns the curl command of a request.
func (d *Document) command(v operationView, host string, body any) string {
	path := placeholder.ReplaceAllStringFunc(v.Path, func(name string) string {
		return text(get(d.resolve(ref("parameters", strings.Trim(name, "{}"))), "example"))
	})
	command := "curl -K curl.conf"
	if v.Public { // browsers and pages call it: no API key belongs there
		command = "curl"
	}
	if v.Method != http.MethodGet && (v.Method != http.MethodPost || body == nil) {
		command += " -X " + v.Method
	}
	command += " '" + host + path + "'"
	fields, _ := body.(object)
	switch {
	case body == nil:
	case strings.HasSuffix(v.Kind, "urlencoded"):
		for _, f := range fields {
			command += fmt.Sprintf(" \\\n  --data-urlencode '%v=%v'", f.Key, f.Value)
		}
	default:
		command += " \\\n  -H 'Content-Type: application/json' \\\n  -d '" + strings.ReplaceAll(indented(body), "'",
			`'\''`) + "'"
	}
	return command
}

// fields returns the members of an object, and the members of objects inside it with names joined by
// dots.
func (d *Document) fields(schema any, prefix string, answer bool, depth int) []fieldView {
	s := d.resolve(schema)
	var out []fieldView
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		parts, _ := get(s, key).([]any)
		for _, part := range parts {
			for _, f := range d.fields(part, prefix, answer, depth) {
				if !slices.ContainsFunc(out, func(other fieldView) bool { return other.Name == f.Name }) {
					out = append(out, f)
				}
			}
		}
	}
	properties, _ := get(s, "properties").(object)
	required, _ := get(s, "required").([]any)
	for _, member := range properties {
		name := member.Key.(string)
		f := d.field(prefix+name, member.Value)
		f.Required = !answer && slices.Contains(required, any(name))
		out = append(out, f)
		inner := d.resolve(member.Value)
		if items := get(inner, "items"); items != nil && get(d.resolve(items), "properties") != nil {
			inner = d.resolve(items)
		}
		if get(inner, "properties") != nil && depth < 3 && name != "items" && !strings.HasPrefix(f.Type, "link") {
			out = append(out, d.fields(inner, prefix+name+".", answer, depth+1)...)
		}
	}
	return out
}

// field returns the view of a member.
func (d *Document) field(name string, schema any) fieldView {
	own, _ := schema.(object)
	s := d.resolve(schema)
	f := fieldView{Name: name, Type: d.kind(schema), Text: text(get(own, "description"))}
	if f.Text == "" {
		f.Text = text(get(s, "description"))
	}
	var limits []string
	add := func(format string, key string) {
		if v := get(s, key); v != nil {
			limits = append(limits, fmt.Sprintf(format, v))
		}
	}
	add("at least %v characters", "minLength")
	add("at most %v characters", "maxLength")
	add("from %v", "minimum")
	add("to %v", "maximum")
	if values, ok := get(s, "enum").([]any); ok {
		var names []string
		for _, v := range values {
			if v != nil {
				names = append(names, "`"+text(v)+"`")
			}
		}
		limits = append(limits, strings.Join(names, ", "))
	}
	add("default `%v`", "default")
	if get(own, "readOnly") == true || get(s, "readOnly") == true {
		limits = append(limits, "read-only")
	}
	f.Limits = strings.Join(limits, "; ")
	return f
}

// kind returns the name of the type of a value.
func (d *Document) kind(schema any) string {
	s, _ := schema.(object)
	if choices, ok := get(s, "anyOf").([]any); ok {
		var names []string
		for _, choice := range choices {
			names = append(names, d.kind(choice))
		}
		return strings.Join(names, " or ")
	}
	target, _ := get(s, "$ref").(string)
	switch name := strings.TrimPrefix(target, "#/components/schemas/"); {
	case name == "Link", name == "Reference":
		return "link"
	case target != "":
		if get(d.resolve(s), "properties") != nil || get(d.resolve(s), "allOf") != nil {
			return name
		}
		return d.kind(d.resolve(s))
	}
	switch kind := get(s, "type").(type) {
	case string:
		if kind == "array" {
			return "array of " + d.kind(get(s, "items"))
		}
		if format := text(get(s, "format")); format == "date-time" {
			return "date and time"
		}
		return kind
	case []any:
		return fmt.Sprintf("%v or null", kind[0])
	}
	return "any"
}

func (d *Document) example(schema any) any {
	s := d.resolve(schema)
	if example := get(s, "example"); example != nil {
		return example
	}
	parts, _ := get(s, "allOf").([]any)
	for _, part := range parts {
		items := get(d.resolve(get(d.resolve(part), "properties")), "items")
		if item := d.example(get(d.resolve(items), "items")); item != nil {
			href := text(get(item.(object), "href"))
			return object{
				{Key: "href", Value: href[:strings.LastIndexByte(href, '/')]}, {Key: "offset", Value: 0},
				{Key: "limit", Value: 25},
				{Key: "size", Value: 1}, {Key: "items", Value: []any{item}},
			}
		}
	}
	return nil
}

// resolve returns the object to which a $ref refers.
func (d *Document) resolve(v any) object {
	o, _ := v.(object)
	for {
		target, ok := get(o, "$ref").(string)
		if !ok {
			return o
		}
		o = d.at(strings.Split(strings.TrimPrefix(target, "#/"), "/")...)
	}
}

func (d *Document) at(place ...string) object {
	var v any = d.root
	for _, name := range place {
		switch at := v.(type) {
		case object:
			v = get(at, name)
		}
	}
	switch v := v.(type) {
	case object:
		return v
	case []any:
		var o object
		for i, item := range v {
			o = set(o, strconv.Itoa(i), item)
		}
		return o
	}
	return nil
}

func indented(v any) string {
	var compact, out bytes.Buffer
	if writeJSON(&compact, v) != nil || json.Indent(&out, compact.Bytes(), "", "  ") != nil {
		return ""
	}
	return out.String()
}

func text(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

func slug(topic string) string { return strings.ReplaceAll(strings.ToLower(topic), " ", "-") }

var (
	code   = regexp.MustCompile("`([^`]+)`")
	strong = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// prose returns the Markdown of a description as HTML: paragraphs, lists, code and strong emphasis.
func prose(markdown string) template.HTML {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(markdown), "\n\n") {
		block = template.HTMLEscapeString(block)
		block = strong.ReplaceAllString(code.ReplaceAllString(block, "<code>$1</code>"), "<strong>$1</strong>")
		if rest, found := strings.CutPrefix(block, "- "); found {
			out.WriteString("<ul><li>" + strings.ReplaceAll(rest, "\n- ", "</li><li>") + "</li></ul>")
		} else if block != "" {
			out.WriteString("<p>" + block + "</p>")
		}
	}
	return template.HTML(out.String()) //nolint:gosec // escaped above
}
