package e2e_test

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
	api "github.com/doorward/doorward/pkg/client"
)

func TestTheGoClient(t *testing.T) {
	c := client.API(t)
	application, err := c.CreateApplication(t.Context(), api.NewApplication{Name: e2e.Unique("go")}, url.Values{"createDirectory": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	client.DeleteAtEnd(t, application.Href)
	mapping, err := c.GetAccountStoreMapping(t.Context(), application.DefaultAccountStoreMapping.Href, url.Values{"expand": {"accountStore"}})
	if err != nil {
		t.Fatal(err)
	}
	client.DeleteAtEnd(t, mapping.AccountStore.Href)

	const accounts = 101 // more than a page
	for i := range accounts {
		email := fmt.Sprintf("go%d@example.test", i)
		if _, err := c.CreateApplicationAccount(t.Context(), application.Href, api.NewAccount{Email: email, Password: e2e.Password}); err != nil {
			t.Fatal(err)
		}
	}
	found := map[string]string{}
	for account, err := range c.ListDirectoryAccounts(t.Context(), mapping.AccountStore.Href, url.Values{"email": {"go*"}}) {
		if err != nil {
			t.Fatal(err)
		}
		found[account.Email] = account.Href
	}
	if len(found) != accounts {
		t.Errorf("the directory lists %d accounts, not %d", len(found), accounts)
	}

	tokens, err := c.CreateToken(t.Context(), application.Href, passwordGrant("go0@example.test", e2e.Password))
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.ValidateToken(t.Context(), application.Href, tokens.AccessToken, url.Values{"expand": {"account"}})
	if err != nil || token.Account.Email != "go0@example.test" {
		t.Errorf("the token is validated to %+v, %v", token, err)
	}

	_, err = c.CreateApplicationAccount(t.Context(), application.Href, api.NewAccount{Email: "go0@example.test", Password: e2e.Password})
	if !api.Is(err, 2001) {
		t.Errorf("an email that is taken is %v", err)
	}
	for range 2 {
		if err := c.DeleteAccount(t.Context(), found["go0@example.test"]); err != nil {
			t.Errorf("an account cannot be deleted: %v", err)
		}
	}
	if _, err = c.GetAccount(t.Context(), found["go0@example.test"]); !api.Is(err, 404) {
		t.Errorf("an account that is deleted is %v", err)
	}
}
