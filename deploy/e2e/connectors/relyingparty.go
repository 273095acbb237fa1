package connectors

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "embed"

	"github.com/doorward/doorward/deploy/e2e/harness"
)

// RelyingParty is an application that signs its users in at Doorward: the code of a page of
// docs/connect, which reads its settings from the environment and listens on localhost.
type RelyingParty struct {
	Port             int
	Issuer           string
	ClientID, Secret string
	CAFile           string // authorities that it trusts, in PEM
}

// URL is its home page, without a slash at its end.
func (p RelyingParty) URL() string { return "http://localhost:" + strconv.Itoa(p.Port) }

// StartNode runs docs/connect/node.md for one test.
func (p RelyingParty) StartNode(t testing.TB) {
	t.Helper()
	node, script := nodeProgram(t, "openid-client", PageBlock(t, "node.md", "js"))
	p.start(t, filepath.Dir(script), []string{"NODE_EXTRA_CA_CERTS=" + p.CAFile}, node, script)
}

// StartMCP runs the server of docs/connect/mcp.md for one test.
func (p RelyingParty) StartMCP(t testing.TB) {
	t.Helper()
	node, script := nodeProgram(t, "mcp", PageBlock(t, "mcp.md", "js"))
	p.start(t, filepath.Dir(script), []string{"NODE_EXTRA_CA_CERTS=" + p.CAFile}, node, script)
}

//go:embed mcpclient.mjs
var mcpClientScript string

// MCPClient is the command of a client that calls a tool of that server (mcpclient.mjs).
func (p RelyingParty) MCPClient(t testing.TB, tool string) *exec.Cmd {
	t.Helper()
	node, script := nodeProgram(t, "mcp", mcpClientScript)
	command := exec.CommandContext(t.Context(), node, script)
	command.Env = append(os.Environ(), "CLIENT_ID="+p.ClientID, "SERVER="+p.URL()+"/mcp", "TOOL="+tool,
		"NODE_EXTRA_CA_CERTS="+p.CAFile)
	return command
}

// nodeProgram writes a script to a folder where it finds the packages that setup.sh has fetched by a
// name, and returns the path of Node and of the script.
func nodeProgram(t testing.TB, packages, content string) (node, script string) {
	t.Helper()
	node, err := harness.Program("node", "connectors")
	must(t, err)
	fetched, err := harness.Fetched(packages)
	must(t, err)
	dir := t.TempDir()
	must(t, os.Symlink(filepath.Join(fetched, "node_modules"), filepath.Join(dir, "node_modules")))
	return node, write(t, dir, "program.mjs", content)
}

// StartPython runs docs/connect/python.md for one test.
func (p RelyingParty) StartPython(t testing.TB) {
	t.Helper()
	venv, err := harness.Fetched("authlib")
	must(t, err)
	dir := t.TempDir()
	p.start(t, dir, []string{"REQUESTS_CA_BUNDLE=" + p.CAFile}, filepath.Join(venv, "bin", "python"), "-u",
		write(t, dir, "shop.py", PageBlock(t, "python.md", "python")))
}

// StartGo compiles docs/connect/go.md, with the libraries of the demo, and runs it for one test.
func (p RelyingParty) StartGo(t testing.TB) {
	t.Helper()
	root, err := harness.Root()
	must(t, err)
	dir := t.TempDir()
	source := write(t, dir, "main.go", PageBlock(t, "go.md", "go"))
	bin, err := harness.BuildIn(t.Context(), filepath.Join(root, "deploy", "demo"), dir, source)
	must(t, err)
	p.start(t, dir, []string{"SSL_CERT_FILE=" + p.CAFile}, filepath.Join(bin, "main"))
}

// StartJava compiles docs/connect/java.md and runs it for one test.
func (p RelyingParty) StartJava(t testing.TB) {
	t.Helper()
	java, err := harness.Program("java", "connectors")
	must(t, err)
	libraries, err := harness.Fetched("spring")
	must(t, err)
	dir := t.TempDir()
	classpath := dir + string(filepath.ListSeparator) + filepath.Join(libraries, "*")
	write(t, dir, "application.yml", PageBlock(t, "java.md", "yaml"))
	_, err = command(t.Context(), nil, "", "javac", "-parameters", "-cp", classpath, "-d", dir,
		write(t, dir, "Shop.java", PageBlock(t, "java.md", "java")))
	must(t, err)
	trust := filepath.Join(dir, "trust.p12")
	_, err = command(t.Context(), nil, "", "keytool", "-importcert", "-noprompt", "-alias", "doorward", "-file", p.CAFile,
		"-keystore", trust, "-storepass", "changeit")
	must(t, err)
	p.start(t, dir, nil, java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Djavax.net.ssl.trustStore="+trust,
		"-Djavax.net.ssl.trustStorePassword=changeit", "-cp", classpath, "shop.Shop")
}

// StartProxy runs oauth2-proxy for one test, with the settings of docs/connect/oauth2-proxy.md, before a
// program at an address. Browsers reach it at the address outside.
func (p RelyingParty) StartProxy(t testing.TB, outside, program string) {
	t.Helper()
	folder, err := harness.Fetched("oauth2-proxy")
	must(t, err)
	issuer, err := url.Parse(p.Issuer)
	must(t, err)
	dir := t.TempDir()
	settings := strings.NewReplacer(
		"id.example.com", issuer.Host, "ISSUER", p.Issuer, "CLIENT_ID", p.ClientID, "CLIENT_SECRET", p.Secret,
		"COOKIE_SECRET", rand.Text()+"234567", // 32 bytes
		"https://wiki.example.com", outside, "127.0.0.1:4180", "127.0.0.1:"+strconv.Itoa(p.Port),
		"http://127.0.0.1:8080/", program, `"ca.pem"`, strconv.Quote(p.CAFile),
	).Replace(PageBlock(t, "oauth2-proxy.md", "toml"))
	ready := func(ctx context.Context) error {
		return harness.AnswersOK(ctx, http.DefaultClient, "http://127.0.0.1:"+strconv.Itoa(p.Port)+"/ping")
	}
	serve(t, harness.NewDaemon("oauth2-proxy", filepath.Join(dir, "oauth2-proxy.log"), ready,
		filepath.Join(folder, "oauth2-proxy"), "--config", write(t, dir, "oauth2-proxy.cfg", settings)))
}

// Kubernetes authenticates an ID token as the API server does that has the file of docs/connect/kubernetes.md,
// and returns the name and the groups of the user.
func (p RelyingParty) Kubernetes(t testing.TB, idToken string) (string, error) {
	t.Helper()
	folder, err := harness.Fetched("kubernetes")
	must(t, err)
	authority, err := os.ReadFile(p.CAFile)
	must(t, err)
	config := strings.NewReplacer("ISSUER", p.Issuer, "CLIENT_ID", p.ClientID, `"PEM"`, strconv.Quote(string(authority))).
		Replace(PageBlock(t, "kubernetes.md", "yaml"))
	dir := t.TempDir()
	return command(t.Context(), nil, "", filepath.Join(folder, "kubernetes"), write(t, dir, "authentication.yaml", config),
		write(t, dir, "token", idToken))
}

// start runs a program for one test, and returns when it shows its home page.
func (p RelyingParty) start(t testing.TB, dir string, env []string, path string, args ...string) {
	t.Helper()
	name := filepath.Base(path)
	ready := func(ctx context.Context) error { return harness.AnswersOK(ctx, http.DefaultClient, p.URL()) }
	daemon := harness.NewDaemon(name, filepath.Join(dir, name+".log"), ready, path, args...)
	daemon.Setenv("ISSUER="+p.Issuer, "CLIENT_ID="+p.ClientID, "CLIENT_SECRET="+p.Secret, "PORT="+strconv.Itoa(p.Port))
	daemon.Setenv(env...)
	serve(t, daemon)
}

// write writes a file of a folder, and returns its path.
func write(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// PageBlock is the one block of a language in a page of docs/connect.
func PageBlock(t testing.TB, page, language string) string {
	t.Helper()
	root, err := harness.Root()
	must(t, err)
	content, err := os.ReadFile(filepath.Join(root, "docs", "connect", page))
	must(t, err)
	fence := "\n```" + language + "\n"
	_, after, found := strings.Cut(string(content), fence)
	block, _, closed := strings.Cut(after, "\n```\n")
	if !found || !closed || strings.Count(string(content), fence) != 1 {
		t.Fatalf("docs/connect/%s does not have one block of %s", page, language)
	}
	return block + "\n"
}
