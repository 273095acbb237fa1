package e2e_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var command = regexp.MustCompile(`(?s)<pre><code>(.*?)</code></pre>`)

// The commands of /docs work as they are pasted, one after the other in one shell,
// in a folder with the curl.conf that the page describes.
func TestTheCommandsOfTheReferenceWorkAsTheyArePasted(t *testing.T) {
	if _, err := client.Mailbox(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	page := string(client.Want(t, http.StatusOK, get(client.Key.HostURL()+"/docs")).Body)
	script := "set -euo pipefail\n"
	for _, block := range command.FindAllStringSubmatch(page, -1) {
		script += html.UnescapeString(block[1]) + "\n"
	}
	script += "printf '%s %s' \"$application\" \"$directory\" >created\n"
	dir := t.TempDir()
	conf := fmt.Sprintf("user = \"%s:%s\"\n", client.Key.ID, client.Key.Secret)
	if client.Key.CAFile != "" {
		conf += fmt.Sprintf("cacert = \"%s\"\n", client.Key.CAFile)
	}
	if err := os.WriteFile(filepath.Join(dir, "curl.conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	// The commands wait for a mail.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-c", script)
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	if created, readErr := os.ReadFile(filepath.Join(dir, "created")); readErr == nil {
		for address := range strings.FieldsSeq(string(created)) {
			client.DeleteAtEnd(t, address)
		}
	}
	if err != nil || strings.Contains(string(out), "developerMessage") || !strings.HasSuffix(string(out), "\n1\n") ||
		!strings.Contains(string(out), `"access_token"`) {
		t.Fatalf("the commands end with %v and print:\n%s", err, out)
	}
}

// The reference keeps WCAG 2.2 AA in both themes, on each kind of its pages.
func TestTheReferenceIsAccessible(t *testing.T) {
	b := openBrowser(t)
	for _, path := range []string{"/docs", "/docs/hosted-login-guide", "/docs/applications", "/docs/client-api"} {
		b.open(client.Key.HostURL() + path)
		for _, theme := range []string{"light", "dark"} {
			b.setTheme(theme)
			b.checkAccessibility(path + " in " + theme)
			b.takeScreenshot("docs" + strings.ReplaceAll(path, "/", "-") + "-" + theme)
		}
	}
}
