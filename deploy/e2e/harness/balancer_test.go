package harness

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheBalancerTakesTurnsAndPassesByTheDead(t *testing.T) {
	var targets []string
	servers := map[string]*httptest.Server{}
	for _, name := range []string{"one", "two"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) }))
		t.Cleanup(server.Close)
		servers[name] = server
		targets = append(targets, server.Listener.Addr().String())
	}
	address := FreeAddress()
	balancer, err := startBalancer(address, targets)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() string {
		t.Helper()
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if first, second := ask(), ask(); first == second {
		t.Errorf("%q answered twice in a row", first)
	}
	servers["one"].Close()
	for range 4 {
		if got := ask(); got != "two" {
			t.Errorf("%q answered", got)
		}
	}
	if err := balancer.close(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		t.Error("a closed balancer takes connections")
		conn.Close()
	}
}
