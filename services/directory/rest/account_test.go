package rest_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

func TestAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	made := b.Post(staff+"/accounts", jo).Want(201).Golden("account_created")
	b.clock.Move(time.Minute)
	b.Get(made.Href()).Want(200).Golden("account")
	b.Post(
		made.Href(), `{"username":"jo","givenName":null,"middleName":"M","status":"disabled","emailVerificationStatus":"verified"}`).Want(200).Golden("account_updated")
	b.Post(made.Href(), `{"email":"jo.doe@example.test"}`).Want(200).Golden("account_email_changed")
	b.Get(staff + "/accounts?email=JO.DOE*&orderBy=surname%20desc&limit=1").Want(200).Golden("account_search")
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404)
}

func TestANewEmailIsNotVerifiedByWhatItsAccountWasBefore(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	account := b.Post(b.directory("Staff")+"/accounts", jo).Want(201).Href()
	emails := 0
	change := func(status string) string {
		emails++
		return fmt.Sprintf(`{"email":"jo%d@example.test","emailVerificationStatus":%q}`, emails, status)
	}
	for _, c := range []struct{ before, sent, after string }{
		{"VERIFIED", "VERIFIED", "UNVERIFIED"},
		{"VERIFIED", "UNVERIFIED", "UNVERIFIED"},
		{"UNVERIFIED", "UNVERIFIED", "UNVERIFIED"},
		{"UNVERIFIED", "VERIFIED", "VERIFIED"}, // which the client says of the new one
		{"UNKNOWN", "UNKNOWN", "UNVERIFIED"},
		{"UNKNOWN", "VERIFIED", "VERIFIED"},
	} {
		if _, err := pg.Exec(t.Context(), b.db, `UPDATE accounts SET email_verification_status = $1 WHERE email LIKE 'jo%'`,
			c.before); err != nil {
			t.Fatal(err)
		}
		if got := b.Post(account, change(c.sent)).Want(200).Text("emailVerificationStatus"); got != c.after {
			t.Errorf("a new email of an account that was %s, sent with %s, is %s; want %s", c.before, c.sent, got, c.after)
		}
	}
}

func TestAccountRefusals(t *testing.T) {
	t.Parallel()
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
		{`{"email":"n\u00a0w@example.test","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new@exam\u3000ple.test","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new@example.test","password":"Chang1!"}`, 400, 2007},
		{`{"email":"new@example.test","password":"Aa1` + strings.Repeat("x", 98) + `"}`, 400, 2008},
		{`{"email":"new@example.test","password":"changeme1!"}`, 400, 400},
		{`{"email":"new@example.test","password":"CHANGEME1!"}`, 400, 400},
		{`{"email":"new@example.test","password":"Changeme!!"}`, 400, 400},
		{`{"email":"JO@example.test","password":"Changeme1!"}`, 409, 2001},
		{account(`,"username":"JO"`), 409, 2001},
		{account(`,"username":"` + strings.Repeat("u", 256) + `"`), 400, 2008},
		{account(`,"givenName":"` + strings.Repeat("u", 256) + `"`), 400, 2008},
		{account(`,"status":"PAUSED"`), 400, 2003},
		{account(`,"emailVerificationStatus":"UNKNOWN"`), 400, 2003},
		{account(`,"username":"a\u200bb"`), 400, 2006},
		{account(`,"username":"a\u0007b"`), 400, 2006},
		{account(`,"username":"a\ud800b"`), 400, 2005},
		{`{"email":"new","username":" ","status":"PAUSED","password":"Changeme1!"}`, 400, 2003},
		{account(`,"username":"corp:jo"`), 400, 2006},
		{account(`,"username":"Jo\u200dDoe"`), 400, 2006},
		{`{"email":"<new@example.test>","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new%0a@example.test","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new@[127.0.0.1]","password":"Changeme1!"}`, 400, 2006},
		{`{"email":"new","status":"PAUSED"}`, 400, 2000},
		{`{"email":"new","status":"PAUSED","password":"Changeme1!"}`, 400, 2003},
	} {
		b.Post(staff+"/accounts", c.body).WantError(c.status, c.code)
	}
	b.Post(staff+"/accounts?registrationWorkflowEnabled=perhaps", account("")).WantError(400, 2103)
	b.Post(second.Href(), `{"username":"jo"}`).WantError(409, 2001)
	b.Post(second.Href(), `{"email":null}`).WantError(400, 2000)
	b.Post(second.Href(), `{"nick":"x"}`).WantError(400, 2015)
	b.Post(second.Href(), `{"username":"corp:al"}`).WantError(400, 2006)
	b.Post(staff+"/accounts?registrationworkflowenabled=", account("")).WantError(400, 2101)
	b.Post(staff+"/accounts?registrationWorkflowEnabled=true&REGISTRATIONWORKFLOWENABLED=false", account("")).
		WantError(400, 2102)
	b.Post(first.Href(), `{"emailVerificationStatus":"UNKNOWN"}`).WantError(400, 2003)
	owner := base.To("accounts", b.signedUp.Owner.ID)
	b.Post(owner, `{"status":"DISABLED"}`).WantError(400, 4002)
	b.Delete(owner).WantError(400, 4001)
	b.Post("/v1/directories/"+id.New(b.clock.Now()).String()+"/accounts", jo).WantError(404, 404)
}

func TestTheSameAccountAtTheSameTimeIsMadeOnce(t *testing.T) {
	t.Parallel()
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

func TestAccountLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	n := 0
	account := func(rest string) string {
		n++
		return fmt.Sprintf(`{"email":"a%d@example.test","password":"Changeme1!",%s}`, n, rest)
	}
	for _, name := range []string{"username", "givenName", "middleName", "surname"} {
		for length, code := range map[int]int{1: 0, 255: 0, 256: 2008} {
			answer := b.Post(staff+"/accounts", account(fmt.Sprintf(`%q:%q`, name, strings.Repeat("ö", length))))
			if code == 0 {
				b.Delete(answer.Want(201).Href()).Want(204)
				continue
			}
			answer.WantError(400, code)
		}
	}
	for _, name := range []string{"givenName", "middleName", "surname"} {
		b.Post(staff+"/accounts", account(fmt.Sprintf(`%q:""`, name))).Want(201)
		b.Post(staff+"/accounts", account(fmt.Sprintf(`%q:null`, name))).Want(201)
		b.Post(staff+"/accounts", account(fmt.Sprintf(`%q:1`, name))).WantError(400, 2004)
		b.Post(staff+"/accounts", account(fmt.Sprintf(`%q:"a\u0000b"`, name))).WantError(400, 2006)
	}
	email := func(length int) string {
		return fmt.Sprintf(`{"email":%q,"password":"Changeme1!"}`,
			strings.Repeat("x", 64)+"@"+strings.Repeat(strings.Repeat("y", 60)+".", 3)+strings.Repeat("z", length-64-1-183))
	}
	b.Post(staff+"/accounts", email(255)).Want(201)
	b.Post(staff+"/accounts", email(256)).WantError(400, 2008)
	for _, lookalike := range []string{"jo@example\u3002test", "jo@example\uff0etest", "jo\uff20example.test",
		"j\u200bo@example.test", "jo@.test", "jo@test.",
		"\"j o\"@example.test", "jo@example.test,al@example.test", "j\u2003o@example.test", "j\u1680o@example.test",
		"@example.test",
		"jo:x@example.test", "jo(x)@example.test", "jo,al@example.test"} {
		b.Post(staff+"/accounts", fmt.Sprintf(`{"email":%q,"password":"Changeme1!"}`, lookalike)).WantError(400, 2006)
	}
	var odd string
	for _, email := range []string{"jo..doe@example.test", "jo.@example.test", ".jo@example.test",
		"jo@my_host.example.test",
		strings.Repeat("x", 68) + "@example.test", "x@example.123", "x@1.2.3.4", "jo@-a.test"} {
		made := b.Post(staff+"/accounts", fmt.Sprintf(`{"email":%q,"password":"Changeme1!"}`, email)).Want(201)
		if got := made.Object()["email"]; got != email {
			t.Errorf("%s became %v", email, got)
		}
		odd = made.Href()
	}
	b.Post(odd, `{"email":"a..b@example.test"}`).Want(200)
	b.Post(odd, `{"email":"a\u202fb@example.test"}`).WantError(400, 2006)
	// Three names of the longest characters are sorted by their beginning.
	long := strings.Repeat("\U0001d400", 255)
	b.Post(staff+"/accounts", account(fmt.Sprintf(`"givenName":%q,"middleName":%q,"surname":%q`, long, long, long))).
		Want(201)
}

func TestTheLocaleOfAnAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.directory("Staff") + "/accounts"
	jo := b.Post(accounts, `{"email":"jo@example.test","password":"Changeme1!","locale":"DE-at"}`).Want(201)
	if got := jo.Object()["locale"]; got != "de-AT" {
		t.Errorf("the locale DE-at became %v, want de-AT", got)
	}
	al := b.Post(accounts, `{"email":"al@example.test","password":"Changeme1!"}`).Want(201)
	if got, has := al.Object()["locale"]; got != nil || !has {
		t.Errorf("the locale of an account without one is %v, want null", got)
	}
	if got := b.found(accounts + "?locale=de-at"); got != "jo@example.test" {
		t.Errorf("the search for a locale finds %q, want jo@example.test", got)
	}
	if got := b.found(accounts + "?orderBy=locale"); got != "jo@example.test al@example.test" {
		t.Errorf("the accounts by their locales are %q, want the one without a locale last", got)
	}
	for _, bad := range []string{
		`""`, `"german"`, `"de_AT"`, `"de-DE-u-co-phonebk-attr-foo-bar-baz-qux"`, `"\u0064e\u0000"`,
	} {
		b.Post(jo.Href(), `{"locale":`+bad+`}`).WantError(400, 2006)
	}
	b.Post(jo.Href(), `{"locale":1}`).WantError(400, 2004)
	if got := b.Post(jo.Href(), `{"givenName":"Jo"}`).Want(200).Object()["locale"]; got != "de-AT" {
		t.Errorf("the locale after another change is %v, want de-AT", got)
	}
	if got := b.Post(jo.Href(), `{"locale":null}`).Want(200).Object()["locale"]; got != nil {
		t.Errorf("the locale after null is %v, want null", got)
	}
}

func TestUserNamesAndEmailsHaveOneForm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	b.Post(staff+"/accounts", `{"email":" Jos\u00e9@Example.test ","username":" \uff2a\uff4f ","password":"Changeme1!"}`).
		Want(201)
	for _, body := range []string{
		`{"email":"JOSE\u0301@EXAMPLE.TEST","password":"Changeme1!"}`,
		`{"email":"other@example.test","username":"jo","password":"Changeme1!"}`,
	} {
		b.Post(staff+"/accounts", body).WantError(409, 2001)
	}
	for _, query := range []string{"username=JO", "email=jos%C3%A9@example.test", "email=jose%CC%81*", "q=%EF%BC%AAo"} {
		if size := b.Get(staff + "/accounts?" + query).Want(200).Int("size"); size != 1 {
			t.Errorf("?%s finds %d accounts", query, size)
		}
	}
}

func TestAnAccountWithoutAUserNameHasItsEmail(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	made := b.Post(staff+"/accounts", `{"email":"jo@example.test","username":null,"password":"Changeme1!"}`).Want(201)
	if got := made.Text("username"); got != "jo@example.test" {
		t.Errorf("the user name is %q", got)
	}
	b.Post(made.Href(), `{"username":"jo"}`).Want(200)
	if got := b.Post(made.Href(), `{"username":null}`).Want(200).Text("username"); got != "jo@example.test" {
		t.Errorf("the user name is %q", got)
	}
}

// TestAClientMaySendBackWhatItRead posts whole representations, expanded or
// not, as some clients do.
func TestAClientMaySendBackWhatItRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for kind, address := range b.estate() {
		switch kind {
		// which cannot be updated
		case "groupMemberships", "accountLinks", "schemas", "samlServiceProviderMetadatas", "x509certificates":
			continue
		}
		before := b.Get(address).Want(200)
		after := b.Post(address, string(before.Body)).Want(200)
		was, is := before.Object(), after.Object()
		delete(was, "modifiedAt")
		delete(is, "modifiedAt")
		if !reflect.DeepEqual(was, is) {
			t.Errorf("%s became %v, was %v", address, is, was)
		}
	}
}

func TestAccountsOfAMirror(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	account := b.Post(staff+"/accounts", jo).Want(201)
	if _, err := pg.Exec(t.Context(), b.db,
		`UPDATE directories SET provider_id = 'ldap' WHERE name = 'Staff'`); err != nil {
		t.Fatal(err)
	}
	b.Post(staff+"/accounts", `{"email":"new@example.test","password":"Changeme1!"}`).WantError(400, 6100)
	for _, body := range []string{
		`{"username":"x"}`, `{"email":"x@example.test"}`, `{"password":"Changeme2!"}`, `{"givenName":"x"}`,
		`{"middleName":"x"}`, `{"surname":null}`,
		`{"emailVerificationStatus":"VERIFIED"}`,
	} {
		b.Post(account.Href(), body).WantError(400, 7202)
	}
	b.Post(account.Href(), `{"status":"DISABLED","givenName":"Jo","customData":{"colour":"red"}}`).Want(200).
		Golden("account_of_mirror")
	b.Delete(account.Href()).Want(204)
}

// TestARepresentationThatAClientHoldsIsNotSentAgain covers every resource: one
// handler sends them.
func TestARepresentationThatAClientHoldsIsNotSentAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	account := b.Post(b.directory("Staff")+"/accounts", jo).Want(201).Href()
	tag := b.Get(account).Want(200).Header.Get("ETag")
	for _, c := range []struct {
		known  string
		status int
	}{{tag, 304}, {`"x", ` + tag, 304}, {"*", 304}, {strings.TrimPrefix(tag, "W/"), 304}, {`W/"x"`, 200}, {"", 200}} {
		if answer := b.With("If-None-Match", c.known).Get(account).Want(c.status); c.status == 304 && len(answer.Body) > 0 {
			t.Errorf("a 304 has the body %s", answer.Body)
		}
	}
	b.Post(account, `{"givenName":"Joanna"}`).Want(200) // in the same millisecond
	b.With("If-None-Match", tag).Get(account).Want(200)
}

func TestAnAdministratorSaysOfAnEmailThatItIsVerified(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	made := b.Post(staff+"/accounts",
		`{"email":"a@example.test","password":"Changeme1!","emailVerificationStatus":"verified"}`).Want(201)
	if got := made.Text("emailVerificationStatus"); got != "VERIFIED" {
		t.Errorf("a new account has %q", got)
	}
	b.Post(creationPolicy(staff), `{"verificationEmailStatus":"ENABLED"}`).Want(200)
	made = b.Post(staff+"/accounts",
		`{"email":"b@example.test","password":"Changeme1!","emailVerificationStatus":"VERIFIED"}`).Want(201)
	if got := made.Text("status"); got != "ENABLED" || made.Object()["emailVerificationToken"] != nil {
		t.Errorf("an account that is verified already is %s: %s", got, made.Body)
	}
}

// LOCKED is set and taken back by an administrator alone.
func TestALockedAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	account := b.Post(staff+"/accounts", `{"email":"jo@example.test","password":"Changeme1!","status":"locked"}`).Want(201)
	login := func() error {
		ref := id.Ref{Tenant: b.signedUp.Tenant.ID}
		var err error
		if ref.ID, err = id.Parse(staff[strings.LastIndex(staff, "/")+1:]); err != nil {
			t.Fatal(err)
		}
		_, err = b.svc.Authenticate(t.Context(), directoryapi.Authenticate{
			Tenant: ref.Tenant, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: ref.ID}},
			Login: "jo@example.test", Password: "Changeme1!",
		})
		return err
	}
	if err := login(); !errors.Is(err, apierr.AccountLocked) {
		t.Errorf("a login to a locked account: %v", err)
	}
	if got := b.Get(staff + "/accounts?status=LOCKED").Want(200).Int("size"); got != 1 {
		t.Errorf("%d accounts are found as locked", got)
	}
	b.Post(account.Href(), `{"status":"ENABLED"}`).Want(200)
	if err := login(); err != nil {
		t.Errorf("a login after the lock: %v", err)
	}
}
