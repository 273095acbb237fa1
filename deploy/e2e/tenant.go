package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"testing"
	"time"
)

// Password satisfies the default strength of every directory.
const Password = "Changeme1!"

// Tenant is the tenant that the client's key belongs to.
func (c *Client) Tenant(t testing.TB) Object {
	t.Helper()
	return c.resource(t, "/tenants/current")
}

// TenantKey returns the key of that tenant.
func (c *Client) TenantKey(ctx context.Context) (string, error) {
	answer, err := c.Do(ctx, Request{Method: http.MethodGet, URL: "/tenants/current"})
	if err == nil {
		answer, err = c.Do(ctx, Request{Method: http.MethodGet, URL: answer.Header.Get("Location")})
	}
	if err != nil {
		return "", err
	}
	tenant, err := answer.Object()
	return tenant.Text("key"), err
}

// Unique makes a name that no earlier run has used, so that scenarios can be
// repeated on a deployment that keeps its data.
func Unique(noun string) string {
	return noun + "-" + rand.Text()[:12]
}

// Site is an application with a directory of its own: what most scenarios
// begin with.
type Site struct {
	Application Object
	Directory   Object
}

// NewSite creates an application with createDirectory=true and finds the
// directory that came with it through the application's default mapping. Both
// are deleted when the test ends.
func (c *Client) NewSite(t testing.TB) Site {
	t.Helper()
	application := c.newResource(t, "/applications?createDirectory=true", Object{"name": Unique("site")})
	mapping := c.resource(t, application.Link(t, "defaultAccountStoreMapping"))
	site := Site{Application: application, Directory: c.resource(t, mapping.Link(t, "accountStore"))}
	c.DeleteAtEnd(t, application.Href())
	c.DeleteAtEnd(t, site.Directory.Href())
	return site
}

// NewApplication creates an application without a directory, which is deleted
// when the test ends.
func (c *Client) NewApplication(t testing.TB) Object {
	t.Helper()
	application := c.newResource(t, "/applications", Object{"name": Unique("bare")})
	c.DeleteAtEnd(t, application.Href())
	return application
}

// NewVerificationSite is a site whose directory asks new accounts to prove
// their email address.
func (c *Client) NewVerificationSite(t testing.TB) Site {
	t.Helper()
	site := c.NewSite(t)
	policy := c.Update(t, site.Directory.Link(t, "accountCreationPolicy"), Object{"verificationEmailStatus": "ENABLED"})
	if policy.Text("verificationEmailStatus") != "ENABLED" {
		t.Fatalf("the policy does not ask for verification: %v", policy)
	}
	return site
}

// cleanLimit bounds the clean-up of one resource.
const cleanLimit = 30 * time.Second

// DeleteAtEnd cleans up behind the test and minds only whether the resource is
// gone: a scenario may have deleted it itself, and where something was killed a
// call may have to be repeated.
func (c *Client) DeleteAtEnd(t testing.TB, address string) {
	t.Cleanup(func() {
		err := AwaitFor(context.WithoutCancel(t.Context()), cleanLimit, "the clean-up", func(ctx context.Context) error {
			return c.remove(ctx, t, address)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Register creates an account with a new email address and Password.
func (c *Client) Register(t testing.TB, accounts string) Object {
	t.Helper()
	email := Unique("jo") + "@example.test"
	return c.newResource(t, accounts, Object{"email": email, "password": Password, "givenName": "Jo", "surname": "Doe"})
}

// Login is the request of one login attempt against an application.
func Login(application Object, login, password string) Request {
	return Request{
		Method: http.MethodPost,
		URL:    application.Href() + "/loginAttempts",
		Body: Object{
			"type":  "basic",
			"value": base64.StdEncoding.EncodeToString([]byte(login + ":" + password)),
		},
	}
}
