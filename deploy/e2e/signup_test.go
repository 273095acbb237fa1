package e2e_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
)

var propertiesFile = regexp.MustCompile(`apiKey\.id = (\S+)\s+apiKey\.secret = (\S+)`)

// enterOwner fills in the form of a sign-up or of an invitation.
func (b *browser) enterOwner(email string) {
	b.Helper()
	b.fill("givenName", "Jo")
	b.fill("surname", "Doe")
	b.fill("email", email)
	b.fill("password", e2e.Password)
	b.submit()
}

// signUp makes a tenant as a new customer does, and returns a client for it.
func signUp(t *testing.T) *e2e.Client {
	t.Helper()
	email, b := e2e.Unique("owner")+"@example.test", openBrowser(t)
	b.open(client.Key.HostURL() + "/register")
	b.awaitHeading("Create your account")
	b.enterOwner(email)
	b.awaitHeading("Look in your inbox")
	mail := client.AwaitMail(t, email)
	if mail.Subject != "Confirm your sign-up" {
		t.Errorf("the mail is %q", mail.Subject)
	}
	b.open(linkInMail.FindString(mail.Text))
	b.awaitHeading("Complete your sign-up")
	b.do(chromedp.Reload()) // which consumes nothing
	b.awaitHeading("Complete your sign-up")
	b.submit()
	b.awaitHeading("Your tenant is ready")
	shown, err := evaluate[string](b, "document.querySelector('.key').textContent")
	if err != nil {
		t.Fatal(err)
	}
	found := propertiesFile.FindStringSubmatch(shown)
	if found == nil {
		t.Fatalf("the key is %q", shown)
	}
	b.open(linkInMail.FindString(mail.Text))
	b.awaitHeading("This link no longer works")
	return client.With(found[1], found[2])
}

func TestATenantIsSignedUp(t *testing.T) {
	owner := signUp(t)
	tenant := owner.Tenant(t)
	if tenant.Text("key") == client.Tenant(t).Text("key") || tenant.Text("name") != tenant.Text("key") {
		t.Errorf("the tenant is %v", tenant)
	}
	names := map[string]bool{}
	for _, application := range owner.Get(t, tenant.Link(t, "applications")).Items(t) {
		names[application.Text("name")] = true
		if application.Text("name") != "My Application" {
			continue
		}
		account := owner.Register(t, application.Link(t, "accounts"))
		owner.Want(t, http.StatusOK, e2e.Login(application, account.Text("email"), e2e.Password))
	}
	if !names["My Application"] || len(names) != 2 {
		t.Errorf("the applications are %v", names)
	}
	if sites := owner.Get(t, tenant.Link(t, "idSites")).Items(t); len(sites) != 1 || !strings.HasPrefix(sites[0].Text("domainName"),
		tenant.Text("key")+".id.") {
		t.Errorf("the sites are %v", sites)
	}

	t.Run("and invites an administrator", func(t *testing.T) {
		email := e2e.Unique("admin") + "@example.test"
		made := owner.WantObject(t, http.StatusCreated, post(tenant.Href()+"/invitations", e2e.Object{"email": email}))
		if made.Text("email") != email || made.Link(t, "tenant") != tenant.Href() || made.Text("expiresAt") == "" {
			t.Errorf("the invitation is %v", made)
		}
		b := openBrowser(t)
		b.open(linkInMail.FindString(client.AwaitMail(t, email).Text))
		b.awaitHeading("Become an administrator")
		b.enterOwner(e2e.Unique("other") + "@example.test")
		b.awaitTrue("document.querySelector('.alert').textContent === 'The email differs from that of the invitation.'")
		b.enterOwner(email)
		b.awaitHeading("You are an administrator now")
		owner.Refused(t, 409, 2001, post(tenant.Href()+"/invitations", e2e.Object{"email": email}))
	})
	t.Run("and no other tenant can invite for it", func(t *testing.T) {
		client.Refused(t, 404, 404, post(tenant.Href()+"/invitations", e2e.Object{"email": "a@example.test"}))
	})
}

func TestTheFormOfASignUpIsItsOwn(t *testing.T) {
	address := client.Key.HostURL() + "/register"
	form := url.Values{"givenName": {"Jo"}, "surname": {"Doe"}, "email": {e2e.Unique("x") + "@example.test"},
		"password": {e2e.Password}, "csrf": {strings.Repeat("x", 32)}}
	client.Want(t, http.StatusForbidden, page(http.MethodPost, address, form))
	client.Want(t, http.StatusNotFound, page(http.MethodGet, address+"?sptoken=x", nil))
	client.Want(t, http.StatusNotFound, page(http.MethodPost, address, url.Values{"sptoken": {"x"}}))
}
