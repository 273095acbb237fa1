package rest_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// resets has the applications and stores of the tests of password resets and verification mails.
type resets struct {
	*client
	shop, bare, closed      string // applications
	first, second, unmapped string // directories
	jo, secondJo            string // accounts
}

func openResets(t *testing.T) resets {
	t.Helper()
	c := open(t)
	r := resets{client: c, shop: c.application(t, "Shop"), bare: c.application(t, "Bare"),
		closed: c.application(t, "Closed")}
	r.first, r.second, r.unmapped = c.directory(t, "First"), c.directory(t, "Second"), c.directory(t, "Unmapped")
	for _, directory := range []string{r.first, r.second} {
		c.mapping(t, r.shop, directory, nil)
	}
	c.mapping(t, r.closed, r.first, nil)
	account := func(directory string) string {
		return applicationtest.Base.To("accounts", c.Account(t, c.tenant, idOf(t, directory), "jo@example.test"))
	}
	r.jo, r.secondJo = account(r.first), account(r.second)
	c.Account(t, c.tenant, idOf(t, r.unmapped), "sam@example.test")
	c.update(t, r.closed, object{"status": "DISABLED"})
	return r
}

// refusals tests the errors that password resets and verification mails have in common. name is the
// member of the body with the login name.
func (r resets) refusals(t *testing.T, below, name string) {
	t.Helper()
	at := func(store any) object { return object{name: "jo@example.test", "accountStore": store} }
	for _, scenario := range []struct {
		what, application string
		body              any
		code              int
	}{
		{"an unknown login", r.shop, object{name: "nobody@example.test"}, 2016},
		{"a login of a store that is not mapped", r.shop, object{name: "sam@example.test"}, 2016},
		{"an application without stores", r.bare, object{name: "jo@example.test"}, 2016},
		{"a disabled application", r.closed, object{name: "jo@example.test"}, 2016},
		{"a disabled application and a store that never was", r.closed,
			at(link(applicationtest.Base.To("directories", r.NewID()))), 2016},
		{"no login", r.shop, object{}, 2000},
		{"a null login", r.shop, object{name: nil}, 2000},
		{"a blank login", r.shop, object{name: " "}, 2000},
		{"a number", r.shop, object{name: 1}, 2004},
		{"a login with NUL", r.shop, object{name: "jo\x00"}, 2006},
		{"the longest login", r.shop, object{name: strings.Repeat("ä", 255)}, 2016},
		{"a longer login", r.shop, object{name: strings.Repeat("ä", 256)}, 2008},
		{"a store that is not mapped", r.shop, at(link(r.unmapped)), 5114},
		{"a store that is not mapped, where there are none", r.bare, at(link(r.first)), 5114},
		{"a store that never was", r.shop, at(link(applicationtest.Base.To("directories", r.NewID()))), 2014},
		{"a store of another kind", r.shop, at(link(r.shop)), 2014},
		{"an unknown key", r.shop, at(object{"nameKey": "nobody"}), 2014},
		{"a store without name", r.shop, at(object{}), 2004},
		{"a store that is text", r.shop, at(r.first), 2004},
		{"an unknown property", r.shop, object{name: "jo@example.test", "colour": "red"}, 2015},
		{"no JSON", r.shop, "{", 2006},
		{"no body", r.shop, "", 2006},
	} {
		t.Run("refused: "+scenario.what, func(t *testing.T) {
			refusal := r.refused(t, 400, scenario.code, "POST", scenario.application+below, scenario.body)
			if strings.Contains(text(refusal["message"]), "password") {
				t.Errorf("the message names a password: %v", refusal["message"])
			}
		})
	}
	t.Run("refused: an application that never was", func(t *testing.T) {
		r.refused(t, 404, 404, "POST", applicationtest.Base.To("applications", r.NewID())+below,
			object{name: "jo@example.test"})
		r.refused(t, 404, 404, "POST", "/applications/nothing"+below, object{name: "jo@example.test"})
	})
	t.Run("refused: another tenant's application and store", func(t *testing.T) {
		other := r.another(t)
		other.refused(t, 404, 404, "POST", r.shop+below, object{name: "jo@example.test"})
		own := other.application(t, "Own")
		other.mapping(t, own, applicationtest.Base.To("directories", other.administrators), nil)
		other.refused(t, 400, 2014, "POST", own+below, at(link(r.first)))
	})
}

func TestPasswordResetTokens(t *testing.T) {
	t.Parallel()
	r := openResets(t)
	r.refusals(t, "/passwordResetTokens", "email")
	ask := func(body any) object {
		t.Helper()
		a := r.want(t, 200, "POST", r.shop+"/passwordResetTokens", body)
		made := a.object(t)
		if location := a.header.Get("Location"); location != made["href"] || len(made) != 3 ||
			made["email"] != "jo@example.test" {
			t.Errorf("at %q the answer is %s", location, a.body)
		}
		return made
	}
	for what, scenario := range map[string]struct {
		body    object
		account string
	}{
		"by email, in any case":    {object{"email": " JO@example.test "}, r.jo},
		"in a named store":         {object{"email": "jo@example.test", "accountStore": link(r.second)}, r.secondJo},
		"in a null store":          {object{"email": "jo@example.test", "accountStore": nil}, r.jo},
		"with its read-only parts": {object{"email": "jo@example.test", "href": "x", "account": link("y")}, r.jo},
	} {
		t.Run(what, func(t *testing.T) {
			if account := linked(t, ask(scenario.body), "account"); account != scenario.account {
				t.Errorf("the reset is that of %s, want %s", account, scenario.account)
			}
		})
	}

	made := ask(object{"email": "jo@example.test"})
	href := text(made["href"])
	token, ok := strings.CutPrefix(href, r.shop+"/passwordResetTokens/")
	if !ok || strings.Count(token, ".") != 2 {
		t.Fatalf("the href is %q", href)
	}
	answers := map[string]answer{}
	t.Run("a token is read, its dots encoded or not", func(t *testing.T) {
		for _, dot := range []string{".", "%2E", "%2e", "%252E", "%252e"} {
			answers["read"] = r.want(t, 200, "GET", r.shop+"/passwordResetTokens/"+strings.ReplaceAll(token, ".", dot), nil)
			if read := answers["read"].object(t); read["href"] != href || linked(t, read, "account") != r.jo {
				t.Errorf("with %s the answer is %s", dot, answers["read"].body)
			}
		}
	})
	t.Run("refused: a token that is none", func(t *testing.T) {
		for _, wrong := range []string{"x", "a.b.c", token + "x", strings.Replace(token, ".", "%25252E", 1)} {
			r.refused(t, 404, 404, "GET", r.shop+"/passwordResetTokens/"+wrong, nil)
			r.refused(t, 404, 404, "POST", r.shop+"/passwordResetTokens/"+wrong, object{"password": "Different1!"})
		}
	})
	t.Run("refused: another tenant, another application", func(t *testing.T) {
		other := r.another(t)
		own := other.application(t, "Own")
		for _, application := range []string{own, r.shop} {
			other.refused(t, 404, 404, "GET", application+"/passwordResetTokens/"+token, nil)
			other.refused(t, 404, 404, "POST", application+"/passwordResetTokens/"+token, object{"password": "Different1!"})
		}
		for _, application := range []string{r.closed, applicationtest.Base.To("applications", r.NewID())} {
			r.refused(t, 404, 404, "GET", application+"/passwordResetTokens/"+token, nil)
			r.refused(t, 404, 404, "POST", application+"/passwordResetTokens/"+token, object{"password": "Different1!"})
		}
	})
	t.Run("refused: a password", func(t *testing.T) {
		for _, scenario := range []struct {
			body any
			code int
		}{
			{object{}, 2000},
			{object{"password": nil}, 2000},
			{object{"password": ""}, 2000},
			{object{"password": "Short1"}, 2007},
			{object{"password": 1}, 2004},
			{object{"password": "Different1!", "colour": "red"}, 2015},
			{"{", 2006},
		} {
			r.refused(t, 400, scenario.code, "POST", href, scenario.body)
		}
		r.want(t, 200, "GET", href, nil) // nothing is spent
	})
	t.Run("of a hundred tries one sets the password", func(t *testing.T) {
		var all sync.WaitGroup
		var won, lost atomic.Int32
		for range 100 {
			all.Go(func() {
				switch a := r.send(t, "POST", r.shop+"/passwordResetTokens/"+strings.ReplaceAll(token, ".", "%2E"),
					object{"password": "Different1!"}); a.status {
				case 200:
					won.Add(1)
					if a.header.Get("Location") != href || a.object(t)["href"] != href {
						t.Errorf("at %q the answer is %s", a.header.Get("Location"), a.body)
					}
				case 404:
					lost.Add(1)
				default:
					t.Errorf("the answer is %d %s", a.status, a.body)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 || lost.Load() != 99 {
			t.Errorf("%d succeeded and %d did not", won.Load(), lost.Load())
		}
		r.refused(t, 404, 404, "GET", href, nil)
		r.refused(t, 400, 7100, "POST", r.shop+"/loginAttempts",
			object{"type": "basic", "value": value("jo@example.test", applicationtest.Password)})
		r.want(t, 200, "POST", r.shop+"/loginAttempts",
			object{"type": "basic", "value": value("jo@example.test", "Different1!")})
	})
	answers["refused"] = r.want(t, 404, "GET", href, nil)
	for name, a := range answers {
		a.Golden("password-reset-token-" + name)
	}
}

func TestVerificationEmails(t *testing.T) {
	t.Parallel()
	r := openResets(t)
	r.Directories.EnableVerification(t, directoryapi.Ref{Tenant: r.tenant, ID: idOf(t, r.first)})
	r.refusals(t, "/verificationEmails", "login")
	t.Run("refused without a login, in words that clients compare", func(t *testing.T) {
		refusal := r.refused(t, 400, 2000, "POST", r.shop+"/verificationEmails", object{})
		if refusal["message"] != "login property is required; it cannot be null, empty, or blank." {
			t.Errorf("the message is %q", refusal["message"])
		}
	})
	t.Run("refused: a directory whose workflow is off", func(t *testing.T) {
		r.refused(t, 400, 6101, "POST", r.shop+"/verificationEmails",
			object{"login": "jo@example.test", "accountStore": link(r.second)})
		r.refused(t, 400, 6101, "POST", r.shop+"/verificationEmails",
			object{"login": "jo@example.test", "account_store": r.second})
	})
	t.Run("answered without a body", func(t *testing.T) {
		for _, body := range []object{
			{"login": "jo@example.test"}, {"login": "JO@example.test", "accountStore": nil},
			{"login": "jo@example.test", "accountStore": link(r.first)},
			{"login": "jo@example.test", "account_store": r.first},
		} {
			former := r.token(t, r.jo)
			if a := r.want(t, 202, "POST", r.shop+"/verificationEmails", body); len(a.body) != 0 {
				t.Errorf("the answer is %q", a.body)
			}
			if token := r.token(t, r.jo); token == "" || former != "" && token != former {
				t.Errorf("the account has the token %q, want the one of the first mail, %q", token, former)
			}
		}
	})
}

// token returns the verification token of an account.
func (r resets) token(t *testing.T, account string) string {
	t.Helper()
	a, err := r.Directories.Account(t.Context(), directoryapi.Ref{Tenant: r.tenant, ID: idOf(t, account)})
	if err != nil {
		t.Fatal(err)
	}
	return a.VerificationToken.Reveal()
}
