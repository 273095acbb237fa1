package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// frameworkClient behaves as the integrations of web frameworks do: it posts every field of its form, filled
// in or not, with fields of its own, passes on what the user has typed, and compares texts of errors.
type frameworkClient struct {
	*testing.T
	application e2e.Object
}

// register posts the form of a registration.
func (c frameworkClient) register(form e2e.Object) e2e.Request {
	body := e2e.Object{
		"username": "", "givenName": "Jo", "middleName": "", "surname": "Doe", "password": e2e.Password,
		"confirmPassword": e2e.Password, "organizationNameKey": nil, "csrf_token": "x", "next": "/home",
	}
	for name, value := range form {
		body[name] = value
	}
	return post(c.application.Link(c, "accounts"), body)
}

// texts are what a form of the framework shows, and what its developer reads.
func (c frameworkClient) texts(r e2e.Request, status, code int) (message, developerMessage string) {
	c.Helper()
	body := client.Refused(c.T, status, code, r)
	return body.Text("message"), body.Text("developerMessage")
}

func TestAnIntegrationOfAFramework(t *testing.T) {
	fixture := client.NewVerificationFixture(t)
	c := frameworkClient{t, fixture.Application}
	email := e2e.Unique("jo") + "+tag@example.test"

	account := client.WantObject(t, http.StatusCreated, c.register(e2e.Object{"email": " " + email + " "}))
	if account.Text("email") != email || account.Text("username") != email || account["middleName"] != nil {
		t.Errorf("the account is %v, want the email as user name and no middle name", account)
	}
	quiet := c.register(e2e.Object{"email": e2e.Unique("quiet") + "@example.test"})
	quiet.URL += "?RegistrationWorkflowEnabled=FALSE"
	if made := client.WantObject(t, http.StatusCreated, quiet); made.Text("status") != "ENABLED" {
		t.Errorf("without the workflow the account is %v, want ENABLED", made)
	}

	t.Run("the texts that it compares", func(t *testing.T) {
		c := frameworkClient{t, c.application}
		short := c.register(e2e.Object{"email": e2e.Unique("x") + "@example.test", "password": "x"})
		message, developer := c.texts(short, 400, 2007)
		if !strings.HasPrefix(developer, message) {
			t.Errorf("developerMessage %q does not begin with the message %q", developer, message)
		}
		gone := client.Register(t, fixture.Directory.Link(t, "accounts"))
		client.Delete(t, gone.Href())
		client.Delete(t, gone.Href())
		message, developer = c.texts(get(gone.Href()), 404, 404)
		if developer != "The requested resource does not exist." || message != developer {
			t.Errorf("a deleted account: %q, %q", message, developer)
		}
	})
	t.Run("the link of the first mail works after the second", func(t *testing.T) {
		first, err := client.AwaitMail(t, email).Sptoken()
		if err != nil {
			t.Fatal(err)
		}
		client.Want(t, http.StatusAccepted, post(c.application.Link(t, "verificationEmails"), e2e.Object{"login": email}))
		client.Want(t, http.StatusOK, post("/accounts/emailVerificationTokens/"+first, nil))
	})
	t.Run("it searches for what the user has typed", func(t *testing.T) {
		found := client.Get(t, c.application.Link(t, "accounts")+"?email="+email).Items(t) // the plus sign as it is
		if len(found) != 1 || found[0].Href() != account.Href() {
			t.Errorf("?email=%s finds %v", email, found)
		}
	})
	t.Run("the code of a login differs from that of a failure", func(t *testing.T) {
		client.Want(t, http.StatusOK, e2e.Login(c.application, "\t"+strings.ToUpper(email)+" \n", e2e.Password))
		wrong := e2e.Request{
			Method: http.MethodPost, URL: c.application.Href() + "/oauth/token",
			Body: url.Values{"grant_type": {"password"}, "username": {email}, "password": {"Wrong0000!"}},
		}
		body, err := client.Want(t, http.StatusBadRequest, wrong).Object()
		if err != nil || body.Text("error") != "invalid_grant" {
			t.Errorf("a wrong password at the token endpoint: %v, %v, want invalid_grant", body, err)
		}
		tokens := client.Token(t, c.application.Href(), passwordGrant(email, e2e.Password))
		client.Refused(t, 400, 10017, get(c.application.Href()+"/authTokens/"+tokens.Text("refresh_token")))
		bearer := get(account.Href())
		bearer.Anonymous, bearer.Header = true, http.Header{"Authorization": {"Bearer abc"}}
		answer := client.Want(t, http.StatusUnauthorized, bearer)
		e2e.CheckError(t, answer, 401, 401)
		if answer.Header.Get("WWW-Authenticate") == "" {
			t.Error("a Bearer text at the management API is answered without a challenge")
		}
	})
}
