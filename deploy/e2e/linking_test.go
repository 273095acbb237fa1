package e2e_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// newTwoDirectoryFixture is a fixture with a second directory, whose accounts can log in to the
// application although it is not the default account store.
func newTwoDirectoryFixture(t *testing.T) (fixture e2e.Fixture, secondDirectory e2e.Object) {
	t.Helper()
	fixture = client.NewFixture(t)
	other := client.NewFixture(t)
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": fixture.Application.Href()}, "accountStore": e2e.Object{"href": other.Directory.Href()}, "listIndex": 0,
	})
	return fixture, other.Directory
}

// verifyEmail marks the email of an account as verified.
func verifyEmail(t *testing.T, account e2e.Object) {
	t.Helper()
	client.Update(t, account.Href(), e2e.Object{"emailVerificationStatus": "VERIFIED"})
}

func loginAs(t *testing.T, request e2e.Request) string {
	t.Helper()
	return client.WantObject(t, http.StatusOK, request).Link(t, "account")
}

// One person has an account in two directories. Logins with either account return the one in
// the default account store, when the application's account linking policy says so.
func TestLoginsLinkTheAccountsOfOnePerson(t *testing.T) {
	fixture, secondDirectory := newTwoDirectoryFixture(t)
	policy := fixture.Application.Link(t, "accountLinkingPolicy")
	account := client.Register(t, secondDirectory.Link(t, "accounts"))
	login := e2e.Login(fixture.Application, account.Text("email"), e2e.Password)

	t.Run("not unless the policy is enabled", func(t *testing.T) {
		client.Update(t, policy, e2e.Object{"automaticProvisioning": "ENABLED", "matchingProperty": "email"})
		if got := loginAs(t, login); got != account.Href() {
			t.Errorf("%s logged in, want %s", got, account.Href())
		}
	})
	client.Update(t, policy, e2e.Object{"status": "ENABLED"})
	var copied string
	t.Run("fifty first logins make one copy and one link", func(t *testing.T) {
		var all sync.WaitGroup
		who := make([]string, 50)
		for i := range who {
			all.Go(func() { who[i] = loginAs(t, login) })
		}
		all.Wait()
		for _, got := range who {
			if copied = who[0]; got != copied {
				t.Errorf("%s and %s logged in", got, copied)
			}
		}
		if all := client.All(t, fixture.Directory.Link(t, "accounts")); len(all) != 1 || all[0].Href() != copied || all[0].Text("email") != account.Text("email") {
			t.Errorf("the default account store has %v", all)
		}
		if links := client.All(t, account.Link(t, "accountLinks")); len(links) != 1 {
			t.Errorf("the account has %d links", len(links))
		}
		if linked := client.All(t, account.Link(t, "linkedAccounts")); len(linked) != 1 || linked[0].Href() != copied {
			t.Errorf("the account is linked to %v", linked)
		}
	})
	t.Run("a token is the linked account's", func(t *testing.T) {
		tokens := client.Token(t, fixture.Application.Href(), passwordGrant(account.Text("email"), e2e.Password))
		token := client.Get(t, tokens.Text("service_access_token_href"))
		if got := token.Link(t, "account"); got != copied {
			t.Errorf("the token is of %s, want %s", got, copied)
		}
	})
	t.Run("also where the copy, which has no password, is in the first store", func(t *testing.T) {
		mapping := fixture.Application.Link(t, "defaultAccountStoreMapping")
		client.Update(t, mapping, e2e.Object{"listIndex": 0})
		if got := loginAs(t, login); got != copied {
			t.Errorf("%s logged in, want %s", got, copied)
		}
		client.Update(t, mapping, e2e.Object{"listIndex": 1})
	})
	t.Run("not as an account that is disabled", func(t *testing.T) {
		client.Update(t, copied, e2e.Object{"status": "DISABLED"})
		client.Refused(t, 400, 7101, login)
		client.Update(t, copied, e2e.Object{"status": "ENABLED"})
	})
	t.Run("the same email alone proves nothing", func(t *testing.T) {
		email := e2e.Unique("sam") + "@example.test"
		register := func(directory e2e.Object) e2e.Object {
			return client.Create(t, directory.Link(t, "accounts"), e2e.Object{"email": email, "password": e2e.Password})
		}
		from, to := register(secondDirectory), register(fixture.Directory)
		attempt := e2e.Login(fixture.Application, email, e2e.Password)
		verifyEmail(t, to)
		if got := loginAs(t, attempt); got != from.Href() {
			t.Errorf("with one of the emails verified %s logged in, want %s", got, from.Href())
		}
		verifyEmail(t, from)
		if got := loginAs(t, attempt); got != to.Href() {
			t.Errorf("with both verified %s logged in, want %s", got, to.Href())
		}
	})
}

// The application explains to an administrator with an API key why a user cannot log
// in, without that user's password.
func TestALoginIsExplained(t *testing.T) {
	fixture, secondDirectory := newTwoDirectoryFixture(t)
	account := client.Register(t, secondDirectory.Link(t, "accounts"))
	explain := func(login string) e2e.Request {
		request := e2e.Login(fixture.Application, login, "")
		request.URL += "?explain=true"
		return request
	}
	t.Run("who would log in", func(t *testing.T) {
		explained := client.WantObject(t, http.StatusOK, explain(account.Text("email")))
		if got := explained.Object("decision").Link(t, "account"); got != account.Href() || explained.Object("decision")["passwordCompared"] != true {
			t.Errorf("the decision is %v", explained["decision"])
		}
		stores, _ := explained["accountStores"].([]any)
		if len(stores) != 2 {
			t.Fatalf("%d account stores are listed, want 2: %v", len(stores), explained)
		}
		for i, want := range []struct{ href, outcome string }{{secondDirectory.Href(), "DECIDES"}, {fixture.Directory.Href(), "NOT_REACHED"}} {
			store := e2e.Object(stores[i].(map[string]any))
			if store.Link(t, "accountStore") != want.href || store.Text("outcome") != want.outcome {
				t.Errorf("the store %d is %v, want %v", i, store, want)
			}
		}
	})
	t.Run("why nobody would", func(t *testing.T) {
		for _, change := range []struct {
			what         string
			at           string
			member, code any
		}{
			{"an unknown login", "", "refusal", 7104.0},
			{"a disabled account", account.Href(), "refusalAfterPassword", 7101.0},
			{"a disabled directory", secondDirectory.Href(), "refusalAfterPassword", 7106.0},
		} {
			login := account.Text("email")
			if change.at == "" {
				login = "nobody@example.test"
			} else {
				client.Update(t, change.at, e2e.Object{"status": "DISABLED"})
			}
			decision := client.WantObject(t, http.StatusOK, explain(login)).Object("decision")
			if got := decision.Object(change.member.(string))["code"]; got != change.code {
				t.Errorf("%s: the decision is %v", change.what, decision)
			}
			if change.at != "" {
				client.Update(t, change.at, e2e.Object{"status": "ENABLED"})
			}
		}
	})
	t.Run("what account links would do, without doing it", func(t *testing.T) {
		client.Update(t, fixture.Application.Link(t, "accountLinkingPolicy"), e2e.Object{"status": "ENABLED", "automaticProvisioning": "ENABLED"})
		if got := client.WantObject(t, http.StatusOK, explain(account.Text("email"))).Object("linking").Text("outcome"); got != "PROVISIONED" {
			t.Errorf("the outcome is %q", got)
		}
		if all := client.All(t, fixture.Directory.Link(t, "accounts")); len(all) != 0 {
			t.Errorf("the default account store has %v", all)
		}
	})
	t.Run("not to a stranger", func(t *testing.T) {
		request := explain(account.Text("email"))
		request.Anonymous = true
		client.Want(t, http.StatusUnauthorized, request)
	})
}
