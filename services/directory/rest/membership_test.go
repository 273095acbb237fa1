package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/rest/resttest"
)

// members is the body that puts an account into a group.
func members(account, group string) string {
	return fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, account, group)
}

func TestMembership(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	editors, readers := b.group(staff, "Editors"), b.group(staff, "Readers")
	jo, al := b.member(staff, "jo@example.test"), b.member(staff, "al@example.test")
	made := b.Post("/v1/groupMemberships", members(jo, editors)).Want(201).Golden("membership_created")
	b.Get(made.Href()).Want(200).Golden("membership")
	b.clock.Move(time.Minute)
	b.Post("/v1/groupMemberships", members(al, editors)).Want(201)
	b.Post("/v1/groupMemberships", members(jo, readers)).Want(201)

	b.Get(jo + "/groupMemberships").Want(200).Golden("membership_list_account")
	b.Get(editors + "/accountMemberships?createdAt=2026-11-20T20:26&orderBy=modifiedAt%20desc").Want(200).
		Golden("membership_list_group")
	b.Get(jo + "/groups").Want(200).Golden("account_groups")
	b.Get(editors + "/accounts").Want(200).Golden("group_accounts")
	b.Get(editors+"/accountMemberships?name=x").WantError(400, 2105)
	for query, want := range map[string][]string{
		"": {"Editors", "Readers"}, "?orderBy=name+desc": {"Readers", "Editors"}, "?name=read*": {"Readers"},
		"?q=edit": {"Editors"}, "?status=disabled": {}, "?limit=1&offset=1": {"Readers"},
	} {
		if got := values(b.Get(jo+"/groups"+query).Want(200), "name"); !slices.Equal(got, want) {
			t.Errorf("groups%s are %v, want %v", query, got, want)
		}
	}

	for query, want := range map[string][]string{
		"": {"jo@example.test", "al@example.test"}, "?status=enabled": {"jo@example.test", "al@example.test"},
		"?status=DISABLED":                      {},
		"?status=enabled&orderBy=email&limit=1": {"al@example.test"}, "?q=jo&status=enabled": {"jo@example.test"},
	} {
		if got := values(b.Get(editors+"/accounts"+query).Want(200), "email"); !slices.Equal(got, want) {
			t.Errorf("accounts%s are %v, want %v", query, got, want)
		}
	}

	b.Post(made.Href(), `{}`).WantError(405, 1100)
	b.Get("/v1/groupMemberships").WantError(405, 1100)
	b.Delete(made.Href()).Want(204)
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404)
	b.Post("/v1/groupMemberships", members(jo, editors)).Want(201)
	b.Delete(jo).Want(204)
	if got := b.Get(editors + "/accountMemberships").Want(200).Int("size"); got != 1 {
		t.Errorf("the group has %d memberships after an account is deleted, want 1", got)
	}
}

func TestMembershipRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff, guests := b.directory("Staff"), b.directory("Guests")
	editors, others, jo := b.group(staff, "Editors"), b.group(guests, "Others"), b.member(staff, "jo@example.test")
	account, group := fmt.Sprintf(`"account":{"href":%q}`, jo), fmt.Sprintf(`"group":{"href":%q}`, editors)
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{}`, 400, 2000},
		{`{` + account + `}`, 400, 2000},
		{`{` + group + `}`, 400, 2000},
		{`{"account":null,` + group + `}`, 400, 2000},
		{`{"account":"` + jo + `",` + group + `}`, 400, 2004},
		{`{"account":{},` + group + `}`, 400, 2004},
		{`{"account":{"href":""},` + group + `}`, 400, 2014},
		{`{"account":{"href":"jo"},` + group + `}`, 400, 2014},
		{`{"account":{"href":"https://elsewhere.test/v1/accounts/1"},` + group + `}`, 400, 2014},
		{members(editors, editors), 400, 2014},
		{members(jo, jo), 400, 2014},
		{members(jo, staff), 400, 2014},
		{members(jo, others), 400, 2014},
		{members(b.unknown("accounts"), editors), 400, 2014},
		{members(jo, b.unknown("groups")), 400, 2014},
		{members(jo+"/groups", editors), 400, 2014},
		{members(jo, "https://localhost:8443/v1/groups/nothing"), 400, 2014},
		{members(strings.Replace(jo, "/accounts/", "/groups/", 1), editors), 400, 2014},
		{members(jo, strings.Replace(jo, "/accounts/", "/groups/", 1)), 400, 2014},
		{`{` + account + `,` + group + `,"role":"x"}`, 400, 2015},
		{`{`, 400, 2006},
	} {
		b.Post("/v1/groupMemberships", c.body).WantError(c.status, c.code)
	}
	if got := b.Get(jo + "/groups").Want(200).Int("size"); got != 0 {
		t.Fatalf("the account is in %d groups after the refusals", got)
	}
	b.Post("/v1/groupMemberships", members(jo, editors)).Want(201)
	b.Post("/v1/groupMemberships", members(jo, editors)).WantError(409, 2001).Golden("membership_taken")
	b.Get("/v1/groupMemberships/nothing").WantError(404, 404)
	for _, path := range []string{
		b.unknown("accounts") + "/groups", b.unknown("accounts") + "/groupMemberships",
		b.unknown("groups") + "/accountMemberships",
	} {
		b.Get(path).WantError(404, 404)
	}
}

func TestTheSameMembershipAtTheSameTimeIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	body := members(b.member(staff, "jo@example.test"), b.group(staff, "Editors"))
	count := parallel(50, func(int) resttest.Answer { return b.Post("/v1/groupMemberships", body) })
	if count[201] != 1 || count[409] != 49 {
		t.Fatalf("answers by status: %v; want one 201 and the rest 409", count)
	}
}

// A reference that goes while it is used is one that is not there.
func TestMembershipsOfAGroupThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	editors := b.group(staff, "Editors")
	var accounts []string
	for i := range 20 {
		accounts = append(accounts, b.member(staff, fmt.Sprintf("a%d@example.test", i)))
	}
	count := parallel(len(accounts)+1, func(i int) resttest.Answer {
		if i == len(accounts)/2 {
			return b.Delete(editors)
		}
		return b.Post("/v1/groupMemberships", members(accounts[min(i, len(accounts)-1)], editors))
	})
	if count[204] != 1 || count[201]+count[400]+count[409] != len(accounts) {
		t.Fatalf("answers by status: %v; want one 204, and 201, 400 or 409 otherwise", count)
	}
	b.Get(editors).WantError(404, 404)
}

func TestGroupsOfADirectoryThatIsDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	count := parallel(21, func(i int) resttest.Answer {
		if i == 10 {
			return b.Delete(staff)
		}
		return b.Post(staff+"/groups", fmt.Sprintf(`{"name":"G%d"}`, i))
	})
	if count[204] != 1 || count[201]+count[404] != 20 {
		t.Fatalf("answers by status: %v; want one 204, and 201 or 404 otherwise", count)
	}
}
