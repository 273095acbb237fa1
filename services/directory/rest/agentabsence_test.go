package rest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/pg"
)

// people are n entries of accounts of a sync, from a number on.
func people(from, n int) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = person(fmt.Sprintf("p%03d", from+i), "")
	}
	return strings.Join(entries, ",")
}

// complete sends a complete sync with n accounts and one group, and finishes it.
func (b *bench) complete(agent string, from, n int) {
	b.Helper()
	b.sync(agent, fmt.Sprintf(`{"accounts":[%s],"groups":[{"externalId":"g","name":"Staff"}],"complete":true}`,
		people(from, n)))
	b.finish()
	b.clock.Move(time.Second)
}

// statuses returns how many accounts of the directory of an agent are enabled, and how many there are.
func (b *bench) statuses(agent string) string {
	b.Helper()
	accounts := b.Get(agent).Href("directory") + "/accounts"
	return fmt.Sprintf("%d of %d", b.Get(accounts+"?status=ENABLED").Want(200).Int("size"),
		b.Get(accounts).Want(200).Int("size"))
}

// lastSync returns a number of the last sync of an agent.
func (b *bench) lastSync(agent, name string) string {
	b.Helper()
	return fmt.Sprint(b.Get(agent).Object()["lastSync"].(map[string]any)[name])
}

func TestAnAccountThatVanishesIsAbsentAndComesBackAsItself(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.complete(agent, 0, 3)
	account := b.Get(b.Get(agent).Href("directory") + "/accounts?username=p000").Items()[0]["href"].(string)
	if _, shown := b.Get(account).Object()["absentSince"]; shown {
		t.Error("absentSince is shown of an account that is there")
	}
	b.Post(account+"/customData", `{"floor":3}`).Want(200)
	b.complete(agent, 1, 2)
	b.Get(account).Want(200).Golden("account_absent")
	b.want("absent", b.lastSync(agent, "absent"), "1")
	b.want("accounts", b.lastSync(agent, "accounts"), "3")
	b.Post(account, `{"status":"ENABLED"}`).Want(200)
	b.want("an absent account that an administrator enables", b.Get(account).Text("status"), "DISABLED")
	b.complete(agent, 1, 2)
	b.want("absent", b.lastSync(agent, "absent"), "1")

	b.clock.Move(29 * 24 * time.Hour)
	if err := b.svc.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.complete(agent, 0, 3)
	b.want("the status when it is back", b.Get(account).Want(200).Text("status"), "ENABLED")
	b.want("what hangs on it", fmt.Sprint(b.Get(account + "/customData").Object()["floor"]), "3")
	if _, shown := b.Get(account).Object()["absentSince"]; shown {
		t.Error("absentSince is shown of an account that is back")
	}
	b.want("absent", b.lastSync(agent, "absent"), "0")

	// An entry that cannot be taken is there all the same.
	b.complete(agent, 1, 2)
	b.sync(agent, `{"accounts":[{"externalId":"p000","email":"none"}]}`)
	b.want("the status with a refused entry", b.Get(account).Text("status"), "ENABLED")
}

func TestAnAbsentAccountIsDeletedAfterItsRetention(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	deleted := func() int64 {
		t.Helper()
		n, err := pg.Value[int64](t.Context(), b.db, `SELECT count(*) FROM outbox
			WHERE convert_from(envelope, 'UTF8')::json->>'type' = 'AccountsDeleted'`)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	purge := func(after time.Duration) {
		t.Helper()
		b.clock.Move(after)
		if err := b.svc.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.complete(agent, 0, 4)
	b.complete(agent, 1, 3)
	purge(30*24*time.Hour - 2*time.Second) // complete has moved the clock by a second
	b.want("before", b.statuses(agent), "3 of 4")
	purge(time.Second)
	b.want("after thirty days", b.statuses(agent), "3 of 3")
	if n := deleted(); n != 1 {
		t.Errorf("%d events say that accounts were deleted, want 1", n)
	}

	b.Post(agent, `{"config":{"absentRetention":"PT0S"}}`).Want(200)
	b.complete(agent, 2, 2)
	b.want("with a retention of zero", b.statuses(agent), "2 of 2")
	b.sync(agent, `{"deletedAccounts":["p002"]}`)
	b.want("with a retention of zero, named as deleted", b.statuses(agent), "1 of 1")
	if n := deleted(); n != 3 {
		t.Errorf("%d events say that accounts were deleted, want 3", n)
	}
}

func TestANameIsTakenFromAnAbsentAccount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.complete(agent, 0, 3)
	first := b.Get(b.Get(agent).Href("directory") + "/accounts?username=p000").Items()[0]["href"]
	// Its successor comes in the sync in which it goes, and is taken when that ends.
	b.sync(agent, `{"accounts":[`+people(1, 2)+
		`,{"externalId":"new","username":"P000","email":"p000@example.test"}],"complete":true}`)
	b.finish()
	b.want("refused", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "0")
	found := b.Get(b.Get(agent).Href("directory") + "/accounts?username=p000").Items()
	if len(found) != 1 || found[0]["href"] == first || found[0]["status"] != "ENABLED" {
		t.Errorf("the name leads to %v", found)
	}
	b.want("accounts", b.statuses(agent), "3 of 4")
}

// The groups that come with a sync do not lose the members that have vanished, whether the sync is
// held or makes them absent. A member that is there and is not stated any more is removed, also where
// the page of its group came first.
func TestMembershipsStayWhileTheirAccountsAreAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	syncs := 0
	sync := func(n int, members string) {
		t.Helper()
		syncs++
		b.sync(agent, fmt.Sprintf(`{"syncId":"%d","groups":[{"externalId":"g","name":"Staff","members":[%s]}]}`, syncs,
			members))
		b.sync(agent, fmt.Sprintf(`{"syncId":"%d","accounts":[%s],"complete":true}`, syncs, people(0, n)))
		b.finish()
		b.clock.Move(time.Second)
	}
	sync(4, `"p000","p001","p003"`)
	b.want("members", b.members(agent), "Staff: p000 p001 p003")
	sync(3, `"p000"`)
	b.want("one is absent, one was removed", b.members(agent), "Staff: p000 p003")
	sync(4, `"p000","p003"`)
	b.want("it is back", b.members(agent), "Staff: p000 p003")
	sync(4, `"p000"`)
	b.want("it was removed", b.members(agent), "Staff: p000")

	sync(4, `"p000","p001"`)
	b.Post(agent, `{"config":{"maxAbsent":0}}`).Want(200)
	b.sync(agent, `{"syncId":"held","groups":[{"externalId":"g","name":"Staff","members":["p000"]}]}`)
	b.Post(agent+"/sync", fmt.Sprintf(`{"syncId":"held","accounts":[%s],"complete":true}`, people(0, 1))).
		WantError(409, 9007)
	b.finish()
	b.want("members after a held sync", b.members(agent), "Staff: p000 p001")
}

func TestTheBrakeHoldsASyncThatWouldMakeTooManyAbsent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.complete(agent, 0, 150)
	narrowed := fmt.Sprintf(`{"syncId":"n","accounts":[%s],"complete":true}`, people(0, 134))
	b.Post(agent+"/sync", narrowed).WantError(409, 9007)
	b.finish()
	b.want("accounts of a held sync", b.statuses(agent), "150 of 150")
	b.want("groups of a held sync", b.members(agent), "Staff: ")
	b.Get(agent).Want(200).Golden("agent_held")
	b.Post(agent+"/sync", narrowed).WantError(409, 9007)

	// Ten percent may go, and those that are absent already do not count.
	b.complete(agent, 0, 135)
	b.want("accounts", b.statuses(agent), "135 of 150")
	b.want("held", b.lastSync(agent, "held"), "0")
	b.complete(agent, 0, 122)
	b.want("accounts", b.statuses(agent), "122 of 150")

	// What comes in the same sync does not raise the share.
	b.Post(agent+"/sync", fmt.Sprintf(`{"syncId":"m","accounts":[%s]}`, people(1000, 150))).Want(202)
	b.Post(agent+"/sync", fmt.Sprintf(`{"syncId":"m","accounts":[%s],"complete":true}`, people(0, 109))).
		WantError(409, 9007)
	b.finish()
	b.want("held", b.lastSync(agent, "held"), "13")

	// A confirmation is used up by the next complete sync, and ends after an hour.
	confirm := func() { t.Helper(); b.Post(agent, `{"confirmAbsent":true}`).Want(200) }
	confirm()
	b.clock.Move(time.Hour)
	b.Post(agent+"/sync", fmt.Sprintf(`{"accounts":[%s],"complete":true}`, people(0, 1))).WantError(409, 9007)
	confirm()
	b.Post(agent, `{"confirmAbsent":false}`).Want(200)
	b.Post(agent+"/sync", fmt.Sprintf(`{"accounts":[%s],"complete":true}`, people(0, 1))).WantError(409, 9007)
	confirm()
	b.complete(agent, 0, 50)
	b.want("confirmed", b.statuses(agent), "50 of 300")
	b.Post(agent+"/sync", fmt.Sprintf(`{"accounts":[%s],"complete":true}`, people(0, 30))).WantError(409, 9007)

	// A number counts as it is, and no share empties a directory.
	b.Post(agent, `{"config":{"maxAbsent":2}}`).Want(200)
	b.Post(agent+"/sync", fmt.Sprintf(`{"accounts":[%s],"complete":true}`, people(0, 47))).WantError(409, 9007)
	b.complete(agent, 0, 48)
	b.Post(agent, `{"config":{"maxAbsent":"100%"}}`).Want(200)
	b.Post(agent+"/sync", `{"accounts":[],"complete":true}`).WantError(409, 9007)
	b.Post(agent+"/sync", `{"accounts":[{"externalId":"x"},{"email":"x@example.test"}],"complete":true}`).
		WantError(409, 9007)
	b.complete(agent, 0, 1)
	b.want("all but one", b.statuses(agent), "1 of 300")
	confirm()
	b.sync(agent, `{"complete":true}`)
	b.finish()
	b.want("all, confirmed", b.statuses(agent), "0 of 300")
	b.complete(agent, 0, 150)
	b.want("back", b.statuses(agent), "150 of 300")
}

// An agent that names deleted accounts page by page does not get around the brake.
func TestTheBrakeCountsDeletionsOfSeveralPages(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.complete(agent, 0, 30)
	name := func(from, to int) string {
		var ids []string
		for i := from; i < to; i++ {
			ids = append(ids, fmt.Sprintf("%q", fmt.Sprintf("p%03d", i)))
		}
		return `{"deletedAccounts":[` + strings.Join(ids, ",") + `],"deletedGroups":["g"]}`
	}
	b.sync(agent, name(0, 6))
	b.sync(agent, name(0, 10))
	b.Post(agent+"/sync", name(10, 11)).WantError(409, 9007)
	b.want("accounts", b.statuses(agent), "20 of 30")
	b.want("held", b.lastSync(agent, "held"), "1")
	b.complete(agent, 10, 20)
	b.want("held after a complete sync", b.lastSync(agent, "held"), "0")
	b.sync(agent, name(10, 20))
	b.Post(agent+"/sync", name(20, 30)).WantError(409, 9007)
	b.want("accounts", b.statuses(agent), "10 of 30")
}

func TestTheLimitsOfAbsenceAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	for config, code := range map[string]int{
		`{"absentRetention":"30"}`: 2006, `{"absentRetention":""}`: 2000, `{"absentRetention":5}`: 2004,
		`{"absentRetention":"P11Y"}`: 2010,
		`{"maxAbsent":"ten"}`:        2006, `{"maxAbsent":"-1"}`: 2006, `{"maxAbsent":-1}`: 2006, `{"maxAbsent":1.5}`: 2006,
		`{"maxAbsent":"%"}`:    2006,
		`{"maxAbsent":"101%"}`: 2010, `{"maxAbsent":2000000000}`: 2010, `{"maxAbsent":{}}`: 2004, `{"maxAbsent":true}`: 2004,
		`{"maxAbsent":""}`: 2006,
	} {
		b.Post(agent, `{"config":`+config+`}`).WantError(400, code)
	}
	b.Post(agent, `{"confirmAbsent":"perhaps"}`).WantError(400, 2004)
	config := func(name string) string { return fmt.Sprint(b.Get(agent).Object()["config"].(map[string]any)[name]) }
	b.want("maxAbsent", config("maxAbsent"), "10%")
	for sent, want := range map[string]string{`7`: "7", `"8"`: "8", `"5%"`: "5%", `0`: "0", `"0%"`: "0%", `null`: "10%"} {
		b.Post(agent, `{"config":{"maxAbsent":`+sent+`,"absentRetention":null}}`).Want(200)
		b.want("maxAbsent "+sent, config("maxAbsent"), want)
	}
	b.want("absentRetention", config("absentRetention"), "P30D")
}
