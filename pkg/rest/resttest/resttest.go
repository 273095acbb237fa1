// Package resttest sends requests to the HTTP application of a service in tests, as the gateway does,
// and compares the answers with golden files.
//
//	client := resttest.New(t, app, signer, caller.Caller{Tenant: tenant})
//	client.Post("/v1/directories", `{"name":"Staff"}`).Want(201).Golden("directory_created")
//
// A golden file has the status, the Location and the body. Ids, times, tokens, certificates,
// their fingerprints and the two words of a Client API's domain differ from run to run
// and are replaced by <id 1>, <time>, <token>, <certificate>, <fingerprint>, <label>. Rewrite the
// files with: go test ./... -update
package resttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Client sends requests to one app on behalf of one caller.
type Client struct {
	t      testing.TB
	app    *fiber.App
	signer *caller.Signer
	from   caller.Caller
	header http.Header
	times  bool // golden files have times unchanged
}

// New makes a client.
func New(t testing.TB, app *fiber.App, signer *caller.Signer, from caller.Caller) *Client {
	return &Client{t: t, app: app, signer: signer, from: from}
}

// WithTimes returns a client whose golden files have times unchanged, for a service with a fake
// clock.
func (c *Client) WithTimes() *Client {
	other := *c
	other.times = true
	return &other
}

// As returns a client of the same app for another caller.
func (c *Client) As(from caller.Caller) *Client {
	other := *c
	other.from = from
	return &other
}

// With returns a client of the same app and caller that also sends a header.
func (c *Client) With(name, value string) *Client {
	header := http.Header{}
	maps.Copy(header, c.header)
	header.Set(name, value)
	other := *c
	other.header = header
	return &other
}

// Answer is the answer to a request.
type Answer struct {
	t      testing.TB
	what   string
	Status int
	Header http.Header
	Body   []byte
	times  bool
}

// Get sends a GET.
func (c *Client) Get(path string) Answer { return c.Send(http.MethodGet, path, "", "") }

// Delete sends a DELETE.
func (c *Client) Delete(path string) Answer { return c.Send(http.MethodDelete, path, "", "") }

// Post sends a JSON body.
func (c *Client) Post(path, body string) Answer {
	return c.Send(http.MethodPost, path, fiber.MIMEApplicationJSON, body)
}

// Send sends any request. The path may be an absolute URL.
func (c *Client) Send(method, path, contentType, body string) Answer {
	c.t.Helper()
	if i := strings.Index(path, "/v1/"); i > 0 {
		path = path[i:]
	}
	request := httptest.NewRequest(method, path, strings.NewReader(body))
	maps.Copy(request.Header, c.header)
	if contentType != "" {
		request.Header.Set(fiber.HeaderContentType, contentType)
	}
	request.Header.Set(caller.Header, c.signer.Sign(c.from))
	response, err := openapitest.Do(c.t, c.app, request)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
	return Answer{c.t, method + " " + path, response.StatusCode, response.Header, content, c.times}
}

// Want checks the status.
func (a Answer) Want(status int) Answer {
	a.t.Helper()
	if a.Status != status {
		a.t.Fatalf("%s: status %d, want %d: %s", a.what, a.Status, status, a.Body)
	}
	return a
}

// WantError checks the status and the code of an error.
func (a Answer) WantError(status, code int) Answer {
	a.t.Helper()
	a.Want(status)
	if got := a.Int("code"); got != code {
		a.t.Fatalf("%s: code %d, want %d: %s", a.what, got, code, a.Body)
	}
	return a
}

// Object reads the body.
func (a Answer) Object() map[string]any {
	a.t.Helper()
	var object map[string]any
	if err := json.Unmarshal(a.Body, &object); err != nil {
		a.t.Fatalf("%s: the body is not a JSON object: %s", a.what, a.Body)
	}
	return object
}

// Text returns a text member of the body.
func (a Answer) Text(name string) string {
	text, _ := a.Object()[name].(string)
	return text
}

// Int returns a number of the body.
func (a Answer) Int(name string) int {
	number, _ := a.Object()[name].(float64)
	return int(number)
}

// Href returns the address of the resource, or of one that it links to.
func (a Answer) Href(link ...string) string {
	a.t.Helper()
	object := a.Object()
	for _, name := range link {
		next, ok := object[name].(map[string]any)
		if !ok {
			a.t.Fatalf("%s: no link %s in %s", a.what, name, a.Body)
		}
		object = next
	}
	href, _ := object["href"].(string)
	if href == "" {
		a.t.Fatalf("%s: no href in %s", a.what, a.Body)
	}
	return href
}

var (
	idPattern   = regexp.MustCompile(`\b[0-9A-Za-z]{22}\b(":)?`)
	uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	linkPattern = regexp.MustCompile(`(/emailVerificationTokens/)[0-9A-Za-z]{22}\b`) // some have no digit
	jwtPattern  = regexp.MustCompile(`eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+`)
	namePattern = regexp.MustCompile(`//[a-z]+-[a-z]+\.apps\.localhost`)
	sumPattern  = regexp.MustCompile(`("shaFingerprint": )"[0-9a-f]{40}"`)
	derPattern  = regexp.MustCompile(`MII[\w+/=\n]{200,}`)
)

// Golden compares the answer with testdata/<name>.json.
func (a Answer) Golden(name string) Answer {
	a.t.Helper()
	var body bytes.Buffer
	if len(a.Body) > 0 {
		if err := json.Indent(&body, a.Body, "", "  "); err != nil {
			a.t.Fatalf("%s: the body is not JSON: %s", a.what, a.Body)
		}
	}
	return a.golden(name+".json", fmt.Sprintf("%d\nLocation: %s\n\n%s\n", a.Status, a.Header.Get(fiber.HeaderLocation),
		body.String()))
}

// GoldenText compares the answer, which is not JSON, with testdata/<name>.txt.
func (a Answer) GoldenText(name string) Answer {
	a.t.Helper()
	text := derPattern.ReplaceAllString(string(a.Body), "<certificate>")
	return a.golden(name+".txt", fmt.Sprintf("%d\nContent-Type: %s\n\n%s\n", a.Status,
		a.Header.Get(fiber.HeaderContentType), text))
}

func (a Answer) golden(name, got string) Answer {
	a.t.Helper()
	got = jwtPattern.ReplaceAllString(got, "<token>")
	got = linkPattern.ReplaceAllString(got, "$1<token>")
	got = sumPattern.ReplaceAllString(got, `$1"<fingerprint>"`)
	got = namePattern.ReplaceAllString(got, "//<label>.apps.localhost")
	if !a.times {
		got = timePattern.ReplaceAllString(got, "<time>")
	}
	got = uuidPattern.ReplaceAllString(got, "<uuid>")
	known := map[string]string{}
	got = idPattern.ReplaceAllStringFunc(got, func(v string) string {
		if !strings.ContainsAny(v, "0123456789") || strings.HasSuffix(v, `":`) {
			return v // a word, or the name of a member
		}
		if known[v] == "" {
			known[v] = fmt.Sprintf("<id %d>", len(known)+1)
		}
		return known[v]
	})
	compare(a.t, name, got)
	return a
}

// CompareJSON compares a body alone, indented and otherwise as it is, with
// testdata/<name>.json.
func CompareJSON(t testing.TB, name string, body []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, body, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	compare(t, name+".json", pretty.String()+"\n")
}

// compare compares a text with a file of testdata, or writes it.
func compare(t testing.TB, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with: go test -update)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (accept it with: go test -update)\n--- want\n%s\n--- got\n%s", file, want, got)
	}
}

// Items returns the items of a collection.
func (a Answer) Items() []map[string]any {
	a.t.Helper()
	list, ok := a.Object()["items"].([]any)
	if !ok {
		a.t.Fatalf("%s: the body is not a collection: %s", a.what, a.Body)
	}
	items := make([]map[string]any, len(list))
	for i, item := range list {
		items[i], _ = item.(map[string]any)
	}
	return items
}
