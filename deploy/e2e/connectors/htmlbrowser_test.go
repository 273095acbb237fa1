package connectors_test

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/doorward/doorward/deploy/e2e"
)

// shopCallback is the callback address of an application. No request is sent to it.
const shopCallback = "https://shop.example.test/callback"

// htmlBrowser is a browser without JavaScript: it keeps cookies, follows redirects until
// it is sent to shopCallback, and submits forms.
type htmlBrowser struct {
	*testing.T
	http *http.Client

	at     *url.URL
	status int
	body   string
}

func newHTMLBrowser(t *testing.T) *htmlBrowser {
	t.Helper()
	roots := x509.NewCertPool()
	for _, file := range []string{authority.CAFile, client.Key.CAFile} {
		pem, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(pem)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		// Names below localhost are this machine, as they are for browsers.
		if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") {
			address = net.JoinHostPort("localhost", port)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	t.Cleanup(transport.CloseIdleConnections)
	return &htmlBrowser{T: t, http: &http.Client{Timeout: time.Minute, Jar: jar, Transport: transport, CheckRedirect: func(next *http.Request, before []*http.Request) error {
		if strings.HasPrefix(next.URL.String(), shopCallback) || len(before) > 20 {
			return http.ErrUseLastResponse
		}
		return nil
	}}}
}

// open shows an address.
func (v *htmlBrowser) open(address string) {
	v.Helper()
	request, err := http.NewRequestWithContext(v.Context(), http.MethodGet, address, nil)
	if err != nil {
		v.Fatal(err)
	}
	v.follow(request)
}

// submit sends the page's first form with what it holds and these fields.
func (v *htmlBrowser) submit(fields map[string]string) {
	v.Helper()
	form := v.form()
	values := form.values
	for name, value := range fields {
		values.Set(name, value)
	}
	action, err := v.at.Parse(form.action)
	if err != nil {
		v.Fatal(err)
	}
	body := io.Reader(strings.NewReader(values.Encode()))
	if form.method == http.MethodGet {
		action.RawQuery, body = values.Encode(), nil
	}
	request, err := http.NewRequestWithContext(v.Context(), form.method, action.String(), body)
	if err != nil {
		v.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	v.follow(request)
}

func (v *htmlBrowser) follow(request *http.Request) {
	v.Helper()
	response, err := v.http.Do(request)
	if err != nil {
		v.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		v.Fatal(err)
	}
	v.at, v.status, v.body = response.Request.URL, response.StatusCode, string(body)
	if location := response.Header.Get("Location"); strings.HasPrefix(location, shopCallback) {
		if v.at, err = url.Parse(location); err != nil {
			v.Fatal(err)
		}
	}
}

// page describes the address and the page, for a failed test.
func (v *htmlBrowser) page() string {
	return fmt.Sprintf("%s with status %d: %.2000s", v.at, v.status, v.body)
}

// callbackQuery returns the query with which the browser was redirected to the application.
func (v *htmlBrowser) callbackQuery() url.Values {
	v.Helper()
	if !strings.HasPrefix(v.at.String(), shopCallback) {
		v.Fatalf("the browser is at %s", v.page())
	}
	return v.at.Query()
}

type pageForm struct {
	action, method string
	values         url.Values
}

func (v *htmlBrowser) form() pageForm {
	v.Helper()
	root, err := html.Parse(strings.NewReader(v.body))
	if err != nil {
		v.Fatal(err)
	}
	for node := range root.Descendants() {
		if node.Data != "form" || node.Type != html.ElementNode {
			continue
		}
		form := pageForm{action: attribute(node, "action"), method: strings.ToUpper(attribute(node, "method")), values: url.Values{}}
		if form.method == "" {
			form.method = http.MethodGet
		}
		for field := range node.Descendants() {
			if kind := attribute(field, "type"); field.Data == "input" && attribute(field, "name") != "" && kind != "submit" && kind != "checkbox" {
				form.values.Set(attribute(field, "name"), attribute(field, "value"))
			}
		}
		return form
	}
	v.Fatalf("there is no form at %s", v.page())
	return pageForm{}
}

func attribute(node *html.Node, name string) string {
	for _, each := range node.Attr {
		if each.Key == name {
			return each.Val
		}
	}
	return ""
}

// newShop is an application without a directory, which allows redirects to shopCallback.
func newShop(t *testing.T) e2e.Object {
	t.Helper()
	return client.Update(t, client.NewApplication(t).Href(), e2e.Object{"authorizedCallbackUris": []string{shopCallback}})
}

// connect makes a directory of a provider and maps it to the application.
func connect(t *testing.T, application, provider e2e.Object) e2e.Object {
	t.Helper()
	directory := client.Create(t, "/directories", e2e.Object{"name": e2e.Unique("elsewhere"), "provider": provider})
	client.DeleteAtEnd(t, directory.Href())
	client.Create(t, "/accountStoreMappings", e2e.Object{
		"application": e2e.Object{"href": application.Href()}, "accountStore": e2e.Object{"href": directory.Href()},
	})
	return directory
}

// clientAPI is the address of the application's Client API.
func clientAPI(t *testing.T, application e2e.Object) string {
	t.Helper()
	base, err := url.Parse(client.Key.HostURL())
	if err != nil {
		t.Fatal(err)
	}
	base.Host = client.Get(t, application.Link(t, "webConfig")).Text("domainName")
	if _, port, err := net.SplitHostPort(client.Address()); err == nil && port != "443" {
		base.Host += ":" + port
	}
	return base.String()
}

// redeem exchanges the assertion of a callback for a token, and returns its claims and the account.
func redeem(t *testing.T, application e2e.Object, query url.Values) (claims, account e2e.Object) {
	t.Helper()
	assertion := query.Get("jwtResponse")
	if assertion == "" {
		t.Fatalf("the callback has %v", query)
	}
	claims = e2e.Claims(t, assertion)
	if claims.Text("status") != "AUTHENTICATED" {
		t.Fatalf("the assertion says %v", claims)
	}
	client.Token(t, application.Href(), url.Values{"grant_type": {"service_token"}, "token": {assertion}})
	return claims, client.Get(t, claims.Text("sub"))
}

// refusal returns the error that an error assertion holds.
func refusal(t *testing.T, query url.Values) e2e.Object {
	t.Helper()
	return e2e.Claims(t, query.Get("jwtResponse")).Object("err")
}

// requestJWT is a request for a login, signed by the client's key.
func requestJWT(t *testing.T, application, changes e2e.Object) string {
	t.Helper()
	claims := e2e.Object{
		"iss": client.Key.ID, "sub": application.Href(), "iat": time.Now().Unix(), "jti": rand.Text(), "cb_uri": shopCallback, "state": "a b~?ü",
	}
	for name, value := range changes {
		claims[name] = value
	}
	return e2e.SignJWT(e2e.Object{"alg": "HS256", "typ": "JWT", "kid": client.Key.ID}, claims, client.Key.Secret)
}

func post(address string, body any) e2e.Request {
	return e2e.Request{Method: http.MethodPost, URL: address, Body: body}
}
