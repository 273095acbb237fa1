package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// A client that signs its requests, and never sends its secret, can do everything that a
// client with Basic authentication can.
func TestASignedClient(t *testing.T) {
	signed := func(method, address, body string) e2e.Request {
		if body == "" {
			return client.Signed(method, address, nil, time.Now())
		}
		return client.Signed(method, address, []byte(body), time.Now())
	}
	redirect := client.Want(t, http.StatusFound, signed("GET", "/tenants/current?expand=applications", ""))
	tenant := client.WantObject(t, http.StatusOK, signed("GET", redirect.Header.Get("Location"), ""))
	if tenant.Href() == "" || tenant.Object("applications")["items"] == nil {
		t.Errorf("the redirect leads to %v", tenant)
	}
	name := e2e.Unique("signed é +*")
	created := client.WantObject(t, http.StatusCreated, signed("POST", "/applications?createDirectory=true", `{"name":`+quoted(t, name)+`}`))
	mapping := client.Get(t, created.Link(t, "defaultAccountStoreMapping"))
	defer client.Delete(t, mapping.Link(t, "accountStore"))
	found := client.WantObject(t, http.StatusOK, signed("GET", tenant.Link(t, "applications")+"?orderBy=name+asc%2CcreatedAt%20desc&limit=5&offset=0&name="+escaped(name), ""))
	if found.Number(t, "size") != 1 {
		t.Errorf("the application is not found by its name: %v", found)
	}
	changed := client.WantObject(t, http.StatusOK, signed("POST", created.Href()+"?_method=PUT&expand=tenant", `{"description":"signed"}`))
	if changed.Text("description") != "signed" || changed.Object("tenant").Text("key") == "" {
		t.Errorf("the change answers %v", changed)
	}
	t.Run("with a large body", func(t *testing.T) {
		body, err := json.Marshal(e2e.Object{"large": strings.Repeat("x", 4<<20)})
		if err != nil {
			t.Fatal(err)
		}
		client.Want(t, http.StatusOK, signed("POST", created.Link(t, "customData"), string(body)))
	})
	client.Want(t, http.StatusNoContent, signed("POST", created.Href()+"//?_method=DELETE", ""))
	client.Refused(t, 404, 404, signed("GET", created.Href(), ""))
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func escaped(text string) string {
	return strings.NewReplacer(" ", "+", "+", "%2b", "*", "%2A", "é", "%c3%A9").Replace(text)
}

func TestWhatWasNotSignedIsRefused(t *testing.T) {
	now := time.Now()
	refused := func(t *testing.T, request e2e.Request) {
		t.Helper()
		checkUnauthorized(t, client.Want(t, http.StatusUnauthorized, request))
	}
	t.Run("the same request twice, on whichever node", func(t *testing.T) {
		request := client.Signed("GET", "/tenants/current", nil, now)
		client.Want(t, http.StatusFound, request)
		for range 8 {
			refused(t, request)
		}
	})
	t.Run("fifty at once pass once", func(t *testing.T) {
		request := client.Signed("GET", "/tenants/current", nil, now)
		var group sync.WaitGroup
		var mu sync.Mutex
		statuses := map[int]int{}
		for range 50 {
			group.Go(func() {
				answer, err := client.Do(t.Context(), request)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				statuses[answer.Status]++
			})
		}
		group.Wait()
		if statuses[http.StatusFound] != 1 || statuses[http.StatusUnauthorized] != 49 {
			t.Errorf("fifty replays are answered with %v", statuses)
		}
	})
	t.Run("another address", func(t *testing.T) {
		request := client.Signed("GET", "/tenants/current", nil, now)
		request.URL += "?expand=accounts"
		refused(t, request)
	})
	t.Run("another body", func(t *testing.T) {
		request := client.Signed("POST", "/applications", []byte(`{"name":"a"}`), now)
		request.Body = []byte(`{"name":"b"}`)
		refused(t, request)
	})
	t.Run("another secret", func(t *testing.T) {
		refused(t, client.With(client.Key.ID, client.Key.Secret+"x").Signed("GET", "/tenants/current", nil, now))
	})
	t.Run("an unknown key", func(t *testing.T) {
		refused(t, client.With("ABCDEFGHIJKLMNOPQRSTUVWXYZ", client.Key.Secret).Signed("GET", "/tenants/current", nil, now))
	})
	t.Run("another time", func(t *testing.T) {
		refused(t, client.Signed("GET", "/tenants/current", nil, now.Add(-61*time.Minute)))
		refused(t, client.Signed("GET", "/tenants/current", nil, now.Add(16*time.Minute)))
		client.Want(t, http.StatusFound, client.Signed("GET", "/tenants/current", nil, now.Add(-58*time.Minute)))
		client.Want(t, http.StatusFound, client.Signed("GET", "/tenants/current", nil, now.Add(14*time.Minute)))
	})
}

// keyStaleness is how long an API key may work after it was disabled or deleted, on replicas
// other than the one that did it.
const keyStaleness = time.Second

// An API key that is disabled or deleted is refused within a second, on every replica, for
// either scheme, under load.
func TestAKeyThatEndsIsRefusedWithinASecond(t *testing.T) {
	own := client.Get(t, "/apiKeys/"+client.Key.ID)
	for name, end := range map[string]func(href string){
		"disabled": func(href string) { client.Update(t, href, e2e.Object{"status": "DISABLED"}) },
		"deleted":  func(href string) { client.Delete(t, href) },
	} {
		t.Run(name, func(t *testing.T) {
			key := client.Create(t, own.Link(t, "account")+"/apiKeys", e2e.Object{})
			t.Cleanup(func() {
				_, _ = client.Do(context.WithoutCancel(t.Context()), e2e.Request{Method: http.MethodDelete, URL: key.Href()})
			})
			keyClient := client.With(key.Text("id"), key.Text("secret"))
			var load keyLoad
			stop := load.run(t, keyClient)
			if err := e2e.AwaitFor(t.Context(), exchangeTimeout, "requests with the key", load.isRunning); err != nil {
				t.Fatal(err)
			}
			end(key.Href())
			ended := time.Now()
			if err := e2e.AwaitFor(t.Context(), exchangeTimeout, "refusals", func(context.Context) error { return load.allRefusedAfter(ended.Add(keyStaleness)) }); err != nil {
				t.Error(err)
			}
			stop()
			if last := load.lastAccepted(); last.Sub(ended) > keyStaleness {
				t.Errorf("a request that began %s after the key's end was good", last.Sub(ended))
			} else {
				t.Logf("the last good request began %s after the key's end", last.Sub(ended))
			}
		})
	}
}

// keyLoad sends requests with an API key, by both schemes and over several connections, and
// records when the last accepted request began.
type keyLoad struct {
	mu       sync.Mutex
	accepted int
	last     time.Time // when the last accepted request began
	refused  map[string]time.Time
}

func (l *keyLoad) run(t *testing.T, keyClient *e2e.Client) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	l.refused = map[string]time.Time{}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				request := get("/tenants/current")
				if i%2 == 1 {
					request = keyClient.Signed("GET", "/tenants/current", nil, began)
				}
				answer, err := keyClient.Do(context.WithoutCancel(ctx), request)
				if err != nil {
					t.Error(err)
					return
				}
				l.record(fmt.Sprint(i), began, answer.Status)
			}
		})
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func (l *keyLoad) record(connection string, began time.Time, status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status != http.StatusFound {
		l.refused[connection] = began
		return
	}
	l.accepted++
	if began.After(l.last) {
		l.last = began
	}
}

func (l *keyLoad) isRunning(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accepted < 50 {
		return fmt.Errorf("the good client had %d requests", l.accepted)
	}
	return nil
}

// allRefusedAfter is nil when each connection had a request refused that began after a
// time.
func (l *keyLoad) allRefusedAfter(after time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.refused) < 8 {
		return fmt.Errorf("%d callers were refused", len(l.refused))
	}
	for _, at := range l.refused {
		if at.Before(after) {
			return errors.New("a caller was not asked since")
		}
	}
	return nil
}

func (l *keyLoad) lastAccepted() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}
