package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/doorward/doorward/deploy/e2e"
)

const (
	// accountLimit bounds how many wrong passwords of one account are answered as such
	// before the others are refused, addressLimit those of all accounts from one
	// address. Both are more than the defaults, so that a deployment may differ.
	accountLimit, addressLimit = 100, 400
)

// clientAddress is one of many addresses; each run has a network of its own, because
// failed logins of an address are counted for a while.
func clientAddress(network string, n int) string { return fmt.Sprintf("2001:db8:%s:%x::1", network, n) }

// randomNetwork draws the network of a run.
func randomNetwork() string { return fmt.Sprintf("%x", rand.N(1<<16)) }

// outcomes counts the answers to wrong passwords.
type outcomes struct{ wrong, refused int }

// tryPasswords sends many wrong passwords, some at a time. Each must be answered as
// wrong, or refused with Retry-After.
func tryPasswords(t *testing.T, attempts int, request func(n int) e2e.Request) (g outcomes) {
	t.Helper()
	var mu sync.Mutex
	var group sync.WaitGroup
	next := make(chan int)
	for range 10 {
		group.Go(func() {
			for n := range next {
				answer, err := client.Do(t.Context(), request(n))
				mu.Lock()
				switch seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")); {
				case err != nil:
					t.Error(err)
				case answer.Status == http.StatusBadRequest:
					g.wrong++
				case answer.Status == http.StatusTooManyRequests && seconds > 1:
					g.refused++
				default:
					t.Errorf("an attempt returns %s, to be tried again after %d s", answer, seconds)
				}
				mu.Unlock()
			}
		})
	}
	for n := range attempts {
		next <- n
	}
	close(next)
	group.Wait()
	t.Logf("of %d attempts %d were answered as wrong, %d were refused", attempts, g.wrong, g.refused)
	return g
}

func TestWrongPasswordsLockTheLoginOut(t *testing.T) {
	fixture := client.NewFixture(t)
	account := client.Register(t, fixture.Application.Link(t, "accounts"))
	email, here := account.Text("email"), randomNetwork()
	home, attacker := clientAddress(here, 0xfffe), clientAddress(here, 0xffff)
	login := func(from, password string) e2e.Request {
		return e2e.Login(fixture.Application, email, password).From(from)
	}
	client.Want(t, http.StatusOK, login(home, e2e.Password))

	t.Run("a thousand times from one address", func(t *testing.T) {
		g := tryPasswords(t, 1000, func(n int) e2e.Request { return login(attacker, fmt.Sprint("Wrong", n)) })
		if g.wrong < 1 || g.wrong > accountLimit {
			t.Errorf("%d attempts were answered as wrong", g.wrong)
		}
		refused := client.Refused(t, http.StatusTooManyRequests, 429, login(attacker, e2e.Password))
		if refused.Text("message") == "" {
			t.Errorf("the refusal is %v", refused)
		}
		grant := post(fixture.Application.Href()+"/oauth/token", passwordGrant(email, e2e.Password)).From(attacker)
		client.Refused(t, http.StatusTooManyRequests, 429, grant)
		client.Want(t, http.StatusOK, login(home, e2e.Password))
		client.Want(t, http.StatusOK, login(clientAddress(here, 0xfffd), e2e.Password))
	})
	t.Run("nor from many addresses, and the owner gets in where he has been", func(t *testing.T) {
		g := tryPasswords(t, 300, func(n int) e2e.Request { return login(clientAddress(here, n), "Wrong1234") })
		if g.wrong < 1 || g.wrong > accountLimit {
			t.Errorf("%d attempts were answered as wrong", g.wrong)
		}
		client.Refused(t, http.StatusTooManyRequests, 429, login(clientAddress(here, 400), e2e.Password))
		client.Want(t, http.StatusOK, login(home, e2e.Password))
		client.Want(t, http.StatusOK, login(clientAddress(here, 0xfffd), e2e.Password))
	})
	t.Run("nor of many accounts from one address", func(t *testing.T) {
		from := clientAddress(here, 0xfffc)
		g := tryPasswords(t, 500, func(n int) e2e.Request {
			return e2e.Login(fixture.Application, fmt.Sprintf("%d-%s", n, email), "Wrong1234").From(from)
		})
		if g.wrong < 1 || g.wrong > addressLimit {
			t.Errorf("%d attempts were answered as wrong", g.wrong)
		}
		client.Refused(t, http.StatusTooManyRequests, 429, login(from, e2e.Password))
		client.Want(t, http.StatusOK, login(home, e2e.Password))
	})
	t.Run("and nobody learns which accounts there are", func(t *testing.T) {
		from, nobody := clientAddress(here, 0xfffb), "nobody-"+email
		unknown := func(password string) e2e.Request { return e2e.Login(fixture.Application, nobody, password).From(from) }
		tryPasswords(t, accountLimit, func(int) e2e.Request { return unknown("Wrong1234") })
		known := client.Refused(t, http.StatusTooManyRequests, 429, login(attacker, "Wrong1234"))
		if none := client.Refused(t, http.StatusTooManyRequests, 429, unknown("Wrong1234")); none.Text("message") != known.Text("message") {
			t.Errorf("an unknown login is refused with %v, a known one with %v", none, known)
		}
	})
}
