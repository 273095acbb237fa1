package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

// What TestMain looks for in the logs of all scenarios.
func TestASecretInALogIsFound(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	tokens := client.Token(t, fixture.Application.Href(), passwordGrant(account.Text("email"), e2e.Password))
	key := client.WantObject(t, http.StatusCreated, e2e.Request{Method: http.MethodPost, URL: account.Href() + "/apiKeys"})
	link := "/accounts/emailVerificationTokens/" + strings.Repeat("notoken", 3)
	client.Want(t, http.StatusNotFound, e2e.Request{Method: http.MethodPost, URL: link})
	for name, logged := range map[string]string{
		"access token": tokens.Text("access_token"), "secret": key.Text("secret"), "path": link, "password": e2e.Password,
		"harmless": "", "id": account.Href(),
	} {
		dir := t.TempDir()
		line := "level=INFO msg=request what=" + logged + "\n"
		if err := os.WriteFile(filepath.Join(dir, "gateway.log"), []byte(strings.Repeat("level=INFO\n", 100)+line), 0o600); err != nil {
			t.Fatal(err)
		}
		found, want := e2e.LoggedSecrets(dir), 1
		if name == "harmless" || name == "id" {
			want = 0
		}
		if len(found) != want {
			t.Errorf("a log with %s: %v", name, found)
		}
	}
	if len(e2e.LoggedSecrets(t.TempDir())) == 0 {
		t.Error("a folder without logs is no error")
	}
}
