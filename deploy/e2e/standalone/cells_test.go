package standalone_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

const (
	cellsSecret = "0123456789abcdef0123456789abcdef"
	shop        = "https://shop.localhost/callback"
)

// cell is a standalone of several behind one address.
type cell struct {
	*harness.Standalone
	*e2e.Client
	address, operator string
}

// cells are two of them, behind a proxy that asks doorward cells.
type cells struct {
	*testing.T
	dir, proxy, asked string // folder, address of the proxy, address of doorward cells
	a, b              cell
}

// Two deployments share an address. A tenant moves from one to the other with its hrefs, tokens and sessions while
// others log in, and one that is lost takes nobody else with it.
func TestTenantsOfTwoCellsBehindOneAddress(t *testing.T) {
	c := startCells(t)
	fixtureA, fixtureB := c.a.NewFixture(t), c.b.NewFixture(t)
	userA := c.a.Register(t, fixtureA.Application.Link(t, "accounts"))
	userB := c.b.Register(t, fixtureB.Application.Link(t, "accounts"))

	owner := c.signUp()
	tenant := owner.Tenant(t)
	moved := owner.NewFixture(t)
	moved.Application = owner.Update(t, moved.Application.Href(), e2e.Object{"authorizedCallbackUris": []string{shop}})
	user := owner.Register(t, moved.Application.Link(t, "accounts"))
	grants := moved.Application.Href() + "/oauth/token"
	token := owner.WantObject(t, http.StatusOK, e2e.Post(grants, e2e.PasswordGrant(user.Text("email"))))
	browser := owner.Browser()
	c.signIn(owner, browser, moved.Application, user.Text("email"))

	load := e2e.NewLoad(t.Context())
	t.Cleanup(func() { load.Stop() })
	logIn := func(client *e2e.Client, application, account e2e.Object) func(context.Context) {
		client = client.Unchecked()
		return func(ctx context.Context) {
			attempt := e2e.Attempt{Kind: "login " + account.Text("email"), Began: time.Now()}
			answer, err := client.Do(ctx, e2e.Login(application, account.Text("email"), e2e.Password))
			attempt.Took, attempt.Status, attempt.Err = time.Since(attempt.Began), answer.Status, err
			if err == nil && answer.Status != http.StatusOK {
				attempt.Err = errors.New(answer.String())
			}
			load.Record(attempt)
		}
	}
	load.Repeat(1, logIn(c.a.Client, fixtureA.Application, userA))
	load.Repeat(1, logIn(c.b.Client, fixtureB.Application, userB))

	began := time.Now()
	c.move(tenant.Text("key"))
	err := e2e.AwaitFor(t.Context(), time.Minute, "the tenant to be in its new cell", func(ctx context.Context) error {
		answer, err := owner.Do(ctx, e2e.Get(user.Href()))
		if err == nil && answer.Status != http.StatusOK {
			err = errors.New(answer.String())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the tenant has moved after %s", time.Since(began).Round(time.Millisecond))
	load.StopWithoutFailure(t)
	t.Log(load)
	if cell := c.ask(owner); cell != "b" {
		t.Errorf("the moved tenant is in the cell %q", cell)
	}

	t.Run("hrefs, tokens and sessions of the moved tenant go on", func(t *testing.T) {
		if got := owner.Get(t, user.Href()); got.Href() != user.Href() || got.Text("email") != user.Text("email") {
			t.Errorf("the account is %v, was %v", got, user)
		}
		owner.Want(t, http.StatusFound, e2e.Get(moved.Application.Href()+"/authTokens/"+token.Text("access_token")))
		owner.WantObject(t, http.StatusOK, e2e.Post(grants, e2e.RefreshGrant(token.Text("refresh_token"))))
		owner.Want(t, http.StatusOK, e2e.Login(moved.Application, user.Text("email"), e2e.Password))
		answer := browser.Want(t, http.StatusFound, hostedLogin(owner, moved.Application))
		if to := answer.Header.Get("Location"); !strings.HasPrefix(to, shop+"?jwtResponse=") {
			t.Errorf("the session is over: the browser is sent to %s", to)
		}
	})
	t.Run("a lost cell takes nobody else with it", func(t *testing.T) {
		if err := c.b.Kill(); err != nil {
			t.Fatal(err)
		}
		err := e2e.AwaitFor(t.Context(), time.Minute, "503 for the tenants of the lost cell", func(ctx context.Context) error {
			answer, err := c.b.Do(ctx, e2e.Get("/tenants/current"))
			if err == nil && (answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "") {
				err = errors.New(answer.String())
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		for range 10 {
			c.a.Want(t, http.StatusOK, e2e.Login(fixtureA.Application, userA.Text("email"), e2e.Password))
			made := c.a.Register(t, fixtureA.Application.Link(t, "accounts")) // what doorward cells does not know yet
			c.a.Get(t, made.Href())
			answer, err := owner.Do(t.Context(), e2e.Login(moved.Application, user.Text("email"), e2e.Password))
			if err != nil || answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
				t.Errorf("a tenant of the lost cell gets %s, %v", answer, err)
			}
		}
		if err := c.b.Start(t.Context()); err != nil { // returns when its tenant is answered through the proxy
			t.Fatal(err)
		}
		owner.Want(t, http.StatusOK, e2e.Login(moved.Application, user.Text("email"), e2e.Password))
	})
}

// startCells starts the proxy, doorward cells and the two deployments.
func startCells(t *testing.T) *cells {
	t.Helper()
	c := &cells{T: t, dir: filepath.Join(folder, t.Name()), proxy: harness.FreeAddress(), asked: harness.FreeAddress()}
	c.proxy = strings.Replace(c.proxy, "127.0.0.1", "localhost", 1)
	c.must(os.MkdirAll(c.dir, 0o755))
	authority, err := harness.NewAuthority(c.dir)
	c.must(err)
	cert, key, err := authority.Issue(c.dir, harness.GatewayHosts...)
	c.must(err)
	c.write("key", "cells:lookup:"+cellsSecret)
	c.a, c.b = c.newCell(), c.newCell()
	c.write("cells.json", fmt.Sprintf(`{"cells": [
		{"name": "a", "address": %q, "operator": %q, "keyFile": "key"},
		{"name": "b", "address": %q, "operator": %q, "keyFile": "key"}], "default": "a"}`,
		c.a.address, "http://"+c.a.operator, c.b.address, "http://"+c.b.operator))

	ask := harness.NewDaemon("cells", filepath.Join(c.dir, "cells.log"), func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", c.asked)
		if err != nil {
			return err
		}
		return connection.Close()
	}, filepath.Join(bin, "doorward"), "cells", "--listen", c.asked, "--config", filepath.Join(c.dir, "cells.json"))
	c.must(ask.Start(t.Context()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(ask.Tail())
		}
		if err := ask.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	c.serveProxy(cert, key, authority.TLS())

	for name, into := range map[string]*cell{"a": &c.a, "b": &c.b} {
		data := filepath.Join(folder, t.Name()+"-"+name, "data")
		c.must(os.MkdirAll(data, 0o755))
		ca, err := os.ReadFile(authority.CAFile)
		c.must(err)
		c.must(os.WriteFile(filepath.Join(data, "ca.pem"), ca, 0o600)) // apikey.json names this file
		into.Standalone, into.Client = start(t, name, "DOORWARD_LISTEN="+into.address, "DOORWARD_BASE_URL=https://"+c.proxy+"/v1",
			"DOORWARD_TLS_CERT_FILE="+cert, "DOORWARD_TLS_KEY_FILE="+key, "DOORWARD_OPERATOR_LISTEN="+into.operator,
			"DOORWARD_OPERATOR_KEYS=cells:lookup:"+cellsSecret)
	}
	return c
}

func (c *cells) newCell() cell {
	return cell{address: strings.Replace(harness.FreeAddress(), "127.0.0.1", "localhost", 1), operator: harness.FreeAddress()}
}

func (c *cells) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cells) write(name, content string) {
	c.Helper()
	c.must(os.WriteFile(filepath.Join(c.dir, name), []byte(content), 0o600))
}

// serveProxy starts a reverse proxy with forward authentication, as docs/cells.md configures one: it asks doorward
// cells about each request, and either sends the request on to the cell or the answer back.
func (c *cells) serveProxy(cert, key string, trusted *tls.Config) {
	c.Helper()
	transport := &http.Transport{TLSClientConfig: trusted, MaxIdleConnsPerHost: 16}
	forward := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "https", r.In.Header.Get("X-Doorward-Cell-Address")
		r.Out.Header.Del("X-Doorward-Cell")
		r.Out.Header.Del("X-Doorward-Cell-Address")
		r.SetXForwarded()
	}}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := c.forwardAuth(r)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			w.Header().Set("Retry-After", answer.Header.Get("Retry-After"))
			w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
			return
		}
		r.Header.Set("X-Doorward-Cell-Address", answer.Header.Get("X-Doorward-Cell-Address"))
		forward.ServeHTTP(w, r)
	})}
	listener, err := net.Listen("tcp", c.proxy)
	c.must(err)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, cert, key) }()
	c.Cleanup(func() {
		if err := server.Close(); err != nil {
			c.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			c.Error(err)
		}
		transport.CloseIdleConnections()
	})
}

// forwardAuth asks doorward cells about a request.
func (c *cells) forwardAuth(r *http.Request) (*http.Response, error) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+c.asked, nil)
	if err != nil {
		return nil, err
	}
	ask.Header["Authorization"] = r.Header["Authorization"]
	ask.Header.Set("X-Forwarded-Method", r.Method)
	ask.Header.Set("X-Forwarded-Host", r.Host)
	ask.Header.Set("X-Forwarded-Uri", r.RequestURI)
	return http.DefaultClient.Do(ask)
}

// ask returns the cell of a client's key.
func (c *cells) ask(client *e2e.Client) string {
	c.Helper()
	r, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "https://"+c.proxy+"/v1/tenants/current", nil)
	c.must(err)
	r.RequestURI = "/v1/tenants/current"
	r.SetBasicAuth(client.Key.ID, client.Key.Secret)
	answer, err := c.forwardAuth(r)
	c.must(err)
	c.must(answer.Body.Close())
	return answer.Header.Get("X-Doorward-Cell")
}

// doorward runs a command on the data of a cell, and returns what it has printed.
func (c *cells) doorward(in cell, args ...string) string {
	c.Helper()
	command := exec.CommandContext(c.Context(), filepath.Join(bin, "doorward"), args...)
	command.Env = []string{"DOORWARD_DATA_DIR=" + in.DataDir(), "PATH=" + os.Getenv("PATH")}
	var out, errors bytes.Buffer
	command.Stdout, command.Stderr = &out, &errors
	if err := command.Run(); err != nil {
		c.Fatalf("doorward %s: %v\n%s", strings.Join(args, " "), err, &errors)
	}
	return out.String()
}

// move moves a tenant from a to b, as docs/cells.md describes it.
func (c *cells) move(tenant string) {
	c.Helper()
	pair := c.doorward(c.a, "tenant", "key")
	c.write("identity", pair)
	comment, _, _ := strings.Cut(pair, "\n")
	export := filepath.Join(c.dir, "export")
	c.doorward(c.a, "tenant", "suspend", "--tenant", tenant, "--reason", "moves to b")
	printed := c.doorward(c.a, "tenant", "export", "--tenant", tenant, "--folder", export,
		"--recipient", strings.TrimPrefix(comment, "# public key: "))
	_, signer, _ := strings.Cut(strings.TrimSpace(printed), "signed with the key ")
	c.doorward(c.b, "tenant", "import", "--folder", export, "--identity", filepath.Join(c.dir, "identity"), "--signer", signer)
	c.doorward(c.b, "tenant", "resume", "--tenant", tenant)
}

var (
	formField = regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]* value="([^"]*)"`)
	keyOnPage = regexp.MustCompile(`apiKey\.id = (\S+)\s+apiKey\.secret = ([\w-]+)`)
)

// signUp makes a second tenant in the default cell, a, as a new customer does.
func (c *cells) signUp() *e2e.Client {
	c.Helper()
	browser, email := c.a.Browser(), e2e.Unique("owner")+"@example.test"
	submit := func(status int, address string, more url.Values) string {
		html := string(browser.Want(c, http.StatusOK, e2e.Get(address)).Body)
		for _, field := range formField.FindAllStringSubmatch(html, -1) {
			if more.Get(field[1]) == "" {
				more.Set(field[1], field[2])
			}
		}
		return string(browser.Want(c, status, e2e.Post(address, more)).Body)
	}
	submit(http.StatusAccepted, "https://"+c.proxy+"/register", url.Values{
		"givenName": {"Jo"}, "surname": {"Doe"}, "email": {email}, "password": {e2e.Password},
	})
	direct := *c.a.Client // the page of the mailbox is not for who comes through a proxy
	direct.Key.BaseURL = "https://" + c.a.address + "/v1"
	link := regexp.MustCompile(`https://\S+`).FindString(direct.AwaitMail(c, email).Text)
	found := keyOnPage.FindStringSubmatch(submit(http.StatusOK, link, url.Values{}))
	if found == nil {
		c.Fatal("the sign-up shows no key")
	}
	return c.a.With(found[1], found[2])
}

// hostedLogin is the request for a login at the hosted pages.
func hostedLogin(client *e2e.Client, application e2e.Object) e2e.Request {
	request := e2e.SignJWT(e2e.Object{"alg": "HS256"}, e2e.Object{
		"iss": client.Key.ID, "sub": application.Href(), "cb_uri": shop, "iat": time.Now().Unix(), "jti": rand.Text(),
	}, client.Key.Secret)
	return e2e.Get(client.Key.HostURL() + "/sso?jwtRequest=" + request)
}

// signIn logs a user in at the hosted pages, as they do it, so that the browser has a session.
func (c *cells) signIn(client, browser *e2e.Client, application e2e.Object, login string) {
	c.Helper()
	begun := browser.Want(c, http.StatusFound, hostedLogin(client, application)).Header.Get("Location")
	origin, token, _ := strings.Cut(begun, "/#/?jwt=")
	step := e2e.Login(application, login, e2e.Password)
	step.Header = http.Header{"Authorization": {"Bearer " + token}, "Origin": {origin}}
	back := browser.Want(c, http.StatusNoContent, step).Header.Get("Service-Sso-Redirect-Location")
	assertion, found := strings.CutPrefix(back, shop+"?jwtResponse=")
	if !found {
		c.Fatalf("the hosted login of %s returns to %q", begun, back)
	}
	browser.Want(c, http.StatusFound, e2e.Get(client.Key.HostURL()+"/sso/?jwtResponse="+assertion))
}
