package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application/applicationtest"
	applicationrest "github.com/doorward/doorward/services/application/rest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// object is a JSON object of a body or an answer.
type object map[string]any

// client sends requests of one tenant, as the gateway does after it has authenticated an API key.
type client struct {
	*applicationtest.Deployment
	app            *fiber.App
	signer         *caller.Signer
	tenant         id.ID
	administrators id.ID
}

// open starts a service and returns the client of a new tenant.
func open(t *testing.T) *client {
	t.Helper()
	d := applicationtest.Open(t)
	signer := caller.NewSigner(secure.Secret(strings.Repeat("s", 32)), d.Clock.Now)
	app := rest.New(rest.Config{Service: "application", Base: applicationtest.Base, Signer: signer})
	applicationrest.Mount(app, d.Service.Core, d.Service.SAML, applicationtest.Base)
	return (&client{Deployment: d, app: app, signer: signer}).another(t)
}

// another returns the client of another new tenant of the same service.
func (c *client) another(t *testing.T) *client {
	t.Helper()
	other := *c
	other.tenant, other.administrators = c.Tenant(t)
	return &other
}

// answer is the answer to a request.
type answer struct {
	resttest.Answer
	status int
	header http.Header
	body   []byte
}

// object reads the body.
func (a answer) object(t *testing.T) object {
	t.Helper()
	return a.Object()
}

// send sends a request. The body is an object, or text that is sent as it is.
func (c *client) send(t *testing.T, method, path string, body any) answer {
	t.Helper()
	content, kind := "", "application/json"
	switch b := body.(type) {
	case nil:
		kind = ""
	case string:
		content = b
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		content = string(encoded)
	}
	path = "/v1" + strings.TrimPrefix(path, string(applicationtest.Base))
	as := caller.Caller{Tenant: c.tenant, RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"}
	a := resttest.New(t, c.app, c.signer, as).WithTimes().Send(method, path, kind, content)
	return answer{a, a.Status, a.Header, a.Body}
}

// want sends a request, checks the status of the answer, and returns the answer.
func (c *client) want(t *testing.T, status int, method, path string, body any) answer {
	t.Helper()
	a := c.send(t, method, path, body)
	if a.status != status {
		t.Fatalf("%s %s returned %d %s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

func (c *client) get(t *testing.T, path string) object {
	t.Helper()
	return c.want(t, 200, "GET", path, nil).object(t)
}

// create posts a new resource and checks the Location of the answer.
func (c *client) create(t *testing.T, path string, body any) object {
	t.Helper()
	a := c.want(t, 201, "POST", path, body)
	made := a.object(t)
	if location := a.header.Get("Location"); location != made["href"] {
		t.Errorf("the Location is %q, want %q", location, made["href"])
	}
	return made
}

func (c *client) update(t *testing.T, path string, body any) object {
	t.Helper()
	a := c.want(t, 200, "POST", path, body)
	changed := a.object(t)
	if location := a.header.Get("Location"); location != changed["href"] {
		t.Errorf("the Location is %q, want %q", location, changed["href"])
	}
	return changed
}

// refused sends a request, and checks that it is refused with a status and a code.
func (c *client) refused(t *testing.T, status, code int, method, path string, body any) object {
	t.Helper()
	a := c.want(t, status, method, path, body)
	refusal := a.object(t)
	if refusal["code"] != float64(code) {
		t.Errorf("%s %s returned %s, want the code %d", method, path, a.body, code)
	}
	return refusal
}

// application makes an application without account stores.
func (c *client) application(t *testing.T, name string) string {
	t.Helper()
	c.Clock.Tick()
	return text(c.create(t, "/applications", object{"name": name})["href"])
}

// directory makes a directory and returns its href.
func (c *client) directory(t *testing.T, name string) string {
	t.Helper()
	return applicationtest.Base.To("directories", c.Directory(t, c.tenant, name))
}

// group makes a group of a directory and returns its href.
func (c *client) group(t *testing.T, directory, name string) string {
	t.Helper()
	return applicationtest.Base.To("groups", c.Group(t, c.tenant, idOf(t, directory), name))
}

// organization makes an organization without account stores, of the same name
// and key.
func (c *client) organization(t *testing.T, key string) string {
	t.Helper()
	c.Clock.Tick()
	return text(c.create(t, "/organizations", object{"name": key, "nameKey": key})["href"])
}

// ref names a resource of the client's tenant.
func (c *client) ref(t *testing.T, href string) id.Ref {
	t.Helper()
	return id.Ref{Tenant: c.tenant, ID: idOf(t, href)}
}

// join makes an account a member of a group.
func (c *client) join(t *testing.T, account id.ID, group string) {
	t.Helper()
	c.Directories.Join(t, id.Ref{Tenant: c.tenant, ID: account}, idOf(t, group))
}

// organizationMapping maps an account store to an organization.
func (c *client) organizationMapping(t *testing.T, organization, store string, more object) string {
	t.Helper()
	c.Clock.Tick()
	body := object{"organization": link(organization), "accountStore": link(store)}
	for name, value := range more {
		body[name] = value
	}
	return text(c.create(t, "/organizationAccountStoreMappings", body)["href"])
}

// mapping maps an account store to an application.
func (c *client) mapping(t *testing.T, application, store string, more object) string {
	t.Helper()
	c.Clock.Tick()
	body := object{"application": link(application), "accountStore": link(store)}
	for name, value := range more {
		body[name] = value
	}
	return text(c.create(t, "/accountStoreMappings", body)["href"])
}

func link(href string) object { return object{"href": href} }

// linked returns the href of a link in an answer.
func linked(t *testing.T, o object, name string) string {
	t.Helper()
	l, ok := o[name].(map[string]any)
	if !ok {
		t.Fatalf("%s is %v, want a link", name, o[name])
	}
	return text(l["href"])
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// items returns one member of the items of a collection.
func items(t *testing.T, page object, member string) (values []string) {
	t.Helper()
	list, ok := page["items"].([]any)
	if !ok {
		t.Fatalf("the page has no items: %v", page)
	}
	for _, item := range list {
		values = append(values, text(item.(map[string]any)[member]))
	}
	return values
}

// idOf returns the id at the end of an href.
func idOf(t *testing.T, href string) id.ID {
	t.Helper()
	v, err := id.Parse(href[strings.LastIndexByte(href, '/')+1:])
	if err != nil {
		t.Fatalf("%q has no id", href)
	}
	return v
}

// otherSigner signs under another secret than that of the deployment.
func otherSigner() *caller.Signer {
	return caller.NewSigner(secure.Secret(strings.Repeat("x", 32)), time.Now)
}
