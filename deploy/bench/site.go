package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// site is what is measured in a deployment: an application with a directory of
// its own, full of accounts, some of which are logged in.
type site struct {
	client      *e2e.Client
	tls         *tls.Config
	address     string // host and port
	application string // address of the application
	directory   string
	run         string // part of every email address, to tell one run from another
	accounts    []string
	emails      []string
	access      []string // tokens
	refresh     []string
	keys        []clientKey
}

// clientKey is an API key of an account, as the credentials of a client.
type clientKey struct{ id, secret string }

// clients is how many accounts have an API key.
const clients = 16

// seeders is how many requests fill a site at once: enough to keep the password
// hashes busy.
const seeders = 8

// openSite makes a site in the deployment of the key. Nothing is in it yet.
func openSite(ctx context.Context, key e2e.Key) (*site, error) {
	if err := onLoopback(ctx, key); err != nil {
		return nil, err
	}
	client, err := e2e.NewClient(key)
	if err != nil {
		return nil, err
	}
	s := &site{client: client, tls: client.TLS(), address: client.Address(), run: rand.Text()[:8]}
	application, err := s.create(ctx, key.BaseURL+"/applications?createDirectory=true", e2e.Object{"name": "bench " + s.run})
	if err != nil {
		return nil, err
	}
	s.application = application.Href()
	mapping, err := s.get(ctx, application.Object("defaultAccountStoreMapping").Href())
	if err == nil {
		s.directory = mapping.Object("accountStore").Href()
	}
	return s, err
}

// onLoopback refuses to put load on another machine.
func onLoopback(ctx context.Context, key e2e.Key) error {
	base, err := url.Parse(key.BaseURL)
	if err != nil {
		return fmt.Errorf("read the base URL: %w", err)
	}
	found, err := net.DefaultResolver.LookupIPAddr(ctx, base.Hostname())
	if err != nil {
		return fmt.Errorf("look up %s: %w", base.Hostname(), err)
	}
	for _, address := range found {
		if !address.IP.IsLoopback() {
			return fmt.Errorf("%s is not this machine (%s): the load generator keeps to the loopback interface", base.Hostname(), address.IP)
		}
	}
	return nil
}

// fill creates accounts, makes API keys for some, and logs some in.
func (s *site) fill(ctx context.Context, accounts, tokens int, tell func(string, ...any)) error {
	s.accounts, s.emails = make([]string, accounts), make([]string, accounts)
	began := time.Now()
	err := s.each(ctx, accounts, "seeded %d of %d accounts", tell, func(ctx context.Context, n int) error {
		s.emails[n] = "seed" + strconv.Itoa(n) + "-" + s.run + "@example.test"
		account, err := s.create(ctx, s.application+"/accounts", newAccount(s.emails[n]))
		s.accounts[n] = account.Href()
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	tell("seeded %d accounts in %.1f s, %.0f a second", accounts, took, float64(accounts)/took)
	s.keys = make([]clientKey, min(clients, accounts))
	err = s.each(ctx, len(s.keys), "made %d of %d API keys", tell, func(ctx context.Context, n int) error {
		key, err := s.create(ctx, s.accounts[n]+"/apiKeys", e2e.Object{})
		s.keys[n] = clientKey{key.Text("id"), key.Text("secret")}
		return err
	})
	if err != nil {
		return err
	}
	s.access, s.refresh = make([]string, tokens), make([]string, tokens)
	return s.each(ctx, tokens, "logged in %d of %d accounts", tell, func(ctx context.Context, n int) error {
		grant := url.Values{"grant_type": {"password"}, "username": {s.emails[n]}, "password": {e2e.Password}}
		token, err := s.ask(ctx, http.StatusOK, e2e.Request{Method: http.MethodPost, URL: s.application + "/oauth/token", Body: grant})
		s.access[n], s.refresh[n] = token.Text("access_token"), token.Text("refresh_token")
		return err
	})
}

func newAccount(email string) e2e.Object {
	return e2e.Object{"email": email, "password": e2e.Password, "givenName": "Jo", "surname": "Doe"}
}

// each does a thing count times, several at once, and tells how far it is every
// few seconds. The first failure ends it.
func (s *site) each(ctx context.Context, count int, format string, tell func(string, ...any), do func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	for range seeders {
		workers.Go(func() {
			for n := int(next.Add(1)) - 1; n < count && ctx.Err() == nil; n = int(next.Add(1)) - 1 {
				if err := do(ctx, n); err != nil {
					cancel(err)
				}
				done.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		workers.Wait()
		close(finished)
	}()
	progress := time.NewTicker(5 * time.Second)
	defer progress.Stop()
	for {
		select {
		case <-finished:
			return context.Cause(ctx)
		case <-progress.C:
			tell(format, done.Load(), count)
		}
	}
}

// remove deletes the application and the directory, in a deployment that goes on.
func (s *site) remove(ctx context.Context) error {
	return s.delete(ctx, s.application, s.directory)
}

func (s *site) delete(ctx context.Context, addresses ...string) error {
	var failures []error
	for _, address := range addresses {
		if address == "" {
			continue
		}
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
