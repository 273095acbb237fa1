package rest_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	directoryrest "github.com/doorward/doorward/services/directory/rest"
	"github.com/doorward/doorward/services/directory/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const base = href.Base("https://localhost:8443/v1")

// bench is the service with a database of its own and one tenant.
type bench struct {
	*testing.T
	*resttest.Client
	db       *pg.DB
	svc      *directory.Service
	signedUp directoryapi.SignedUp
	mu       sync.Mutex
	time     time.Time
}

func (b *bench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.time
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.time = b.time.Add(d)
}

func migrate(ctx context.Context, url string) error {
	db, err := pg.Open(ctx, pg.Config{URL: secure.Secret(url), Schema: "directory", Migrations: []fs.FS{events.Migrations(), store.Migrations()}})
	if err == nil {
		db.Close()
	}
	return err
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return newBenchOf(t, "service")
}

// newBenchOf is newBench of a deployment with an alias of its own.
func newBenchOf(t *testing.T, alias string) *bench {
	t.Helper()
	b := &bench{T: t, time: time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)}
	db, err := pg.Open(t.Context(), pg.Config{URL: secure.Secret(pgtest.New(t, migrate)), Schema: "directory"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	passwords := secure.NewPasswords(secure.Cost{Memory: 64, Time: 1, Threads: 1}, 2, 1000)
	b.svc = directory.New(store.New(db, b.now), passwords, ring, base, b.now, directory.Config{VerificationTTL: 7 * 24 * time.Hour, Alias: alias})
	signer := caller.NewSigner("a secret that is long enough for this", time.Now)
	app := rest.New(rest.Config{Service: "directory", Base: base, Signer: signer})
	directoryrest.Mount(app, b.svc, base)
	b.signedUp = b.signUp("calm-otter", "owner@example.test")
	b.Client = resttest.New(t, app, signer, caller.Caller{Tenant: b.signedUp.Tenant.ID, RequestID: "0d7f8a3e-3b0c-4b7e-9d7e-2f1f7a3f5b10"})
	return b
}

func (b *bench) signUp(key, email string) directoryapi.SignedUp {
	b.Helper()
	done, err := b.svc.SignUp(b.Context(), directoryapi.SignUp{
		Tenant: id.New(b.now()), Directory: id.New(b.now()), Owner: id.New(b.now()), Key: key, DirectoryName: "Service Administrators", Email: email,
	})
	if err != nil {
		b.Fatal(err)
	}
	return done
}

func (b *bench) tenant() string { return base.To("tenants", b.signedUp.Tenant.ID) }

// directory makes a directory and gives its address.
func (b *bench) directory(name string) string {
	b.Helper()
	return b.Post("/v1/directories", fmt.Sprintf(`{"name":%q}`, name)).Want(201).Href()
}

const jo = `{"email":"jo@example.test","password":"Changeme1!","givenName":"Jo","surname":"Doe"}`

func TestTenant(t *testing.T) {
	b := newBench(t)
	b.Get("/v1/tenants/current?expand=x").Want(302).Golden("tenant_current")
	b.Get(b.tenant()).Want(200).Golden("tenant")
	b.Get(b.tenant() + "/directories").Want(200).Golden("tenant_directories")
	b.Get(b.tenant() + "/accounts").Want(200).Golden("tenant_accounts")
}

func TestDirectory(t *testing.T) {
	b := newBench(t)
	made := b.Post("/v1/directories", `{"name":" Staff ","description":"All staff","status":"disabled","href":"ignored","accounts":{"href":"x"}}`).Want(201).Golden("directory_created")
	b.advance(time.Minute)
	b.Get(made.Href()).Want(200).Golden("directory")
	b.Post(made.Href(), `{"description":null,"status":"ENABLED"}`).Want(200).Golden("directory_updated")
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404).Golden("not_found")
	b.Delete(made.Href()).WantError(404, 404)
}

func TestDirectoryRefusals(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	long := strings.Repeat("ä", 255)
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{}`, 400, 2000},
		{`{"name":null}`, 400, 2000},
		{`{"name":"  "}`, 400, 2000},
		{`{"name":1}`, 400, 2004},
		{`{"name":"` + long + `x"}`, 400, 2008},
		{`{"name":"D","description":"` + strings.Repeat("x", 1001) + `"}`, 400, 2008},
		{`{"name":"D","status":"PAUSED"}`, 400, 2003},
		{`{"name":"D","colour":"red"}`, 400, 2015},
		{`{"name":"STAFF"}`, 409, 2001},
		{`{"name":"D"`, 400, 2006},
	} {
		b.Post("/v1/directories", c.body).WantError(c.status, c.code)
	}
	b.Send("POST", "/v1/directories", "text/plain", `{"name":"D"}`).WantError(415, 1101)
	b.Send("POST", "/v1/directories", "application/json;charset=latin1", `{"name":"D"}`).WantError(400, 2005)
	b.Post("/v1/directories", `{"name":"`+long+`"}`).Want(201)
	b.Post(staff, `{"name":"`+long+`"}`).WantError(409, 2001)
	b.Delete(base.To("directories", b.signedUp.Directory.ID)).WantError(400, 400)
	b.Get("/v1/directories/nothing").WantError(404, 404)
}

func TestAccount(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	made := b.Post(staff+"/accounts", jo).Want(201).Golden("account_created")
	b.advance(time.Minute)
	b.Get(made.Href()).Want(200).Golden("account")
	b.Post(made.Href(), `{"username":"jo","givenName":null,"middleName":"M","status":"disabled","emailVerificationStatus":"verified"}`).Want(200).Golden("account_updated")
	b.Post(made.Href(), `{"email":"jo.doe@example.test"}`).Want(200).Golden("account_email_changed")
	b.Get(staff + "/accounts?email=JO.DOE*&orderBy=surname%20desc&limit=1").Want(200).Golden("account_search")
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404)
}

func TestAccountRefusals(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	first := b.Post(staff+"/accounts", `{"email":"jo@example.test","username":"jo","password":"Changeme1!"}`).Want(201)
	second := b.Post(staff+"/accounts", `{"email":"al@example.test","password":"Changeme1!"}`).Want(201)
	account := func(rest string) string { return `{"email":"new@example.test","password":"Changeme1!"` + rest + `}` }
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{"password":"Changeme1!"}`, 400, 2000},
		{`{"email":"new@example.test"}`, 400, 2000},
		{`{"email":"new@example.test","password":null}`, 400, 2000},
		{`{"email":"new","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new@localhost","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"n w@example.test","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"a@b@example.test","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new@example.test","password":"Chang1!"}`, 400, 2007},
		{`{"email":"new@example.test","password":"Aa1` + strings.Repeat("x", 98) + `"}`, 400, 2008},
		{`{"email":"new@example.test","password":"changeme1!"}`, 400, 400},
		{`{"email":"new@example.test","password":"CHANGEME1!"}`, 400, 400},
		{`{"email":"new@example.test","password":"Changeme!!"}`, 400, 400},
		{`{"email":"JO@example.test","password":"Changeme1!"}`, 409, 2001},
		{account(`,"username":"JO"`), 409, 2001},
		{account(`,"username":"` + strings.Repeat("u", 256) + `"`), 400, 2008},
		{account(`,"givenName":"` + strings.Repeat("u", 256) + `"`), 400, 2008},
		{account(`,"status":"LOCKED"`), 400, 2003},
		{account(`,"nick":"x"`), 400, 2015},
	} {
		b.Post(staff+"/accounts", c.body).WantError(c.status, c.code)
	}
	b.Post(staff+"/accounts?registrationWorkflowEnabled=perhaps", account("")).WantError(400, 2103)
	b.Post(second.Href(), `{"username":"jo"}`).WantError(409, 2001)
	b.Post(second.Href(), `{"email":null}`).WantError(400, 2000)
	b.Post(second.Href(), `{"username":""}`).WantError(400, 2000)
	b.Post(first.Href(), `{"emailVerificationStatus":"UNKNOWN"}`).WantError(400, 2003)
	owner := base.To("accounts", b.signedUp.Owner.ID)
	b.Post(owner, `{"status":"DISABLED"}`).WantError(400, 4002)
	b.Delete(owner).WantError(400, 4001)
	b.Post("/v1/directories/"+id.New(b.now()).String()+"/accounts", jo).WantError(404, 404)
}

func TestTheSameAccountAtTheSameTimeIsMadeOnce(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	var group sync.WaitGroup
	statuses := make(chan int, 50)
	for range cap(statuses) {
		group.Go(func() { statuses <- b.Post(staff+"/accounts", jo).Status })
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[201] != 1 || count[409] != 49 {
		t.Fatalf("answers by status: %v; want one 201 and the rest 409", count)
	}
}

func TestAnotherTenantFindsNothingAndChangesNothing(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	account := b.Post(staff+"/accounts", jo).Want(201).Href()
	policy := strings.Replace(staff, "directories", "accountCreationPolicies", 1)
	other := b.As(caller.Caller{Tenant: b.signUp("shy-lynx", "other@example.test").Tenant.ID})
	for _, path := range []string{b.tenant(), b.tenant() + "/directories", b.tenant() + "/accounts", staff, staff + "/accounts", account, policy} {
		other.Get(path).WantError(404, 404)
	}
	for _, path := range []string{staff, account} {
		other.Delete(path).WantError(404, 404)
	}
	other.Post(staff, `{"name":"Mine"}`).WantError(404, 404)
	other.Post(staff+"/accounts", jo).WantError(404, 404)
	other.Post(account, `{"status":"DISABLED"}`).WantError(404, 404)
	other.Post(policy, `{"welcomeEmailStatus":"ENABLED"}`).WantError(404, 404)
	b.Get(account).Want(200).Golden("account_untouched")
}

func TestRequestsWithoutACallerAreRefused(t *testing.T) {
	b := newBench(t)
	b.As(caller.Caller{}).Get("/v1/tenants/current").WantError(403, 403)
}

// verifying gives a directory whose registrations must be verified.
func (b *bench) verifying() string {
	b.Helper()
	staff := b.directory("Staff")
	policy := strings.Replace(staff, "directories", "accountCreationPolicies", 1)
	b.Get(policy).Want(200).Golden("creation_policy")
	b.Post(policy, `{"verificationEmailStatus":"enabled"}`).Want(200).Golden("creation_policy_updated")
	return staff
}

func TestVerification(t *testing.T) {
	b := newBench(t)
	staff := b.verifying()
	made := b.Post(staff+"/accounts", jo).Want(201).Golden("account_unverified")
	token := made.Href("emailVerificationToken")
	b.Get(token).WantError(405, 1100)
	var group sync.WaitGroup
	statuses := make(chan int, 50)
	for range cap(statuses) {
		group.Go(func() { statuses <- b.Post(token, "").Status })
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	if count[200] != 1 || count[404] != 49 {
		t.Fatalf("answers by status: %v; want one 200 and the rest 404", count)
	}
	b.Get(made.Href()).Want(200).Golden("account_verified")
}

func TestAVerificationTokenExpires(t *testing.T) {
	b := newBench(t)
	token := b.Post(b.verifying()+"/accounts", jo).Want(201).Href("emailVerificationToken")
	b.advance(7*24*time.Hour + time.Millisecond)
	b.Post(token, "").WantError(404, 404)
}

func TestAChangedEmailEndsItsVerification(t *testing.T) {
	b := newBench(t)
	made := b.Post(b.verifying()+"/accounts", jo).Want(201)
	b.Post(made.Href(), `{"givenName":"Joanna"}`).Want(200)
	b.Post(made.Href(), `{"email":"other@example.test"}`).Want(200)
	b.Post(made.Href("emailVerificationToken"), "").WantError(404, 404)
}

func TestRegistrationStates(t *testing.T) {
	b := newBench(t)
	staff := b.verifying()
	for i, c := range []struct{ body, query, status string }{
		{``, ``, "UNVERIFIED"},
		{`,"status":"ENABLED"`, ``, "UNVERIFIED"},
		{`,"status":"DISABLED"`, ``, "DISABLED"},
		{`,"status":"UNVERIFIED"`, ``, "UNVERIFIED"},
		{``, `?registrationWorkflowEnabled=false`, "ENABLED"},
		{`,"status":"UNVERIFIED"`, `?registrationWorkflowEnabled=false`, "UNVERIFIED"},
	} {
		made := b.Post(staff+"/accounts"+c.query, fmt.Sprintf(`{"email":"a%d@example.test","password":"Changeme1!"%s}`, i, c.body)).Want(201)
		if made.Text("status") != c.status {
			t.Errorf("%s with %q is %s, want %s", c.body, c.query, made.Text("status"), c.status)
		}
		wantToken := c.query == "" && c.status == "UNVERIFIED"
		if hasToken := made.Object()["emailVerificationToken"] != nil; hasToken != wantToken {
			t.Errorf("%s with %q has a token: %v", c.body, c.query, hasToken)
		}
	}
}

func TestEmailDomains(t *testing.T) {
	b := newBench(t)
	staff := b.directory("Staff")
	policy := strings.Replace(staff, "directories", "accountCreationPolicies", 1)
	b.Post(policy, `{"emailDomainWhitelist":["*example.test","*.other.test"],"emailDomainBlacklist":["bad.example.test"]}`).Want(200)
	for domain, code := range map[string]int{
		"example.test": 0, "sub.example.test": 0, "myexample.test": 0, "a.other.test": 0,
		"other.test": 7206, "example.test.evil.test": 7206, "BAD.example.test": 7205,
	} {
		answer := b.Post(staff+"/accounts", fmt.Sprintf(`{"email":"jo@%s","password":"Changeme1!"}`, domain))
		if code == 0 {
			account := answer.Want(201).Href()
			b.Post(account, `{"email":"jo2@bad.example.test"}`).WantError(400, 7205)
			continue
		}
		answer.WantError(400, code)
	}
	b.Post(policy, `{"emailDomainWhitelist":"example.test"}`).WantError(400, 2004)
	b.Post(policy, `{"emailDomainWhitelist":["a b"]}`).WantError(400, 2004)
	b.Post(policy, `{"emailDomainWhitelist":[]}`).Want(200)
	b.Post(staff+"/accounts", `{"email":"jo@other.test","password":"Changeme1!"}`).Want(201)
}
