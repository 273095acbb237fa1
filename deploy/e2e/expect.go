package e2e

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// RequestIDHeader names the header that carries the id of a request.
const RequestIDHeader = "Service-Request-Id"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// Call sends a request and fails the test when no answer comes back.
func (c *Client) Call(t testing.TB, r Request) Answer {
	t.Helper()
	answer, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// Want sends a request and fails the test unless the answer has this status and
// a request id, which every answer of the management address must have.
func (c *Client) Want(t testing.TB, status int, r Request) Answer {
	t.Helper()
	answer := c.Call(t, r)
	if answer.Status != status {
		t.Fatalf("want status %d: %s", status, answer)
	}
	if id := answer.Header.Get(RequestIDHeader); !uuid.MatchString(id) {
		t.Errorf("%s carries %s %q, want a UUID", answer.Request, RequestIDHeader, id)
	}
	return answer
}

// WantObject is Want for answers whose body is one JSON object.
func (c *Client) WantObject(t testing.TB, status int, r Request) Object {
	t.Helper()
	answer := c.Want(t, status, r)
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("%s has Content-Type %q, want application/json", answer.Request, kind)
	}
	return answer.object(t)
}

// object is Object for an answer that must be one.
func (a Answer) object(t testing.TB) Object {
	t.Helper()
	object, err := a.Object()
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// Refused sends a request that must be refused with this status and code, and
// checks that the answer has the form of all errors: six fields, each filled, the
// request id the same as in the header. It returns the answer's body.
func (c *Client) Refused(t testing.TB, status, code int, r Request) Object {
	t.Helper()
	answer := c.Want(t, status, r)
	CheckError(t, answer, status, code)
	return answer.object(t)
}

// CheckError reports every way in which the answer is not the error with this
// status and code.
func CheckError(t testing.TB, answer Answer, status, code int) {
	t.Helper()
	body, err := answer.Object()
	if err != nil {
		t.Errorf("want error %d/%d: %v", status, code, err)
		return
	}
	if answer.Status != status {
		t.Errorf("want status %d: %s", status, answer)
	}
	for _, field := range []string{"message", "developerMessage", "moreInfo", "requestId"} {
		if body.Text(field) == "" {
			t.Errorf("the error lacks %s: %s", field, answer)
		}
	}
	if got, _ := body["status"].(float64); int(got) != status {
		t.Errorf("the error has status %v, want %d: %s", body["status"], status, answer)
	}
	if got, _ := body["code"].(float64); int(got) != code {
		t.Errorf("the error has code %v, want %d: %s", body["code"], code, answer)
	}
	if more := body.Text("moreInfo"); !strings.HasSuffix(more, "/"+strconv.Itoa(code)) {
		t.Errorf("moreInfo %q does not end with the code %d", more, code)
	}
	if id := answer.Header.Get(RequestIDHeader); id != body.Text("requestId") {
		t.Errorf("requestId is %q in the body and %q in the header", body.Text("requestId"), id)
	}
}

// Get reads a resource, which must exist.
func (c *Client) Get(t testing.TB, address string) Object {
	t.Helper()
	return c.WantObject(t, http.StatusOK, Get(address))
}

// Create posts a new resource and checks the answer: 201, and a Location that is the
// resource's own address.
func (c *Client) Create(t testing.TB, address string, body any) Object {
	t.Helper()
	answer := c.Want(t, http.StatusCreated, Post(address, body))
	created := answer.object(t)
	if location := answer.Header.Get("Location"); location != created.Href() || location == "" {
		t.Errorf("%s has Location %q and href %q, want the same", answer.Request, location, created.Href())
	}
	return created
}

// Update posts a change to a resource.
func (c *Client) Update(t testing.TB, address string, body any) Object {
	t.Helper()
	return c.WantObject(t, http.StatusOK, Post(address, body))
}

// Delete removes a resource, which must exist.
func (c *Client) Delete(t testing.TB, address string) {
	t.Helper()
	answer := c.Want(t, http.StatusNoContent, Delete(address))
	if len(answer.Body) != 0 {
		t.Errorf("the 204 has a body: %s", answer)
	}
}

// NotFound checks that an address, such as that of a deleted resource, answers 404.
func (c *Client) NotFound(t testing.TB, address string) {
	t.Helper()
	c.Refused(t, http.StatusNotFound, 404, Get(address))
}

// All reads all items of a collection, page by page.
func (c *Client) All(t testing.TB, address string) []Object {
	t.Helper()
	joint := "?"
	if strings.Contains(address, "?") {
		joint = "&"
	}
	var all []Object
	for {
		page := c.Get(t, address+joint+"limit=100&offset="+strconv.Itoa(len(all)))
		items := page.Items(t)
		all = append(all, items...)
		if len(items) == 0 || len(all) >= page.Number(t, "size") {
			return all
		}
	}
}

// Named picks the resource with this name and fails the test when the list has
// none or several.
func Named(t testing.TB, list []Object, name string) Object {
	t.Helper()
	var found Object
	names := make([]string, len(list))
	for i, item := range list {
		names[i] = item.Text("name")
		if names[i] != name {
			continue
		}
		if found != nil {
			t.Fatalf("two resources are named %q", name)
		}
		found = item
	}
	if found == nil {
		t.Fatalf("no resource is named %q among %q", name, names)
	}
	return found
}

// Token asks the application's token endpoint for tokens and checks what every
// successful answer of it has in common.
func (c *Client) Token(t testing.TB, application string, form url.Values) Object {
	t.Helper()
	answer := c.Want(t, http.StatusOK, Post(application+"/oauth/token", form))
	if answer.Header.Get("Cache-Control") != "no-store" || answer.Header.Get("Pragma") != "no-cache" {
		t.Errorf("a token answer must not be stored: Cache-Control %q, Pragma %q",
			answer.Header.Get("Cache-Control"), answer.Header.Get("Pragma"))
	}
	token := answer.object(t)
	if token.Text("access_token") == "" || token.Text("token_type") != "Bearer" {
		t.Fatalf("no bearer access token: %s", answer)
	}
	if token.Number(t, "expires_in") <= 0 {
		t.Errorf("the token expires in %v", token["expires_in"])
	}
	return token
}
