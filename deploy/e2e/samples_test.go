package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// The samples of docs/hosted-login.md sign a user in and out, and refuse an assertion that is forged,
// or that comes twice.
func TestTheSamplesOfHostedLogin(t *testing.T) {
	fixture := newHosted(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	binary := filepath.Join(t.TempDir(), "hosted_login")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../pkg/openapi/page/samples/hosted_login.go").
		CombinedOutput(); err != nil {
		t.Fatalf("compile the sample in Go: %v\n%s", err, out)
	}
	for language, command := range map[string][]string{
		"Python": {"python3", "../../pkg/openapi/page/samples/hosted_login.py"},
		"Node":   {"node", "../../pkg/openapi/page/samples/hosted_login.mjs"},
		"Go":     {binary},
	} {
		t.Run(language, func(t *testing.T) {
			address := startSample(t, fixture.Application, command)
			application := authorize(t, fixture.Application, address+"/callback")
			jar, _ := cookiejar.New(nil)
			visitor := &http.Client{Jar: jar, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			}}
			visit := func(status int, path string) (location, page string) {
				t.Helper()
				answer, err := visitor.Get(address + path) //nolint:noctx // the client has a timeout
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(answer.Body)
				if _ = answer.Body.Close(); err != nil || answer.StatusCode != status {
					t.Fatalf("GET %s is %d %s (%v), want %d", path, answer.StatusCode, body, err, status)
				}
				return answer.Header.Get("Location"), string(body)
			}

			browser := client.Browser()
			location, _ := visit(http.StatusFound, "/login")
			pages := browser.Want(t, http.StatusFound, get(location)).Header.Get("Location")
			token, found := strings.CutPrefix(pages, pageOrigin(t)+"/#/?jwt=")
			if !found {
				t.Fatalf("the browser is sent to %s", pages)
			}
			page := &hostedPage{T: t, browser: browser, app: application, token: token}
			page.logIn(account.Text("email"))
			path := strings.TrimPrefix(page.back, address)

			forged := path[:len(path)-4] + "AAAA"
			if _, page := visit(http.StatusBadRequest, forged); !strings.Contains(page, "signature") {
				t.Errorf("a forged assertion is answered with %s", page)
			}
			visit(http.StatusFound, path)
			if _, page := visit(http.StatusOK, "/"); !strings.Contains(page, "Signed in as "+account.Text("email")) {
				t.Errorf("after the login the page says %s", page)
			}
			if _, page := visit(http.StatusBadRequest, path); !strings.Contains(page, "not the answer to a request of this browser") {
				t.Errorf("the same assertion again is answered with %s", page)
			}
			location, _ = visit(http.StatusFound, "/logout")
			back := browser.Want(t, http.StatusFound, get(location)).Header.Get("Location")
			visit(http.StatusFound, strings.TrimPrefix(back, address))
			if _, page := visit(http.StatusOK, "/"); !strings.Contains(page, "Sign in") {
				t.Errorf("after the logout the page says %s", page)
			}
		})
	}
}

// startSample runs a sample until the end of the test, and returns its address once it answers.
func startSample(t *testing.T, application e2e.Object, command []string) string {
	t.Helper()
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	keyFile := filepath.Join(t.TempDir(), "apikey.json")
	key := fmt.Sprintf(`{"id":%q,"secret":%q,"baseUrl":%q,"caFile":%q}`, client.Key.ID, client.Key.Secret, client.Key.BaseURL, client.Key.CAFile)
	if err := os.WriteFile(keyFile, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), command[0], command[1:]...) //nolint:gosec // the table of the test
	process.Env = append(os.Environ(), "APPLICATION="+application.Href(), "LISTEN=localhost:"+port, "API_KEY_FILE="+keyFile)
	process.Cancel = func() error { return process.Process.Signal(syscall.SIGTERM) }
	var out strings.Builder
	process.Stdout, process.Stderr = &out, &out
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		_ = process.Wait()
		if t.Failed() {
			t.Logf("the sample printed: %s", out.String())
		}
	})
	address := "http://localhost:" + port
	err = e2e.AwaitFor(t.Context(), time.Minute, "the sample", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return address
}
