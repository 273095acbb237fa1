package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// authenticate logs in through directories in their order, and returns the error.
func (b *bench) authenticate(anonymous bool, login string, directories ...string) *apierr.Error {
	b.Helper()
	var stores []directoryapi.Store
	for _, directory := range directories {
		at, err := id.Parse(directory[strings.LastIndexByte(directory, '/')+1:])
		if err != nil {
			b.Fatal(err)
		}
		stores = append(stores, directoryapi.Store{Kind: directoryapi.Directories, ID: at})
	}
	_, err := b.svc.Authenticate(b.Context(), directoryapi.Authenticate{
		Tenant: b.signedUp.Tenant.ID, Login: login, Password: secure.Secret("wrong"), Stores: stores, Anonymous: anonymous,
	})
	return apierr.From(err)
}

// While an agent does not answer, no answer and no delay tells whether its directory has a login.
func TestAnonymousLoginsDoNotTellWhatASlowDirectoryHas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	listen(t, b.db)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`]}`)
	ldap := b.Get(agent).Href("directory")
	cloud := b.Post("/v1/directories", `{"name":"Cloud"}`).Want(201).Href()
	b.Post(cloud+"/accounts", `{"username":"ann","email":"ann@example.test","password":"Changeme1!"}`).Want(201)

	want := func(what string, anonymous bool, login string, code int, directories ...string) {
		t.Helper()
		err := b.authenticate(anonymous, login, directories...)
		if err.Code != code {
			t.Errorf("%s: %v, want %d", what, err, code)
		}
		if code == 503 && err.RetryAfter <= 0 {
			t.Errorf("%s: a refusal without a time to repeat it", what)
		}
	}
	want("before: a login that the directory lacks", true, "nobody", 7104, ldap)
	done := b.login(ldap, "jo", "a password")
	b.Post(fmt.Sprint(agent, "/authentications/", b.poll(agent)["id"]), `{"result":"ERROR","code":9003}`).Want(204)
	if code := <-done; code != 9003 {
		t.Fatalf("the login that its agent could not check: %d", code)
	}
	want("a login that the directory has", true, "jo", 503, ldap)
	want("a login that it lacks", true, "nobody", 503, ldap)
	want("a login that no store has", true, "nobody", 503, cloud, ldap)
	want("a login of a store behind it", true, "ann", 503, ldap, cloud)
	want("a login of a store before it", true, "ann", 7100, cloud, ldap)
	want("a login without that directory", true, "nobody", 7104, cloud)
	want("a login that it lacks, with an API key", false, "nobody", 7104, ldap)
	b.clock.Move(time.Minute)
	want("a minute later", true, "nobody", 7104, ldap)

	b.clock.Move(2 * time.Minute)
	want("a login while the agent is offline", true, "jo", 9000, ldap)
	want("another after that", true, "nobody", 503, ldap)
}

func TestAtMostTwentyLoginsWaitForAnAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	listen(t, b.db)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`]}`)
	directory := b.Get(agent).Href("directory")
	const most = 20
	var waiting []<-chan int
	for range most {
		waiting = append(waiting, b.login(directory, "jo", "a password"))
	}
	for n := int64(0); n < most; {
		var err error
		if n, err = pg.Value[int64](t.Context(), b.db, `SELECT count(*) FROM agent_checks WHERE result IS NULL`); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.authenticate(false, "jo", directory); err.Code != 503 || err.RetryAfter <= 0 {
		t.Errorf("one more is %v, want 503 at once", err)
	}
	var checks []struct{ ID string }
	if err := json.Unmarshal(b.Get(agent+"/authentications").Want(200).Body, &checks); err != nil || len(checks) != most {
		t.Fatalf("%d checks are handed out, %v", len(checks), err)
	}
	for _, check := range checks {
		b.Post(agent+"/authentications/"+check.ID, `{"result":"SUCCESS"}`).Want(204)
	}
	for _, login := range waiting {
		if code := <-login; code != 0 {
			t.Errorf("a login that waited ended with %d", code)
		}
	}
}
