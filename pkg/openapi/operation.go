package openapi

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/doorward/doorward/pkg/apierr"
)

// Operation is one method of one path.
type Operation struct {
	Method, Path, ID, Topic string
	Server                  string // path that Path is relative to, "" for the host
	object                  object
}

// operation makes the operation of an entry of a source file.
func (b *builder) operation(f *file, member yaml.MapItem) (*Operation, error) {
	method, path, found := strings.Cut(member.Key.(string), " ")
	if !found {
		return nil, fmt.Errorf("not of the form METHOD /path")
	}
	text, err := yaml.Marshal(member.Value)
	if err != nil {
		return nil, err
	}
	var e entry
	if err := yaml.UnmarshalWithOptions(text, &e, yaml.UseOrderedMap(), yaml.Strict()); err != nil {
		return nil, err
	}
	e.name(path)
	e.Public = e.Public || f.Usual.Public
	e.Token = cmp.Or(e.Token, f.Usual.Token)
	e.Errors = append(e.Errors, f.Usual.Errors...)
	for _, answer := range f.Usual.Answers {
		if !slices.ContainsFunc(e.Answers, func(own yaml.MapItem) bool {
			return fmt.Sprint(own.Key) == fmt.Sprint(answer.Key)
		}) {
			e.Answers = append(e.Answers, answer)
		}
	}
	w := writer{builder: b, entry: &e, path: path, headers: f.Usual.Headers}
	out := object{{Key: "operationId", Value: e.ID}, {Key: "tags", Value: []any{f.Topic}},
		{Key: "summary", Value: e.Summary}}
	if e.Description == "" {
		e.Description = e.Summary + "."
	}
	out = set(out, "description", e.Description)
	switch {
	case e.Token != "":
		out = set(out, "security", []any{object{{Key: e.Token, Value: []any{}}}})
	case e.Public:
		out = set(out, "security", []any{})
	}
	if f.Usual.Server != "" {
		out = set(out, "servers", []any{object{{Key: "url", Value: b.host + f.Usual.Server}}})
	}
	body, err := w.body()
	if err != nil {
		return nil, err
	}
	if parameters := w.parameters(); len(parameters) > 0 {
		out = set(out, "parameters", parameters)
	}
	if body != nil {
		out = set(out, "requestBody", body)
	}
	responses, err := w.responses(method)
	if err != nil {
		return nil, err
	}
	return &Operation{method, path, e.ID, f.Topic, f.Usual.Server, set(out, "responses", responses)}, nil
}

// name sets the id and the summary of an operation, unless the source file has them.
func (e *entry) name(path string) {
	segments := strings.Split(strings.Trim(path, "/"), "/")[1:]
	below := ""
	if len(segments) > 2 {
		below = singular(segments[0])
	}
	verb, noun, resource := "", "", ""
	switch {
	case e.List != "":
		last := segments[len(segments)-1]
		verb, resource, noun = "list", upper(last), "List the "+words(last)
	case e.Create != "":
		verb, resource, noun = "create", e.Create, "Create "+article(words(e.Create))
	case e.Get != "":
		verb, resource, noun, below = "get", e.Get, "Read "+article(words(e.Get)), ""
	case e.Update != "":
		verb, resource, noun, below = "update", e.Update, "Change "+article(words(e.Update)), ""
	case e.Delete:
		resource = upper(singular(segments[0]))
		verb, noun, below = "delete", "Delete "+article(words(resource)), ""
	}
	if e.ID == "" {
		e.ID = verb + upper(below) + resource
	}
	if e.Summary == "" {
		e.Summary = noun
		if below != "" {
			e.Summary += map[bool]string{true: " in ", false: " of "}[e.Create != ""] + article(words(below))
		}
	}
}

func upper(name string) string {
	if name == "" {
		return ""
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func singular(collection string) string {
	if stem, found := strings.CutSuffix(collection, "ies"); found {
		return stem + "y"
	}
	return strings.TrimSuffix(collection, "s")
}

// vowel matches a noun with the article "an".
var vowel = regexp.MustCompile("^([aeio]|SMTP|SMS|API|ID|OAuth|X)")

func article(noun string) string {
	switch {
	case strings.HasSuffix(noun, "rules") || strings.HasSuffix(noun, "metadata") || strings.HasSuffix(noun, "data"):
		return "the " + noun
	case vowel.MatchString(noun):
		return "an " + noun
	}
	return "a " + noun
}

// writer makes the parts of one operation, and collects the error codes that they imply.
type writer struct {
	*builder
	*entry
	path    string
	headers []string
	codes   []int
}

var bodyCodes = []int{2004, 2005, 2006, 2015}

// body returns the body of the request, or nil for an operation without a body.
func (w *writer) body() (object, error) {
	var schema any
	example := w.Example
	kind := map[bool]string{true: "create", false: "update"}[w.Create != ""]
	switch {
	case w.Body != nil:
		schema = w.reference(w.Body)
	case w.Create != "" || w.Update != "":
		r := w.resources[w.Create+w.Update]
		if r == nil {
			return nil, fmt.Errorf("no resource %s", w.Create+w.Update)
		}
		schema = ref("schemas", w.builder.body(r, kind))
		if example == nil {
			example = bodyExample(r, kind)
		}
	default:
		return nil, nil
	}
	media := object{{Key: "schema", Value: schema}}
	if len(w.Examples) > 0 {
		var named object
		for _, member := range w.Examples {
			named = set(named, member.Key.(string), object{{Key: "value", Value: member.Value}})
		}
		media = set(media, "examples", named)
	} else if example != nil {
		media = set(media, "example", example)
	}
	var content object
	if !w.Form {
		content = set(content, "application/json", media)
		w.codes = append(w.codes, bodyCodes...)
		w.derive(schema, map[string]bool{})
	}
	if w.Form || w.Either {
		content = set(content, "application/x-www-form-urlencoded", media)
	}
	return object{{Key: "required", Value: !w.Optional}, {Key: "content", Value: content}}, nil
}

func bodyExample(r *resource, kind string) any {
	out := object{}
	for _, member := range r.Fields {
		name, field := member.Key.(string), member.Value.(object)
		if example := get(field, "example"); writable(field, kind) && example != nil {
			out = set(out, name, example)
		}
	}
	return out
}

// derive collects the error codes that the schema of a body implies, such as that of a text that
// exceeds maxLength.
func (w *writer) derive(schema any, seen map[string]bool) {
	switch v := schema.(type) {
	case []any:
		for _, item := range v {
			w.derive(item, seen)
		}
	case object:
		for _, member := range v {
			switch member.Key {
			case "$ref":
				name := strings.TrimPrefix(member.Value.(string), "#/components/schemas/")
				if name == "Reference" || name == "StoreName" {
					w.codes = append(w.codes, 2000, 2002, 2014)
				}
				if name == "CustomDataChange" {
					w.codes = append(w.codes, 3000, 3001, 3002, 3003, 3004)
				}
				if !seen[name] {
					seen[name] = true
					w.derive(w.schemas[name], seen)
				}
			case "maxLength", "maxItems":
				w.codes = append(w.codes, 2000, 2007, 2008)
			case "enum":
				w.codes = append(w.codes, 2000, 2003)
			case "minimum", "maximum":
				w.codes = append(w.codes, 2000, 2009, 2010, 2013)
			case "required":
				w.codes = append(w.codes, 2000)
			}
			if member.Key != "example" && member.Key != "examples" {
				w.derive(member.Value, seen)
			}
		}
	}
}

// reference returns the reference to a schema by its name, or the schema itself.
func (w *writer) reference(schema any) any {
	if name, ok := schema.(string); ok {
		return ref("schemas", name)
	}
	return w.schema(schema)
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// parameters returns the parameters of the path and of the query.
func (w *writer) parameters() []any {
	var out []any
	for _, match := range placeholder.FindAllStringSubmatch(w.path, -1) {
		out = append(out, ref("parameters", match[1]))
	}
	for _, member := range w.Query {
		p := member.Value.(object)
		required := get(p, "required") == true
		out = append(out, object{
			{Key: "name", Value: member.Key}, {Key: "in", Value: "query"}, {Key: "required", Value: required},
			{Key: "description", Value: get(p, "description")},
			{Key: "schema", Value: w.schema(without(p, "description", "required"))},
		})
	}
	if len(w.Query) > 0 {
		w.codes = append(w.codes, 2101, 2102, 2103, 2105)
	}
	if w.List != "" {
		for _, name := range []string{"offset", "limit", "orderBy", "q"} {
			out = append(out, ref("parameters", name))
		}
		if r := w.resources[w.List]; r != nil {
			if r.After {
				out = append(out, ref("parameters", "after"))
			}
			for _, name := range r.Search {
				if get(w.Query, name) == nil {
					out = append(out, w.filter(r, name))
				}
			}
		}
		w.codes = append(w.codes, 2100, 2101, 2102, 2103, 2104, 2105, 2106, 2107, 2108)
	}
	expand := w.Expand
	for _, name := range []string{w.Get, w.List, w.Create, w.Update} {
		if expand == "" {
			expand = name
		}
	}
	if r := w.resources[expand]; r != nil && len(r.Expand) > 0 {
		out = append(out, object{
			{Key: "name", Value: "expand"}, {Key: "in", Value: "query"}, {Key: "required", Value: false},
			{Key: "description", Value: "Links to expand, separated by commas: " + list(r.Expand) +
				". A link to a collection takes a page: `" + r.Expand[0] + "(offset:0,limit:10)`."},
			{Key: "schema", Value: object{{Key: "type", Value: "string"}}}, {Key: "example", Value: r.Expand[0]},
		})
		w.codes = append(w.codes, 2100, 2101, 2102, 2103, 2107)
	}
	return out
}

// filter returns the query parameter that filters a collection by an attribute. Parameters with the
// same name are one component.
func (w *writer) filter(r *resource, name string) object {
	key := "by_" + strings.ReplaceAll(name, ".", "_")
	about := "Only those with this `" + name + "`; `*` at the start or the end stands for any text."
	field, _ := get(r.Fields, name).(object)
	switch {
	case strings.HasSuffix(name, "At"):
		about = "Only those of this period: a date or time such as `2026-11`, or a range such as " +
			"`[2026-11-01,2026-11-20)`."
	case name == "status", name == "listIndex", name == "id", get(field, "enum") != nil:
		about = "Only those with this `" + name + "`."
	}
	w.filters = set(w.filters, key, object{
		{Key: "name", Value: name}, {Key: "in", Value: "query"}, {Key: "required", Value: false},
		{Key: "description", Value: about}, {Key: "schema", Value: object{{Key: "type", Value: "string"}}},
	})
	return ref("parameters", key)
}

func list(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + name + "`"
	}
	return strings.Join(quoted, ", ")
}

// loginCodes are the reasons for which an account cannot log in.
var loginCodes = []int{
	2014, 4605, 5105, 5114, 6203, 7100, 7101, 7102, 7103, 7104, 7105, 7106, 7107, 7200, 7201, 7203, 7204,
	9000, 9001, 9002, 9003, 9004, 9005, 9006,
}

// responses returns the answers of an operation: successes and errors.
func (w *writer) responses(method string) (object, error) {
	out := object{}
	answer := func(status int, schema any, about string, headers ...string) {
		response := object{{Key: "description", Value: about}}
		var named object
		for _, name := range slices.Concat(headers, w.headers) {
			named = set(named, name, ref("headers", name))
		}
		named = set(named, w.requestID, ref("headers", "RequestId"))
		response = set(response, "headers", named)
		if schema != nil {
			response = set(response, "content", object{{Key: "application/json",
				Value: object{{Key: "schema", Value: w.reference(schema)}}}})
		}
		out = set(out, strconv.Itoa(status), response)
	}
	switch {
	case w.Get != "":
		answer(http.StatusOK, w.Get, upper(words(w.Get))+".", "ETag")
		out = set(out, "304", ref("responses", "NotModified"))
	case w.List != "":
		answer(http.StatusOK, w.List+"Collection", "A page of the collection.")
	case w.Create != "":
		answer(http.StatusCreated, w.Create, "It was created.", "Location")
	case w.Update != "":
		answer(http.StatusOK, w.Update, "It was changed.", "Location")
	case w.Delete:
		answer(http.StatusNoContent, nil, "It is deleted, or was not there.")
	}
	for _, member := range w.Answers {
		status, err := strconv.Atoi(fmt.Sprint(member.Key))
		if err != nil {
			return nil, err
		}
		switch v := member.Value.(type) {
		case string:
			if w.schemas[v] != nil {
				answer(status, v, http.StatusText(status)+".")
			} else if status/100 == 3 || status == http.StatusCreated {
				answer(status, nil, v, "Location")
			} else {
				answer(status, nil, v)
			}
		case object:
			if get(v, "description") != nil && get(v, "content") != nil {
				out = set(out, strconv.Itoa(status), w.schema(v))
			} else {
				answer(status, v, http.StatusText(status)+".")
			}
		}
	}
	return w.failures(out, method), nil
}

// failures adds the error answers. Those that every operation has are shared components; the answer of a
// status for which the operation has error codes of its own lists these codes.
func (w *writer) failures(out object, method string) object {
	codes := append(slices.Clone(w.codes), w.Errors...)
	if w.Login {
		codes = append(codes, loginCodes...)
	}
	slices.Sort(codes)
	byStatus := map[int][]*apierr.Error{}
	for _, code := range slices.Compact(codes) {
		if e := byCode(code); e != nil {
			byStatus[e.Status] = append(byStatus[e.Status], e)
		}
	}
	for _, code := range w.BadRequests {
		byStatus[http.StatusBadRequest] = append(byStatus[http.StatusBadRequest], byCode(code))
	}
	shared := map[int]string{403: "Forbidden", 413: "TooLarge", 429: "TooManyRequests", 500: "InternalError",
		503: "Unavailable"}
	if !w.Public {
		shared[401] = "Unauthorized"
	}
	if strings.Contains(w.path, "{") || method == http.MethodGet || w.Public {
		shared[404] = "NotFound"
	}
	if w.hasBody() {
		shared[415] = "UnsupportedMediaType"
	}
	for status := 400; status < 600; status++ {
		own, name := byStatus[status], shared[status]
		key := strconv.Itoa(status)
		switch {
		case len(own) > 0 && w.hasCode(get(out, key)):
			out = set(out, key, w.limited(get(out, key).(object), own))
		case get(out, key) != nil:
		case len(own) > 0:
			if e := byCode(status); name != "" && e != nil && !slices.Contains(own, e) {
				own = append([]*apierr.Error{e}, own...)
			}
			out = set(out, key, w.failure(status, own))
		case name != "":
			out = set(out, key, ref("responses", name))
		}
	}
	return out
}

// hasCode reports whether an answer has an error with a code: those of the Client
// API have none.
func (w *writer) hasCode(answer any) bool {
	schema := answer
	for _, name := range []string{"content", "application/json", "schema", "$ref"} {
		inner, _ := schema.(object)
		schema = get(inner, name)
	}
	name, _ := schema.(string)
	described, _ := w.schemas[strings.TrimPrefix(name, "#/components/schemas/")].(object)
	properties, _ := get(described, "properties").(object)
	return get(properties, "code") != nil
}

func (w *writer) hasBody() bool {
	return (w.Body != nil || w.Create != "" || w.Update != "") && !w.Form && !w.Either
}

func byCode(code int) *apierr.Error {
	for _, e := range apierr.All() {
		if e.Code == code {
			return e
		}
	}
	return nil
}

// failure returns an error answer with one of several codes.
func (w *writer) failure(status int, errors []*apierr.Error) object {
	return w.limited(object{
		{Key: "description", Value: http.StatusText(status) + "."},
		{Key: "headers", Value: object{{Key: w.requestID, Value: ref("headers", "RequestId")}}},
		{Key: "content", Value: object{{Key: "application/json",
			Value: object{{Key: "schema", Value: ref("schemas", "Error")}}}}},
	}, errors)
}

// limited returns an error answer whose codes are limited to those of errors.
func (w *writer) limited(answer object, errors []*apierr.Error) object {
	about := strings.TrimSuffix(get(answer, "description").(string), ".") + ", with one of these codes:\n"
	var codes []any
	for _, e := range errors {
		about += fmt.Sprintf("\n- `%d` %s", e.Code, e.Message)
		codes = append(codes, e.Code)
	}
	content := get(answer, "content").(object)
	schema := get(get(content, "application/json").(object), "schema")
	answer = set(answer, "description", about)
	return set(answer, "content", set(content, "application/json", object{{Key: "schema", Value: object{
		{Key: "allOf", Value: []any{schema, object{
			{Key: "type", Value: "object"}, {Key: "properties",
				Value: object{{Key: "code", Value: object{{Key: "enum", Value: codes}}}}},
		}}},
	}}}))
}
