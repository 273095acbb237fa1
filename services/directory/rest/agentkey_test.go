package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
)

// listen receives the notifications of the database until the test ends.
func listen(t *testing.T, db *pg.DB) {
	t.Helper()
	t.Cleanup(worktest.Start(t, db.Listen))
}

// login logs in to a directory, and returns the code of the error, 0 for none.
func (b *bench) login(directory, login, password string) <-chan int {
	b.Helper()
	at, err := id.Parse(directory[strings.LastIndexByte(directory, '/')+1:])
	if err != nil {
		b.Fatal(err)
	}
	code := make(chan int, 1)
	go func() {
		_, err := b.svc.Authenticate(context.Background(), directoryapi.Authenticate{
			Tenant: b.signedUp.Tenant.ID, Login: login, Password: secure.Secret(password),
			Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: at}},
		})
		if err == nil {
			code <- 0
			return
		}
		code <- apierr.From(err).Code
	}()
	return code
}

// poll waits for a password check.
func (b *bench) poll(agent string) map[string]any {
	b.Helper()
	checks := b.Get(agent + "/authentications?wait=10").Want(200)
	if checks.Header.Get("Cache-Control") != "no-store" {
		b.Error("a check may be stored")
	}
	var list []map[string]any
	if err := json.Unmarshal(checks.Body, &list); err != nil || len(list) != 1 {
		b.Fatalf("%d checks are handed out, %v", len(list), err)
	}
	return list[0]
}

func TestAgentKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	other := b.agent("M", ldapProvider(``))
	made := b.Post(agent+"/keys", `{"name":"host 1"}`).Want(201)
	b.Post(agent+"/keys", ``).Want(201)
	if size := b.Get(agent + "/keys").Want(200).Int("size"); size != 2 {
		t.Errorf("%d keys", size)
	}
	if strings.Contains(string(b.Get(agent+"/keys").Body), "secret") {
		t.Error("the list has secrets")
	}
	authenticates := func(key, secret string) bool {
		t.Helper()
		k, err := b.svc.AuthenticateAgent(t.Context(), directoryapi.AuthenticateAgent{ID: key, Secret: secure.Secret(secret)})
		if err != nil && !errors.Is(err, apierr.Unauthorized) {
			t.Fatal(err)
		}
		return err == nil && k.TenantID == b.signedUp.Tenant.ID && strings.HasSuffix(agent, k.AgentID.String())
	}
	key, secret := made.Text("id"), made.Text("secret")
	at, _ := directoryapi.AgentOfKey(key)
	for _, c := range []struct {
		key, secret string
		want        bool
	}{
		{key, secret, true}, {key, secret + "x", false}, {key, "", false}, {key + "x", secret, false},
		{"agent-", secret, false}, {"", "", false},
		{directoryapi.NewAgentKeyID(at.Tenant, at.ID), "", false},
		{strings.Replace(key, at.Tenant.String(), at.ID.String(), 1), secret, false},
	} {
		if got := authenticates(c.key, c.secret); got != c.want {
			t.Errorf("%s authenticates: %t", c.key, got)
		}
	}
	b.Delete(other + "/keys/" + key).Want(204)
	if !authenticates(key, secret) {
		t.Error("a key was deleted at another agent")
	}
	b.Delete(agent + "/keys/" + key).Want(204)
	if authenticates(key, secret) {
		t.Error("a deleted key is good")
	}
	b.Post(agent+"/keys", `{"name":"`+strings.Repeat("x", 256)+`"}`).WantError(400, 2008)
	b.Post(agent+"/keys", `{"mood":"x"}`).WantError(400, 2015)
	b.Post("/v1/agents/6ZmOHBdXeMz4fTfMHAdQ2Y/keys", `{}`).WantError(404, 404)

	again := b.Post(agent+"/keys", `{}`).Want(201)
	b.Delete(b.Get(agent).Href("directory")).Want(204)
	if authenticates(again.Text("id"), again.Text("secret")) {
		t.Error("a key outlives its directory")
	}
}

func TestTheConfigurationOfAnAgentHasItsPassword(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	answer := b.Get(agent + "/configuration").Want(200)
	if answer.Text("agentUserDnPassword") != "agent password" || answer.Text("providerId") != "ldap" ||
		answer.Text("baseDn") != "dc=corp" ||
		answer.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("the configuration answers with Cache-Control %s: %s", answer.Header.Get("Cache-Control"), answer.Body)
	}
	if strings.Contains(string(b.Get(agent).Body), "agent password") {
		t.Error("the agent shows its password")
	}
}
