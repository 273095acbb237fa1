package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/doorward/doorward/pkg/client"
)

// deployment answers as Doorward does, with three accounts in pages of two.
func deployment(busy *atomic.Int32) *httptest.Server {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	mux.HandleFunc("GET /v1/directories/D1/accounts", func(w http.ResponseWriter, r *http.Request) {
		if busy.Add(-1) >= 0 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		offset, _ := strconv.Atoi(r.URL.Query().Get("offset"))
		var items []map[string]any
		for i := offset; i < min(offset+2, 3); i++ {
			items = append(items, map[string]any{"href": fmt.Sprint(server.URL, "/v1/accounts/A", i), "email": fmt.Sprintf("user%d@example.test", i)})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"offset": offset, "limit": 2, "size": 3, "items": items})
	})
	mux.HandleFunc("POST /v1/directories", func(w http.ResponseWriter, r *http.Request) {
		var sent client.NewDirectory
		if id, _, _ := r.BasicAuth(); id != "K1" || json.NewDecoder(r.Body).Decode(&sent) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if sent.Name == "Taken" {
			w.WriteHeader(http.StatusConflict)
			fmt.Fprint(w, `{"status":409,"code":2001,"message":"m","developerMessage":"the name is taken","moreInfo":"i","requestId":"r"}`)
			return
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"href":"%[1]s/v1/directories/D1","name":%[2]q,"accounts":{"href":"%[1]s/v1/directories/D1/accounts"}}`, server.URL, sent.Name)
	})
	mux.HandleFunc("POST /v1/applications/A1/oauth/token", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"access_token":"token for %s","expires_in":3600}`, r.PostFormValue("username"))
	})
	return server
}

func Example() {
	server := deployment(new(atomic.Int32))
	defer server.Close()
	ctx := context.Background()
	c, err := client.New(server.URL+"/v1", client.Credentials{ID: "K1", Secret: "s"})
	if err != nil {
		fmt.Println(err)
		return
	}
	directory, err := c.CreateDirectory(ctx, client.NewDirectory{Name: "Staff"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for account, err := range c.ListDirectoryAccounts(ctx, directory.Href, url.Values{"status": {"ENABLED"}}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(account.Email)
	}
	// Output:
	// user0@example.test
	// user1@example.test
	// user2@example.test
}

func ExampleIs() {
	server := deployment(new(atomic.Int32))
	defer server.Close()
	c, err := client.New(server.URL+"/v1", client.Credentials{ID: "K1", Secret: "s"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = c.CreateDirectory(context.Background(), client.NewDirectory{Name: "Taken"})
	fmt.Println(client.Is(err, 2001), err)
	// Output: true 409/2001: the name is taken (request r)
}

func ExampleClient_CreateToken() {
	server := deployment(new(atomic.Int32))
	defer server.Close()
	c, err := client.New(server.URL+"/v1", client.Credentials{ID: "K1", Secret: "s"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens, err := c.CreateToken(context.Background(), "A1", url.Values{
		"grant_type": {"password"}, "username": {"jo@example.test"}, "password": {"Changeme1!"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tokens.AccessToken, tokens.ExpiresIn)
	// Output: token for jo@example.test 3600
}

func TestABusyServerIsAskedAgainAFewTimes(t *testing.T) {
	for refusals, succeeds := range map[int32]bool{0: true, 3: true, 4: false} {
		var busy atomic.Int32
		busy.Store(refusals)
		server := deployment(&busy)
		c, err := client.New(server.URL+"/v1", client.Credentials{ID: "K1", Secret: "s"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Get[client.AccountCollection](t.Context(), c, "/directories/D1/accounts")
		if succeeds != (err == nil) || !succeeds && !client.Is(err, 429) {
			t.Errorf("after %d refusals: %v", refusals, err)
		}
		server.Close()
	}
}
