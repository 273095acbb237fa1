package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/telemetry"
)

const secret = "an internal secret of 32 characters"

var tenant = id.New(time.Unix(1_790_000_000, 0))

// oauth is the OAuth service with one key.
type oauth struct{ oauthapi.Contract }

func (oauth) Authenticate(_ context.Context, in oauthapi.Authenticate) (oauthapi.Key, error) {
	if in.ID != "KEY" || in.Secret.Reveal() != "secret" {
		return oauthapi.Key{}, apierr.Unauthorized
	}
	return oauthapi.Key{ID: "KEY", TenantID: tenant}, nil
}

func (oauth) AccessChanges(context.Context, cache.Position) (cache.Page, error) {
	return cache.Page{Behind: true}, nil
}

// directory is the directory service, whose tenants are enabled.
type directory struct{ directoryapi.Contract }

func (directory) Tenant(context.Context, directoryapi.Ref) (directoryapi.Tenant, error) {
	return directoryapi.Tenant{ID: tenant, Status: directoryapi.Enabled}, nil
}

func (directory) AccessChanges(context.Context, cache.Position) (cache.Page, error) {
	return cache.Page{Behind: true}, nil
}

// listen runs an application of a service on a port of its own.
func listen(t *testing.T, name string, mount func(*fiber.App)) (address string) {
	t.Helper()
	common, err := deployment.Config{BaseURL: "https://localhost/v1", Alias: "service", InternalSecret: secret}.Validate()
	if err != nil {
		t.Fatal(err)
	}
	app := rest.New(rest.Config{Service: name, Base: common.Base, Signer: common.Signer})
	mount(app)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener) }()
	t.Cleanup(func() { _ = app.ShutdownWithTimeout(time.Second) })
	return "http://" + listener.Addr().String()
}

// pair writes a certificate for localhost and its key.
func pair(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	made := certtest.Now("localhost")
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	if err := made.Write(cert, key); err != nil {
		t.Fatal(err)
	}
	return cert, key, made.Roots()
}

// variables is a complete environment.
func variables(t *testing.T) (map[string]string, *x509.CertPool) {
	t.Helper()
	cert, key, roots := pair(t)
	who := func(name string) string {
		return listen(t, name, func(app *fiber.App) {
			app.All("/*", func(c *fiber.Ctx) error {
				return rest.OK(c, map[string]any{"service": name, "path": c.Path(), "tenant": rest.Caller(c).Tenant})
			})
		})
	}
	return map[string]string{
		"DOORWARD_BASE_URL": "https://localhost/v1", "DOORWARD_INTERNAL_SECRET": secret, "DOORWARD_LISTEN": free(t),
		"REDIS_URL":              "redis://" + miniredis.RunT(t).Addr(),
		"DOORWARD_TLS_CERT_FILE": cert, "DOORWARD_TLS_KEY_FILE": key,
		"DOORWARD_DIRECTORY_URL": who("directory") + "," + who("directory"), "DOORWARD_APPLICATION_URL": who("application"),
		"DOORWARD_OAUTH_URL": listen(t, "oauth", func(app *fiber.App) { oauthapi.Serve(rest.Contract(app), oauth{}) }),
		"DOORWARD_MFA_URL":   who("mfa"), "DOORWARD_NOTIFICATION_URL": who("notification"), "DOORWARD_IDSITE_URL": who("idsite"),
	}, roots
}

func free(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func source(variables map[string]string) *env.Source {
	var environ []string
	for name, value := range variables {
		environ = append(environ, name+"="+value)
	}
	return env.New(environ)
}

func process(t *testing.T) *run.Process {
	t.Helper()
	p, err := run.New(t.Context(), "gateway", run.Config{OpsListen: "127.0.0.1:0", Stop: 10 * time.Second, Telemetry: telemetry.Config{LogLevel: "error"}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func get(t *testing.T, client *http.Client, url, key, secret string) (*http.Response, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth(key, secret)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(response.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return response, body
}

func TestAGatewayOfItsOwn(t *testing.T) {
	given, roots := variables(t)
	mailbox := listen(t, "mailbox", func(app *fiber.App) {
		app.Get("/_mailbox", func(c *fiber.Ctx) error { return rest.OK(c, map[string]any{"messages": []string{}}) })
	})
	given["DOORWARD_MAILBOX_URL"] = mailbox
	from := source(given)
	cfg := FromEnv(from)
	if err := from.Err(); err != nil {
		t.Fatal(err)
	}
	p := process(t)
	if err := Run(t.Context(), p, cfg); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}, Timeout: 20 * time.Second}
	address := "https://" + given["DOORWARD_LISTEN"]
	response, body := get(t, client, address+"/v1/accounts/1", "KEY", "secret")
	if response.StatusCode != 200 || body["service"] != "directory" || body["tenant"] != tenant.String() {
		t.Errorf("a request with an API key is answered with %d %v", response.StatusCode, body)
	}
	if response, body := get(t, client, address+"/v1/accounts/1", "KEY", "wrong"); response.StatusCode != 401 || body["code"] != 401.0 {
		t.Errorf("a request with a wrong secret is answered with %d %v", response.StatusCode, body)
	}
	if response, body := get(t, client, address+"/_mailbox", "", ""); response.StatusCode != 200 || body["messages"] == nil {
		t.Errorf("the mailbox is answered with %d %v", response.StatusCode, body)
	}
	client.CloseIdleConnections()
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if conn, err := net.Dial("tcp", given["DOORWARD_LISTEN"]); err == nil {
		_ = conn.Close()
		t.Error("the closed gateway accepts connections")
	}
}

// operatorKeys is one key of each role.
var operatorKeys = "jo:admin:" + strings.Repeat("a", 32) + " sam:read:" + strings.Repeat("r", 32) + " cell:lookup:" + strings.Repeat("l", 32)

// Operators have a listener of their own, with a certificate of its own, and keys with roles. The public address has
// nothing of it.
func TestTheListenerOfOperators(t *testing.T) {
	given, roots := variables(t)
	given["DOORWARD_OPERATOR_LISTEN"], given["DOORWARD_OPERATOR_KEYS"] = free(t), operatorKeys
	var operatorRoots *x509.CertPool
	given["DOORWARD_OPERATOR_TLS_CERT_FILE"], given["DOORWARD_OPERATOR_TLS_KEY_FILE"], operatorRoots = pair(t)
	p := process(t)
	if err := Run(t.Context(), p, FromEnv(source(given))); err != nil {
		t.Fatal(err)
	}
	client := func(roots *x509.CertPool) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}, Timeout: 20 * time.Second}
	}
	public, operators := client(roots), client(operatorRoots)
	address := "https://" + given["DOORWARD_OPERATOR_LISTEN"] + "/operator/v1"
	for _, c := range []struct {
		path, name, secret string
		want               int
	}{
		{"/tenants", "jo", "", 401}, {"/tenants", "", "", 401}, {"/tenants", "jo", strings.Repeat("r", 32), 401},
		{"/tenants", "cell", strings.Repeat("l", 32), 403}, {"/lookup", "cell", strings.Repeat("l", 32), 400},
		{"/lookup?key=a&host=b", "sam", strings.Repeat("r", 32), 400},
		{"/tenants/1/suspend", "jo", strings.Repeat("a", 32), 405}, {"/nothing", "jo", strings.Repeat("a", 32), 404},
	} {
		response, body := get(t, operators, address+c.path, c.name, c.secret)
		if response.StatusCode != c.want || body["code"] == nil {
			t.Errorf("%s of %s is answered with %d %v, want %d", c.path, c.name, response.StatusCode, body, c.want)
		}
		if challenge := response.Header.Get("WWW-Authenticate"); (challenge != "") != (c.want == 401) {
			t.Errorf("%s of %s is answered with the challenge %q", c.path, c.name, challenge)
		}
	}
	for _, path := range []string{"/operator/v1/tenants", "/operator/v1/lookup?id=1", "/operator/"} {
		if response, body := get(t, public, "https://"+given["DOORWARD_LISTEN"]+path, "jo", strings.Repeat("a", 32)); response.StatusCode != 404 {
			t.Errorf("the public address answers %s with %d %v, want 404", path, response.StatusCode, body)
		}
	}
	public.CloseIdleConnections()
	operators.CloseIdleConnections()
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestAHalfConfiguredGatewayDoesNotStart(t *testing.T) {
	complete, _ := variables(t)
	for name, c := range map[string]struct {
		change map[string]string // "" removes
		tells  string
	}{
		"no base URL":                         {map[string]string{"DOORWARD_BASE_URL": ""}, "DOORWARD_BASE_URL"},
		"a plain base URL":                    {map[string]string{"DOORWARD_BASE_URL": "http://localhost/v1"}, "DOORWARD_BASE_URL"},
		"no Redis":                            {map[string]string{"REDIS_URL": ""}, "REDIS_URL"},
		"no certificate":                      {map[string]string{"DOORWARD_TLS_CERT_FILE": ""}, "DOORWARD_TLS_CERT_FILE"},
		"a certificate of text":               {map[string]string{"DOORWARD_TLS_CERT_FILE": "", "DOORWARD_TLS_CERT": "text"}, "DOORWARD_TLS_CERT"},
		"a TLS mode of its own":               {map[string]string{"DOORWARD_TLS": "off"}, "use certificate or proxy"},
		"a proxy without hops":                {map[string]string{"DOORWARD_TLS": "proxy"}, "DOORWARD_TRUSTED_HOPS"},
		"no service":                          {map[string]string{"DOORWARD_MFA_URL": "", "DOORWARD_IDSITE_URL": ""}, "DOORWARD_MFA_URL is missing; DOORWARD_IDSITE_URL is missing"},
		"a service without a URL":             {map[string]string{"DOORWARD_OAUTH_URL": "localhost:1"}, "http://host:port"},
		"no limit":                            {map[string]string{"DOORWARD_TENANT_CONCURRENCY": "0"}, "DOORWARD_TENANT_CONCURRENCY"},
		"an operator's listener without keys": {map[string]string{"DOORWARD_OPERATOR_LISTEN": "localhost:0"}, "DOORWARD_OPERATOR_KEYS"},
		"an operator's listener without TLS":  {map[string]string{"DOORWARD_OPERATOR_LISTEN": ":0", "DOORWARD_OPERATOR_KEYS": operatorKeys}, "no loopback address"},
		"an operator's listener for clients": {map[string]string{"DOORWARD_OPERATOR_LISTEN": complete["DOORWARD_LISTEN"], "DOORWARD_OPERATOR_KEYS": operatorKeys},
			"is the address of DOORWARD_LISTEN"},
		"an operator's listener for all": {map[string]string{
			"DOORWARD_OPERATOR_LISTEN": complete["DOORWARD_LISTEN"][strings.LastIndexByte(complete["DOORWARD_LISTEN"], ':'):], "DOORWARD_OPERATOR_KEYS": operatorKeys},
			"is the address of DOORWARD_LISTEN"},
		"an operator's certificate without key": {map[string]string{"DOORWARD_OPERATOR_LISTEN": "localhost:0", "DOORWARD_OPERATOR_KEYS": operatorKeys,
			"DOORWARD_OPERATOR_TLS_CERT": "text"}, "DOORWARD_OPERATOR_TLS_CERT"},
		"an unknown variable": {map[string]string{"DOORWARD_TENANT_CONCURENCY": "10"}, "DOORWARD_TENANT_CONCURENCY"},
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]string{}
			for name, value := range complete {
				given[name] = value
			}
			for name, value := range c.change {
				given[name] = value
			}
			from := source(given)
			cfg := FromEnv(from)
			err := from.Err()
			if err == nil {
				p := process(t)
				defer func() { _ = p.Close() }()
				err = Run(t.Context(), p, cfg)
			}
			if err == nil || !strings.Contains(err.Error(), c.tells) {
				t.Errorf("the start returned %v, want %s", err, c.tells)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error of the start tells the secret: %v", err)
			}
		})
	}
}

func TestStandaloneOpensAndServesOnItsOwnListener(t *testing.T) {
	given, roots := variables(t)
	cfg := FromEnv(source(given))
	up, err := cfg.upstreams()
	if err != nil {
		t.Fatal(err)
	}
	p := process(t)
	app, err := Open(t.Context(), p, cfg, up, oauth{}, directory{})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	app.Serve(p, listener)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"}}, Timeout: 20 * time.Second}
	if response, body := get(t, client, "https://"+listener.Addr().String()+"/v1/applications/1", "KEY", "secret"); response.StatusCode != 200 || body["service"] != "application" {
		t.Errorf("a request with an API key is answered with %d %v", response.StatusCode, body)
	}
	client.CloseIdleConnections()
	if err := p.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestHelpListsEveryVariable(t *testing.T) {
	from := source(nil)
	FromEnv(from)
	var help strings.Builder
	from.Help(&help)
	for _, name := range []string{"DOORWARD_LISTEN", "DOORWARD_BASE_URL", "DOORWARD_ALIAS", "DOORWARD_INTERNAL_SECRET", "REDIS_URL", "DOORWARD_TLS", "DOORWARD_TLS_CERT", "DOORWARD_TLS_KEY",
		"DOORWARD_TRUSTED_HOPS", "DOORWARD_TENANT_CONCURRENCY", "DOORWARD_ADDRESS_CONCURRENCY", "DOORWARD_MAILBOX_URL", "DOORWARD_OPERATOR_LISTEN",
		"DOORWARD_OPERATOR_KEYS", "DOORWARD_OPERATOR_TLS_CERT", "DOORWARD_OPERATOR_TLS_KEY", "DOORWARD_DIRECTORY_URL", "DOORWARD_APPLICATION_URL",
		"DOORWARD_OAUTH_URL", "DOORWARD_MFA_URL", "DOORWARD_NOTIFICATION_URL", "DOORWARD_IDSITE_URL"} {
		if !strings.Contains(help.String(), "  "+name+" ") {
			t.Errorf("--help does not list %s", name)
		}
	}
}
