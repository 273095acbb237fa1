package rest_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest/resttest"
)

// logsIn reports whether a login name leads to an account of a directory with the password of the tests.
func (b *bench) logsIn(directory, login string) string {
	b.Helper()
	at, _ := base.Parse(directory)
	found, err := b.svc.Authenticate(b.Context(), directoryapi.Authenticate{
		Tenant: b.signedUp.Tenant.ID, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: at.ID}}, Login: login,
		Password: "Changeme1!",
	})
	if err != nil {
		return ""
	}
	return base.To("accounts", found.Account.ID)
}

// wantMembers checks members of an answer, given as names and values in turn.
func wantMembers(b *bench, a resttest.Answer, members ...any) resttest.Answer {
	b.Helper()
	for i := 0; i < len(members); i += 2 {
		if got := a.Object()[members[i].(string)]; got != members[i+1] {
			b.Errorf("%v is %#v, want %#v", members[i], got, members[i+1])
		}
	}
	return a
}

func TestAUserNameThatCopiesTheEmailFollowsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	create := func(body string) string { return b.Post(staff+"/accounts", body).Want(201).Href() }
	jo := create(`{"email":"jo@example.test","password":"Changeme1!"}`)
	wantMembers(b, b.Post(jo, `{"email":"jo@new.test"}`).Want(200), "username", "jo@new.test")
	if b.logsIn(staff, "jo@example.test") != "" || b.logsIn(staff, "jo@new.test") != jo {
		t.Error("the former email of an account leads to it")
	}
	next := create(`{"email":"jo@example.test","password":"Changeme1!"}`)
	if b.logsIn(staff, "jo@example.test") != next {
		t.Error("the former email does not lead to its next owner")
	}
	wantMembers(b, b.Post(jo, `{"email":"jo@newer.test","username":"jo@new.test"}`).Want(200), "username", "jo@newer.test")
	wantMembers(b, b.Post(jo, `{"username":"jo@new.test"}`).Want(200), "username", "jo@new.test")
	wantMembers(b, b.Post(jo, `{"email":"jo@newest.test"}`).Want(200), "username", "jo@new.test")
	wantMembers(b, b.Post(jo, `{"username":""}`).Want(200), "username", "jo@newest.test")
	al := create(`{"email":"al@example.test","username":"al","password":"Changeme1!"}`)
	wantMembers(b, b.Post(al, `{"email":"al@new.test"}`).Want(200), "username", "al")
	b.Post(al, `{"email":"jo@newest.test"}`).WantError(409, 2001)
}

func TestOneLoginNameHasOneForm(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	x := wantMembers(b, b.Post(staff+"/accounts",
		`{"email":" x@m\u00fcnchen.test\n","username":"\u3000Jo\u00a0","password":"Changeme1!"}`).Want(201), "email", "x@m\u00fcnchen.test", "username", "Jo").Href()
	for _, same := range []string{
		"x@m\u00fcnchen.test", "X@XN--MNCHEN-3YA.test", "x@xn--mnchen-3ya.test ", "\tx@mu\u0308nchen.test\r\n", "jo",
		" JO\u2003", "jo\n",
	} {
		if b.logsIn(staff, same) != x {
			t.Errorf("the login name %+q does not lead to the account", same)
		}
		attribute := "username"
		if strings.Contains(same, "@") {
			attribute = "email"
		}
		if size := b.Get(staff + "/accounts?" + attribute + "=" + url.QueryEscape(same)).Want(200).Int("size"); size != 1 {
			t.Errorf("%s=%+q finds %d accounts", attribute, same, size)
		}
	}
	for _, clash := range []string{
		`"email":"x@xn--mnchen-3ya.test"`, `"email":"new@example.test","username":"X@xn--mnchen-3ya.test"`,
	} {
		b.Post(staff+"/accounts", `{`+clash+`,"password":"Changeme1!"}`).WantError(409, 2001)
	}
}

func TestBlankAndUnknownMembersOfANewAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	jo := wantMembers(b, b.Post(staff+
		"/accounts", `{"email":"jo@example.test","password":"Changeme1!","username":"","givenName":" ","middleName":"","surname":"\t",
		"confirmPassword":"Changeme1!","organizationNameKey":null,"newsletter":{"weekly":true}}`).Want(201), "username", "jo@example.test", "givenName", nil, "middleName", nil, "surname", nil).Href()
	b.Post(jo, `{"username":"jo","givenName":"Jo","middleName":"X","surname":"Doe"}`).Want(200)
	wantMembers(b, b.Post(jo, `{"username":" ","givenName":"","middleName":" ","surname":""}`).Want(200), "username",
		"jo@example.test", "givenName", nil, "middleName", nil, "surname", nil)
	b.Post(jo, `{"confirmPassword":"x"}`).WantError(400, 2015)
}

// An upgrade that makes a rule stricter does not lock out a client that posts back what it has read.
func TestAValueThatIsPostedBackIsNotValidatedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	group := b.Post(staff+"/groups", `{"name":"Editors"}`).Want(201).Href()
	jo := b.Post(staff+"/accounts", `{"email":"jo@example.test","username":"jo","password":"Changeme1!"}`).Want(201).Href()
	for address, change := range map[string]string{
		staff: `UPDATE directories SET name = E'Sta\u200Bff'`, group: `UPDATE groups SET name = E'Edi\u200Ctors'`,
		jo: `UPDATE accounts SET username = 'corp:jo', email = 'jo@[127.0.0.1]'`,
	} {
		at, _ := base.Parse(address)
		if _, err := pg.Exec(t.Context(), b.db, change+` WHERE tenant_id = $1 AND id = $2`, b.signedUp.Tenant.ID,
			at.ID); err != nil {
			t.Fatal(err)
		}
	}
	for address, body := range map[string]string{
		staff: `{"name":"Sta\u200bff","description":"x"}`, group: `{"name":"Edi\u200ctors","description":"x"}`,
		jo: `{"username":"corp:jo","email":"jo@[127.0.0.1]","surname":"Doe"}`,
	} {
		b.Post(address, body).Want(200)
	}
	b.Post(staff, `{"name":"Staf\u200bf"}`).WantError(400, 2006)
	b.Post(group, `{"name":"Edit\u200cors"}`).WantError(400, 2006)
	b.Post(jo, `{"username":"corp:al"}`).WantError(400, 2006)
	b.Post(staff+"/groups", `{"name":"\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"}`).Want(201)
	b.Post(staff+"/groups", `{"name":"\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"}`).WantError(409, 2001)
}

func TestSearchesOfNamesWithAccentsAndPlusSigns(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Zo\u00eb's staff")
	b.Post(staff+"/accounts",
		`{"email":"jo+tag@x.test","username":"jo doe","givenName":"Zo\u00eb","password":"Changeme1!"}`).Want(201)
	b.Post(staff+"/accounts",
		`{"email":"al@xn--mnchen-3ya.test","username":"al+one","givenName":"Zoe","password":"Changeme1!"}`).Want(201)
	b.Post(staff+"/groups", `{"name":"Caf\u00e9"}`).Want(201)
	for search, want := range map[string]int{
		"/accounts?q=zoe": 2, "/accounts?q=ZO%C3%8B": 2, "/accounts?givenName=zoe": 1, "/accounts?givenName=zo%C3%AB": 1,
		"/accounts?givenName=*o%C3%AB":  1,
		"/accounts?email=jo+tag@x.test": 1, "/accounts?email=jo%2Btag@x.test": 1, "/accounts?email=jo+t*": 1,
		"/accounts?email=jo%20tag@x.test": 0,
		"/accounts?username=jo+doe":       1, "/accounts?username=jo%20doe": 1, "/accounts?username=al+one": 1,
		"/accounts?username=jo%2Bdoe":          0,
		"/accounts?email=al@m%C3%BCnchen.test": 1, "/accounts?email=*m%C3%BCn*": 1, "/accounts?q=munchen": 1,
		"/accounts?q=xn--mnchen":                1,
		"/accounts?email=*@xn--mnchen-3ya.test": 1, "/accounts?email=al@xn--mnchen-3ya.test%0A": 1,
		"/groups?q=cafe": 1, "/groups?name=cafe": 0,
	} {
		if got := b.Get(staff + search).Want(200).Int("size"); got != want {
			t.Errorf("%s finds %d, want %d", search, got, want)
		}
	}
	b.Get(staff+"/accounts?createdAt=[2015,2015-01-12T12:30:05%2B25:00]").WantError(400, 2103)
}
