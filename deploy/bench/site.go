package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

const callback = "https://app.localhost:9999/callback"

// site is what is measured in a deployment: an application with a directory of
// its own, full of accounts, some of which are logged in.
type site struct {
	client        *e2e.Client
	tls           *tls.Config
	pid           int
	authorization string
	host          string // address of the deployment without the version
	pages         string // address of the hosted pages
	application   string // address of the application
	directory     string
	me            string // address of the account of a cookie
	run           string // part of every email address, different in each run
	accounts      []string
	emails        []string
	hashed        int      // the first accounts, whose password has the product's own hash
	access        []string // tokens
	refresh       []string
	keys          []clientKey
}

// clientKey is an API key of an account, as the credentials of a client.
type clientKey struct{ id, secret string }

// openSite connects to a deployment and refuses one on another machine.
func openSite(ctx context.Context, key e2e.Key, pid int) (*site, error) {
	base, err := url.Parse(key.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("read the base URL: %w", err)
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, base.Hostname())
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", base.Hostname(), err)
	}
	for _, address := range found {
		if !address.IP.IsLoopback() {
			return nil, fmt.Errorf("%s is not this machine (%s): load is put on the loopback interface only", base.Hostname(), address.IP)
		}
	}
	client, err := e2e.NewClient(key)
	if err != nil {
		return nil, err
	}
	return &site{client: client, tls: client.TLS(), pid: pid, host: key.HostURL(), run: rand.Text()[:8],
		authorization: "Basic " + base64.StdEncoding.EncodeToString([]byte(key.ID+":"+key.Secret))}, nil
}

func (s *site) connect() *connection {
	return connect(s.tls, s.authorization)
}

func (s *site) subject(name string, do func(s *site, c *connection, n uint64) error) subject {
	return subject{name, s.pid, func() (func(uint64) error, func()) {
		c := s.connect()
		return func(n uint64) error { return do(s, c, n) }, c.close
	}}
}

func (s *site) operation(name string) subject {
	for _, o := range operations {
		if o.name == name {
			return s.subject(name, o.do)
		}
	}
	panic("no operation " + name)
}

// fill makes the application with its accounts, of which the first are logged
// in. Only these have a password hash that costs as much as the product's.
func (s *site) fill(ctx context.Context, accounts, logins int, log logger) error {
	body := e2e.Object{"name": "bench " + s.run, "authorizedCallbackUris": []string{callback}}
	application, err := s.create(ctx, s.client.Key.BaseURL+"/applications?createDirectory=true", body)
	if err != nil {
		return err
	}
	s.application = application.Href()
	mapping, err := s.get(ctx, application.Object("defaultAccountStoreMapping").Href())
	if err != nil {
		return err
	}
	s.directory = mapping.Object("accountStore").Href()
	config, err := s.get(ctx, application.Object("webConfig").Href())
	if err != nil {
		return err
	}
	s.me = s.host + "/client/" + config.Text("dnsLabel") + "/me"

	pages, err := s.get(ctx, application.Object("tenant").Href()+"/idSites")
	if err != nil {
		return err
	}
	items, _ := pages["items"].([]any)
	domain := e2e.Object(items[0].(map[string]any)).Text("domainName")
	s.pages = "https://" + domain + strings.TrimLeft(s.client.Address(), "abcdefghijklmnopqrstuvwxyz0123456789-.")

	began := time.Now()
	s.hashed = min(max(logins, 1), accounts)
	s.accounts, s.emails = make([]string, accounts), make([]string, accounts)
	if err := concurrently(ctx, accounts, func(ctx context.Context, n int) error {
		s.emails[n] = "seed" + strconv.Itoa(n) + "-" + s.run + "@example.test"
		address, body := s.application+"/accounts", newAccount(s.emails[n])
		if n >= s.hashed {
			address, body = s.directory+"/accounts?passwordFormat=mcf&registrationWorkflowEnabled=false", imported(s.emails[n])
		}
		account, err := s.create(ctx, address, body)
		s.accounts[n] = account.Href()
		return err
	}); err != nil {
		return err
	}
	s.keys = make([]clientKey, min(16, accounts))
	for n := range s.keys {
		key, err := s.create(ctx, s.accounts[n]+"/apiKeys", e2e.Object{})
		if err != nil {
			return err
		}
		s.keys[n] = clientKey{key.Text("id"), key.Text("secret")}
	}
	s.access, s.refresh = make([]string, s.hashed), make([]string, s.hashed)
	err = concurrently(ctx, s.hashed, func(ctx context.Context, n int) error {
		grant := url.Values{"grant_type": {"password"}, "username": {s.emails[n]}, "password": {e2e.Password}}
		token, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: s.application + "/oauth/token", Body: grant})
		s.access[n], s.refresh[n] = token.Text("access_token"), token.Text("refresh_token")
		return err
	})
	log("made %d accounts and logged %d in, in %.1f s", accounts, s.hashed, time.Since(began).Seconds())
	return err
}

// concurrently calls do for 0 to count-1, eight at once. The first failure ends it.
func concurrently(ctx context.Context, count int, do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := do(ctx, n); err != nil {
					cancel(err)
				}
			}
		})
	}
	workers.Wait()
	return context.Cause(ctx)
}

func (s *site) delete(ctx context.Context, addresses ...string) error {
	var failures []error
	for _, address := range addresses {
		answer, err := s.client.Do(ctx, e2e.Request{Method: http.MethodDelete, URL: address})
		if err == nil && answer.Status != http.StatusNoContent {
			err = errors.New(answer.String())
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func (s *site) create(ctx context.Context, address string, body e2e.Object) (e2e.Object, error) {
	return s.ask(ctx, http.StatusCreated, e2e.Request{Method: http.MethodPost, URL: address, Body: body})
}

func (s *site) get(ctx context.Context, address string) (e2e.Object, error) {
	return s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodGet, URL: address})
}

func (s *site) ask(ctx context.Context, want int, request e2e.Request) (e2e.Object, error) {
	answer, err := s.client.Do(ctx, request)
	if err != nil {
		return nil, err
	}
	if answer.Status != want {
		return nil, fmt.Errorf("want %d: %s", want, answer)
	}
	return answer.Object()
}
