package e2e

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"testing"
	"time"

	api "github.com/doorward/doorward/pkg/client"
)

// Password satisfies the default strength of every directory.
const Password = "Changeme1!"

// Tenant is the tenant that the client's key belongs to.
func (c *Client) Tenant(t testing.TB) Object {
	t.Helper()
	return setUp(t, c, func(s *Setup) Object { return s.Get("/tenants/current") })
}

// Unique makes a name that no earlier run has used, so that scenarios can be
// repeated on a deployment that keeps its data.
func Unique(noun string) string {
	return noun + "-" + rand.Text()[:12]
}

// Fixture is an application with a directory of its own: what most scenarios
// begin with.
type Fixture struct {
	Application Object
	Directory   Object
}

// NewFixture creates an application with createDirectory=true and finds the
// directory that came with it through the application's default mapping. Both
// are deleted when the test ends.
func (c *Client) NewFixture(t testing.TB) Fixture {
	t.Helper()
	fixture := setUp(t, c, func(s *Setup) Fixture { return s.Fixture(Object{"name": Unique("site")}) })
	c.DeleteAtEnd(t, fixture.Application.Href())
	c.DeleteAtEnd(t, fixture.Directory.Href())
	return fixture
}

// NewApplication creates an application without a directory, which is deleted
// when the test ends.
func (c *Client) NewApplication(t testing.TB) Object {
	t.Helper()
	application := setUp(t, c, func(s *Setup) Object { return s.Post("/applications", Object{"name": Unique("bare")}) })
	c.DeleteAtEnd(t, application.Href())
	return application
}

// NewVerificationFixture is a fixture whose directory asks new accounts to prove
// their email address.
func (c *Client) NewVerificationFixture(t testing.TB) Fixture {
	t.Helper()
	fixture := c.NewFixture(t)
	policy := c.Update(t, fixture.Directory.Link(t, "accountCreationPolicy"), Object{"verificationEmailStatus": "ENABLED"})
	if policy.Text("verificationEmailStatus") != "ENABLED" {
		t.Fatalf("the policy does not ask for verification: %v", policy)
	}
	return fixture
}

// deleteLimit bounds the retries of DeleteAtEnd.
const deleteLimit = 30 * time.Second

// DeleteAtEnd deletes a resource when the test ends. The scenario may have deleted the
// resource itself. The deletion is retried, because a process may have been killed.
func (c *Client) DeleteAtEnd(t testing.TB, address string) {
	t.Cleanup(func() {
		err := AwaitFor(context.WithoutCancel(t.Context()), deleteLimit, "the deletion of "+address, func(ctx context.Context) error {
			return api.Delete(ctx, c.API(t), address)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Register creates an account with a new email address and Password.
func (c *Client) Register(t testing.TB, accounts string) Object {
	t.Helper()
	return setUp(t, c, func(s *Setup) Object { return s.Post(accounts, NewAccount(Unique("jo")+"@example.test")) })
}

// NewAccount is an account with Password, as it is sent.
func NewAccount(email string) Object {
	return Object{"email": email, "password": Password, "givenName": "Jo", "surname": "Doe"}
}

// PasswordGrant is the form that gets tokens for an account with Password.
func PasswordGrant(email string) url.Values {
	return url.Values{"grant_type": {"password"}, "username": {email}, "password": {Password}}
}

// RefreshGrant is the form that gets tokens for a refresh token.
func RefreshGrant(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}}
}

// Login is the request of one login attempt against an application.
func Login(application Object, login, password string) Request {
	return Post(application.Href()+"/loginAttempts", Object{
		"type": "basic", "value": base64.StdEncoding.EncodeToString([]byte(login + ":" + password)),
	})
}
