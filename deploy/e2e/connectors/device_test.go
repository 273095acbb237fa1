package connectors_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/connectors"
)

// The script of docs/connect/device.md gets tokens while its user logs in elsewhere.
func TestAScriptSignsItsUserInByACode(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Directory.Link(t, "accounts"))
	clientID, _ := newOpenIDClient(t, fixture.Application, e2e.Object{
		"name": "script", "applicationType": "native",
		"grantTypes": []string{"urn:ietf:params:oauth:grant-type:device_code", "refresh_token"},
	})
	script := exec.CommandContext(t.Context(), "bash", "-c", connectors.PageBlock(t, "device.md", "sh"))
	script.Env = append(os.Environ(), "ISSUER="+openIDIssuer(t, fixture.Application),
		"CLIENT_ID="+clientID, "CA_FILE="+client.Key.CAFile)
	var userInfo bytes.Buffer
	script.Stdout = &userInfo
	said, err := script.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	var page, code string
	if _, err := fmt.Fscanf(said, "Open %s and type %s\n", &page, &code); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t)
	b.do(chromedp.Navigate(page))
	b.fill("user_code", strings.TrimSuffix(code, "."))
	b.do(chromedp.Click(chromedp.CSS("button[type=submit]")))
	b.logIn(account)
	b.awaitTrue("document.querySelector('button[name=allow]') !== null")
	b.do(chromedp.Click(chromedp.CSS("button[name=allow]")))
	rest, err := io.ReadAll(said)
	if err := errors.Join(err, script.Wait()); err != nil {
		t.Fatalf("%v: %s", err, rest)
	}
	if !strings.Contains(userInfo.String(), account.Text("email")) {
		t.Errorf("the script printed %s", &userInfo)
	}
}
