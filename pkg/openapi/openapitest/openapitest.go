// Package openapitest validates requests and answers of tests against the OpenAPI description
// (pkg/openapi), so that it stays correct (contract tests): pkg/rest/resttest does so in the golden
// tests, deploy/e2e in the end-to-end tests.
package openapitest

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/doorward/doorward/pkg/openapi"
)

// Exchange is a request and its answer.
type Exchange struct {
	Method, URL  string
	RequestBody  []byte
	Status       int
	AnswerHeader http.Header
	AnswerBody   []byte
}

// Checker validates exchanges against the document of one deployment.
type Checker struct {
	mu       sync.Mutex
	alias    string
	document map[string]any
	paths    [][]string // segments of the paths
	compiler *jsonschema.Compiler
}

const location = "openapi.json"

// The prefixes of the paths that must be described: those of the management API, of the Client API,
// and of the requests of hosted pages with a session token, as the gateway forwards them
// (gateway/hosted.go).
const (
	managed = "/v1/"
	clients = "/client/"
	session = "/session/v1"
)

// newChecker makes a checker for any base URL.
func newChecker(alias string) (*Checker, error) {
	d, err := openapi.New(openapi.Deployment{Base: "https://localhost:8443/v1", Alias: alias})
	if err != nil {
		return nil, err
	}
	text, err := d.JSON()
	if err != nil {
		return nil, err
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	c := &Checker{alias: alias, document: document.(map[string]any), compiler: jsonschema.NewCompiler()}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	for path := range c.document["paths"].(map[string]any) {
		c.paths = append(c.paths, strings.Split(path, "/"))
	}
	return c, c.compiler.AddResource(location, document)
}

var checkers sync.Map // func() (*Checker, error), by alias

// For returns the checker of deployments with an alias; "service" is the default alias.
func For(alias string) (*Checker, error) {
	made, _ := checkers.LoadOrStore(alias, sync.OnceValues(func() (*Checker, error) { return newChecker(alias) }))
	return made.(func() (*Checker, error))()
}

// Check returns an error if an exchange has a status, a member or a value that the document does not
// describe.
func (c *Checker) Check(x Exchange) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	target, err := url.Parse(x.URL)
	if err != nil {
		return err
	}
	method := x.Method
	if override := target.Query().Get("_method"); override != "" && method == http.MethodPost {
		method = strings.Replace(strings.ToUpper(override), http.MethodPut, http.MethodPost, 1)
	}
	if method == http.MethodHead {
		method, x.AnswerBody = http.MethodGet, nil
	}
	below, ofSession := strings.CutPrefix(target.Path, session)
	path := c.find(below)
	operation := c.at("paths", path, strings.ToLower(method))
	if operation == nil {
		owned := ofSession || strings.HasPrefix(target.Path, managed) || strings.HasPrefix(target.Path, clients)
		refused := slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnauthorized},
			x.Status)
		if !owned || refused || ofSession && x.Status == http.StatusForbidden || method == http.MethodOptions {
			return nil
		}
		return fmt.Errorf("the operation is not described, and answers %d", x.Status)
	}
	if x.Method == http.MethodHead && x.Status == http.StatusOK && isRedirect(operation) {
		return nil // it leaves the token of the redirect to a GET (docs/interface/conventions.md#addresses)
	}
	pointer := []string{"paths", path, strings.ToLower(method)}
	if x.Status < http.StatusBadRequest {
		if err := c.request(x, pointer); err != nil {
			return fmt.Errorf("the request is answered %d, but not as it is described: %w", x.Status, err)
		}
		if err := c.query(target, operation); err != nil {
			return err
		}
	}
	if err := c.answer(x, pointer); err != nil {
		return fmt.Errorf("the answer %d is not as it is described: %w", x.Status, err)
	}
	return nil
}

// isRedirect reports whether 302 is the only success of an operation.
func isRedirect(operation map[string]any) bool {
	answers, _ := operation["responses"].(map[string]any)
	return answers["302"] != nil && answers["200"] == nil
}

// Describes reports whether the document has an operation, with any names of the path
// parameters (":id" or "{id}").
func (c *Checker) Describes(method, path string) bool {
	return c.at("paths", c.find(path), strings.ToLower(method)) != nil
}

// find returns the path of the document that matches the path of a URL; if several match, the path with
// the fewest placeholders.
func (c *Checker) find(path string) string {
	wanted := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best, bestFixed := "", -1
	for _, segments := range c.paths {
		if len(segments) != len(wanted) {
			continue
		}
		fixed := 0
		for i, segment := range segments {
			if segment == wanted[i] {
				fixed++
			} else if !strings.HasPrefix(segment, "{") {
				fixed = -1
				break
			}
		}
		if fixed > bestFixed {
			best, bestFixed = strings.Join(segments, "/"), fixed
		}
	}
	return best
}

// at returns the object at a position of the document, or nil.
func (c *Checker) at(place ...string) map[string]any {
	at := c.document
	for _, name := range place {
		next, _ := at[name].(map[string]any)
		if target, ok := next["$ref"].(string); ok {
			next = c.at(strings.Split(strings.TrimPrefix(target, "#/"), "/")...)
		}
		at = next
	}
	return at
}

func (c *Checker) schema(place ...string) (*jsonschema.Schema, error) {
	var pointer strings.Builder
	for _, name := range place {
		pointer.WriteByte('/')
		pointer.WriteString(url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(name)))
	}
	return c.compiler.Compile(location + "#" + pointer.String())
}

// request validates the body of a request that succeeded. It also accepts what the API accepts without
// describing it: null, numbers and booleans as text, enum values in any letter case, some datetimes as
// numbers, and the read-only members of the resource. A form must have described fields only,
// although the API ignores others.
func (c *Checker) request(x Exchange, operation []string) error {
	content := slices.Concat(operation, []string{"requestBody", "content"})
	isForm := c.at(slices.Concat(content, []string{formType})...) != nil &&
		!bytes.HasPrefix(bytes.TrimSpace(x.RequestBody), []byte("{"))
	place := slices.Concat(content, []string{map[bool]string{true: formType, false: "application/json"}[isForm],
		"schema"})
	if len(bytes.TrimSpace(x.RequestBody)) == 0 || c.at(place...) == nil {
		return nil
	}
	schema, err := c.schema(place...)
	if err != nil {
		return err
	}
	var body any
	if isForm {
		body, err = c.formFields(x.RequestBody, c.at(slices.Concat(place, []string{"properties"})...))
	} else {
		body, err = jsonschema.UnmarshalJSON(bytes.NewReader(x.RequestBody))
	}
	if err != nil {
		return err
	}
	err = schema.Validate(body)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	answer := c.answerMembers(operation, x.Status)
	if accepted(invalid, body, answer) {
		return nil
	}
	return explain(err, x.RequestBody)
}

const formType = "application/x-www-form-urlencoded"

// formFields returns a form as an object of texts. Fields without a value count as absent
// (docs/interface/oauth.md#endpoints), and grant types are accepted with the word service too
// (docs/interface/conventions.md#the-alias).
func (c *Checker) formFields(form []byte, described map[string]any) (any, error) {
	values, err := url.ParseQuery(string(form))
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	for name, sent := range values {
		if described[name] == nil {
			return nil, fmt.Errorf("the field %s of the form is not described", name)
		}
		if sent[0] != "" {
			fields[name] = sent[0]
		}
	}
	if grant, ok := fields["grant_type"].(string); ok {
		fields["grant_type"] = strings.Replace(grant, "service_", c.alias+"_", 1)
	}
	return fields, nil
}

// answerMembers returns the top-level members of the answer.
func (c *Checker) answerMembers(operation []string, status int) map[string]any {
	response := c.at(slices.Concat(operation, []string{"responses", strconv.Itoa(status), "content", "application/json",
		"schema"})...)
	members, _ := response["properties"].(map[string]any)
	return members
}

// accepted reports whether the API accepts a value that a schema refuses.
func accepted(failure *jsonschema.ValidationError, body any, answer map[string]any) bool {
	switch failure.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		return slices.ContainsFunc(failure.Causes, func(cause *jsonschema.ValidationError) bool {
			return accepted(cause, body,
				answer)
		})
	}
	if len(failure.Causes) > 0 {
		return !slices.ContainsFunc(failure.Causes, func(cause *jsonschema.ValidationError) bool {
			return !accepted(cause,
				body, answer)
		})
	}
	if inner, ok := at(body, failure.InstanceLocation).(map[string]any); ok && inner["href"] != nil &&
		len(failure.InstanceLocation) > 0 {
		return true // a link, or an expanded resource, that is sent back
	}
	switch reason := failure.ErrorKind.(type) {
	case *kind.Type:
		isMilliseconds := reason.Got == "number" && slices.Equal(failure.InstanceLocation, inMilliseconds)
		return reason.Got == "null" || isMilliseconds ||
			reason.Got == "string" && !slices.Contains(reason.Want, "object") && !slices.Contains(reason.Want, "array")
	case *kind.Enum:
		got, _ := reason.Got.(string)
		return slices.ContainsFunc(reason.Want, func(v any) bool {
			want, ok := v.(string)
			return ok &&
				strings.EqualFold(want, got)
		})
	case *kind.AdditionalProperties:
		return len(failure.InstanceLocation) == 0 && !slices.ContainsFunc(reason.Properties, func(name string) bool {
			return answer[name] == nil && name != "httpStatus"
		})
	}
	return false
}

// inMilliseconds is the datetime that is also accepted as a number
// (docs/interface/applications.md#saml-identity-provider).
var inMilliseconds = []string{"authnIssueInstant"}

// at returns a value inside a body.
func at(body any, place []string) any {
	for _, name := range place {
		switch v := body.(type) {
		case map[string]any:
			body = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			body = v[i]
		}
	}
	return body
}

// options are query parameters of other operations, which are ignored on a collection
// (docs/interface/search.md#filters).
var options = []string{
	"createDirectory", "registrationWorkflowEnabled", "passwordFormat", "challenge", "encryptSecret",
	"encryptionKeySize",
	"encryptionKeyIterations", "encryptionKeySalt", "accountStore", "propertyId",
}

// query checks the names in the query of a collection, where an unknown name would be an attribute to
// filter by.
func (c *Checker) query(target *url.URL, operation map[string]any) error {
	known := map[string]bool{}
	parameters, _ := operation["parameters"].([]any)
	for _, parameter := range parameters {
		p := parameter.(map[string]any)
		if at, ok := p["$ref"].(string); ok {
			p = c.at(strings.Split(strings.TrimPrefix(at, "#/"), "/")...)
		}
		known[p["name"].(string)] = true
	}
	if !known["offset"] {
		return nil
	}
	for name := range target.Query() {
		if !known[name] && !strings.HasPrefix(name, "customData.") && !slices.Contains(options, name) &&
			name != "_method" {
			return fmt.Errorf("the parameter %s is not described", name)
		}
	}
	return nil
}

// answer validates status, headers and body of an answer.
func (c *Checker) answer(x Exchange, operation []string) error {
	place := slices.Concat(operation, []string{"responses", strconv.Itoa(x.Status)})
	response := c.at(place...)
	if response == nil {
		return fmt.Errorf("no such status: %s", x.AnswerBody)
	}
	responses := c.at(slices.Concat(operation, []string{"responses"})...)
	if shared, ok := responses[strconv.Itoa(x.Status)].(map[string]any)["$ref"].(string); ok {
		place = strings.Split(strings.TrimPrefix(shared, "#/"), "/")
	}
	if headers, _ := response["headers"].(map[string]any); headers["Location"] != nil &&
		x.AnswerHeader.Get("Location") == "" {
		return errors.New("it has no Location")
	}
	content, _ := response["content"].(map[string]any)
	if len(x.AnswerBody) == 0 {
		if len(content) > 0 && x.Method != http.MethodHead {
			return errors.New("it has no body")
		}
		return nil
	}
	kind, _, err := mime.ParseMediaType(x.AnswerHeader.Get("Content-Type"))
	if err != nil {
		return err
	}
	if content[kind] == nil {
		return fmt.Errorf("it has the content type %s: %s", kind, x.AnswerBody)
	}
	if kind != "application/json" {
		return nil
	}
	schema, err := c.schema(slices.Concat(place, []string{"content", kind, "schema"})...)
	if err != nil {
		return err
	}
	body, err := jsonschema.UnmarshalJSON(bytes.NewReader(x.AnswerBody))
	if err != nil {
		return err
	}
	return explain(schema.Validate(body), x.AnswerBody)
}

// explain returns an error with the members and values that a schema refuses, one per line.
func explain(err error, body []byte) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var lines []string
	var visit func(*jsonschema.ValidationError)
	visit = func(failure *jsonschema.ValidationError) {
		if len(failure.Causes) == 0 {
			line := fmt.Sprintf("%s: %v", strings.Join(append([]string{"body"}, failure.InstanceLocation...), "."),
				failure.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		for _, cause := range failure.Causes {
			visit(cause)
		}
	}
	visit(invalid)
	return fmt.Errorf("describe it in pkg/openapi/source:\n\t%s\n\tin %s", strings.Join(lines, "\n\t"), body)
}
