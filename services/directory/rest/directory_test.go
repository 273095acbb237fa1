package rest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

func TestDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.Post("/v1/directories",
		`{"name":" Staff ","description":"All staff","status":"disabled","href":"ignored","accounts":{"href":"x"}}`).Want(
		201).Golden("directory_created")
	b.clock.Move(time.Minute)
	b.Get(made.Href()).Want(200).Golden("directory")
	b.Post(made.Href(), `{"description":null,"status":"ENABLED"}`).Want(200).Golden("directory_updated")
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404).Golden("not_found")
	b.Delete(made.Href()).Want(204)
}

func TestDirectoryRefusals(t *testing.T) {
	t.Parallel()
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
		{`{"name":"a\u202eb"}`, 400, 2006},
		{`{"status":"PAUSED","description":1}`, 400, 2004},
		{`{"status":"PAUSED"}`, 400, 2000},
		{`{"name":"a\u0007b","status":"PAUSED"}`, 400, 2003},
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
	b.Send("POST", "/v1/directories", "application/json; charset=utf8", `{"name":"Another spelling"}`).Want(201)
	b.Post("/v1/directories", `{"name":"`+long+`"}`).Want(201)
	b.Post(staff, `{"name":"`+long+`"}`).WantError(409, 2001)
	administrators := base.To("directories", b.signedUp.Directory.ID)
	b.Delete(administrators).WantError(400, 400)
	b.Post(administrators, `{"status":"DISABLED"}`).WantError(400, 400)
	b.Post(administrators, `{"status":"ENABLED","description":"x"}`).Want(200)
	b.Get("/v1/directories/nothing").WantError(404, 404)
}

func TestDirectoriesAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for i, name := range []string{"Alpha", "beta", "Gamma"} {
		b.clock.Move(24 * time.Hour)
		b.Post("/v1/directories",
			fmt.Sprintf(`{"name":%q,"description":"The %d. one","status":%q}`, name, i+1,
				[]string{"ENABLED", "DISABLED"}[i%2])).Want(201)
	}
	for query, want := range map[string]string{
		"name=alpha":                            "Alpha",
		"name=*a":                               "Alpha beta Gamma",
		"name=*ET*":                             "beta",
		"description=the*":                      "Alpha beta Gamma",
		"description=*2.%20one":                 "beta",
		"q=3.":                                  "Gamma",
		"status=disabled":                       "beta",
		"createdAt=2026-11-22":                  "beta",
		"createdAt=[2026-11-22,]":               "beta Gamma",
		"name=*a&orderBy=name%20desc":           "Gamma beta Alpha",
		"name=*a&orderBy=status,name%20desc":    "beta Gamma Alpha",
		"name=*a&orderBy=createdAt%20desc":      "Gamma beta Alpha",
		"name=*a&orderBy=description%20desc":    "Gamma beta Alpha",
		"orderBy=modifiedAt%20desc&limit=1":     "Gamma",
		"name=*a&offset=1&limit=1&orderBy=name": "beta",
	} {
		var got []string
		for _, item := range b.Get(b.tenant() + "/directories?" + query).Want(200).Items() {
			got = append(got, item["name"].(string))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("?%s returns %v, want %s", query, got, want)
		}
	}
}

func TestADeletedDirectoryTakesAllWithIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	estate := b.estate()
	gone := []string{
		estate["directories"], estate["directories"] + "/customData", estate["groups"], estate["groups"] + "/customData",
		estate["accounts"],
		estate["accounts"] + "/customData", estate["groupMemberships"], estate["accountLinks"],
		estate["accountCreationPolicies"],
		estate["passwordPolicies"], estate["emailTemplates"], estate["schemas"], estate["fields"],
	}
	b.Post(estate["accounts"]+"/customData", `{"colour":"red"}`).Want(200)
	b.Delete(estate["directories"]).Want(204)
	for _, path := range gone {
		b.Get(path).WantError(404, 404)
	}
	for _, path := range []string{"/accounts?q=jo@", "/accounts?customData.colour=red", "/groups"} {
		if size := b.Get(b.tenant() + path).Want(200).Int("size"); size != 0 {
			t.Errorf("%s finds %d of the deleted directory", path, size)
		}
	}
	account := estate["accounts"][strings.LastIndex(estate["accounts"], "/")+1:]
	mailed, err := pg.Values[string](t.Context(),
		b.db, `SELECT convert_from(envelope, 'UTF8')::json->'data'->>'accounts' FROM outbox
		WHERE convert_from(envelope, 'UTF8')::json->>'type' = 'AccountsDeleted'`)
	if err != nil || len(mailed) != 1 || !strings.Contains(mailed[0], `"`+account+`"`) {
		t.Errorf("the others learn of the accounts %v, %v; want %s among them", mailed, err, account)
	}
	again := b.directory("Staff") // the name is free, and so are those inside
	b.Post(again+"/accounts", jo).Want(201)
	b.purge()
	for table, want := range map[string]int{
		"accounts": 3, "groups": 0, "group_memberships": 0, "account_links": 0, "account_values": 0, "custom_data": 0,
		"account_counts": 3,
	} {
		n, err := pg.Value[int](t.Context(), b.db, `SELECT count(*)::int FROM `+table)
		if err != nil || n != want {
			t.Errorf("%s has %d rows, %v; want %d", table, n, err, want)
		}
	}
}

// purge removes what deleted directories have left.
func (b *bench) purge() {
	b.Helper()
	b.clock.Move(2 * time.Minute) // until no account of it can come any more
	b.purgeUntilEmpty("directory_removals")
}

// purgeUntilEmpty lets the purge run until a table has no row.
func (b *bench) purgeUntilEmpty(table string) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	purged := make(chan error)
	go func() { purged <- b.svc.Purger(ctx) }()
	for {
		left, err := pg.Value[int](b.Context(), b.db, `SELECT count(*)::int FROM `+table)
		if err != nil {
			b.Fatal(err)
		}
		if left == 0 {
			break
		}
	}
	stop()
	if err := <-purged; err != nil {
		b.Fatal(err)
	}
}

func TestADeletedDirectoryDoesNotWaitForAnother(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, name := range []string{"First", "Second"} {
		directory := b.directory(name)
		b.group(directory, "Editors")
		b.Delete(directory).Want(204)
	}
	b.purgeUntilEmpty("groups") // though accounts of the first may come still
}

func TestAccountsThatComeWhileTheirDirectoryGoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	var group sync.WaitGroup
	statuses := make(chan int, 50)
	for n := range cap(statuses) {
		group.Go(func() {
			statuses <- b.Post(staff+"/accounts", fmt.Sprintf(`{"email":"a%d@example.test","password":"Changeme1!"}`, n)).Status
		})
		if n == 10 {
			group.Go(func() { b.Delete(staff).Want(204) })
		}
	}
	group.Wait()
	close(statuses)
	for status := range statuses {
		if status != 201 && status != 404 {
			t.Errorf("a creation answered %d", status)
		}
	}
	b.purge()
	if n, err := pg.Value[int](t.Context(), b.db, `SELECT count(*)::int FROM accounts`); n != 1 || err != nil {
		t.Errorf("%d accounts are left, %v; want the owner", n, err)
	}
}
