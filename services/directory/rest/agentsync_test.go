package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// finish does what the worker of the service does after a sync.
func (b *bench) finish() {
	b.Helper()
	if err := b.svc.FinishSyncs(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// accounts returns the accounts of the directory of an agent, "username status".
func (b *bench) accounts(agent string) string {
	b.Helper()
	var found []string
	for _, a := range b.Get(b.Get(agent).Href("directory") + "/accounts?orderBy=username").Want(200).Items() {
		found = append(found, fmt.Sprint(a["username"], " ", a["status"]))
	}
	return strings.Join(found, ", ")
}

// members returns the groups of the directory of an agent, "name: username …".
func (b *bench) members(agent string) string {
	b.Helper()
	var found []string
	for _, g := range b.Get(b.Get(agent).Href("directory") + "/groups").Want(200).Items() {
		names := []string{}
		for _, a := range b.Get(fmt.Sprint(g["href"], "/accounts?orderBy=username")).Want(200).Items() {
			names = append(names, fmt.Sprint(a["username"]))
		}
		found = append(found, fmt.Sprint(g["name"], ": ", strings.Join(names, " ")))
	}
	return strings.Join(found, ", ")
}

func (b *bench) sync(agent, body string) { b.Helper(); b.Post(agent+"/sync", body).Want(202) }

func (b *bench) want(what, got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %s\nwant %s", what, got, want)
	}
}

func person(external, more string) string {
	return fmt.Sprintf(`{"externalId":%q,"username":%q,"email":"%s@example.test"%s}`, external, external, external, more)
}

func TestASyncCopiesADirectoryServer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"syncId":"s1","accounts":[`+person("jo", `,"givenName":"Jo","middleName":null,"surname":"Döe"`)+`,`+
		person("al", `,"disabled":true`)+`]}`)
	b.want("before the last page", b.accounts(agent), "al DISABLED, jo ENABLED")
	b.sync(
		agent, `{"syncId":"s1","groups":[{"externalId":"g1","name":"Staff","description":"All","members":["jo","al","late"]},
		{"name":"Named","members":["jo"]}],"complete":true}`)
	b.finish()
	b.want("groups", b.members(agent), "Named: jo, Staff: al jo")
	b.want("status", b.Get(agent).Text("status"), "ONLINE")
	b.Get(agent).Want(200).Golden("agent_synchronized")
	b.Get(agent + "/refusals").Want(200).Golden("agent_refusals_none")

	b.sync(agent, `{"accounts":[`+person("late", ``)+`]}`)
	b.want("an account that a group has waited for", b.members(agent), "Named: jo, Staff: al jo late")
	b.want("search", fmt.Sprint(b.Get(b.Get(agent).Href("directory")+"/accounts?surname="+
		url.QueryEscape("döe")).Int("size")), "1")

	// The same again, but for one account, one group and one member: the account is absent and keeps its
	// group, the others go.
	b.sync(agent, `{"syncId":"s2","accounts":[`+person("jo", `,"surname":"New"`)+`,`+person("late", ``)+`],
		"groups":[{"externalId":"g1","name":"Crew","members":["jo"]}],"complete":true}`)
	b.finish()
	b.want("accounts", b.accounts(agent), "al DISABLED, jo ENABLED, late ENABLED")
	b.want("groups", b.members(agent), "Crew: al jo")

	b.sync(agent, `{"deletedAccounts":["late","never"],"deletedGroups":["g1"]}`)
	b.want("accounts", b.accounts(agent), "al DISABLED, jo ENABLED, late DISABLED")
	b.want("groups", b.members(agent), "")
}

func TestASyncReadsLoginNamesAsEveryDoorDoes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`]}`)
	b.sync(agent, `{"accounts":[{"externalId":"jo","username":"\u2003JO\n","email":" JO@example.test\n"},
		{"externalId":"al","username":" Jo ","email":"al@example.test"}]}`)
	b.want("accounts", b.accounts(agent), "JO ENABLED")
}

func TestASyncThatBrokeOffDeletesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("a", ``)+`,`+person("b", ``)+`,`+person("c", ``)+`],"complete":true}`)
	b.finish()
	b.sync(agent, `{"syncId":"broken","accounts":[`+person("a", ``)+`]}`)
	b.finish()
	b.want("after a part", b.accounts(agent), "a ENABLED, b ENABLED, c ENABLED")
	// Another begins and ends meanwhile; the first goes on and ends after it.
	b.sync(agent, `{"syncId":"other","accounts":[`+person("a", ``)+`,`+person("b", ``)+`,`+person("d", ``)+
		`],"complete":true}`)
	b.finish()
	b.want("after the other", b.accounts(agent), "a ENABLED, b ENABLED, c DISABLED, d ENABLED")
	b.sync(agent, `{"syncId":"broken","accounts":[`+person("b", ``)+`],"complete":true}`)
	b.finish()
	b.want("an entry that only the newer sync held", b.accounts(agent), "a ENABLED, b ENABLED, c DISABLED, d ENABLED")
}

func TestEntriesThatCannotBeTakenAreListed(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"syncId":"s","accounts":[`+person("jo", ``)+`,{"externalId":"nomail","username":"nomail"},
		{"externalId":"twin","username":"JO","email":"twin@example.test"},{"externalId":"thief","username":"x","email":"Jo@example.test"},
		{"externalId":"odd","email":"no address"},{"externalId":"hidden","username":"a\u200bb","email":"h@example.test"}],
		"groups":[{"externalId":"g1","name":"Staff","members":[]},{"externalId":"g2","name":"STAFF","members":[]},{"name":"","externalId":"g3"}],
		"complete":true}`)
	b.finish()
	b.want("accounts", b.accounts(agent), "jo ENABLED")
	b.Get(agent + "/refusals").Want(200).Golden("agent_refusals")
	b.want("refused", fmt.Sprint(b.Get(agent).Object()["lastSync"].(map[string]any)["refused"]), "7")
	if size := b.Get(agent + "/refusals?limit=2").Want(200).Int("size"); size != 7 {
		t.Errorf("%d refusals", size)
	}

	// What is repaired is taken, also when another gives the name up after it.
	b.sync(
		agent, `{"accounts":[{"externalId":"nomail","username":"nomail","email":"now@example.test"}],"deletedAccounts":["odd","hidden","thief"]}`)
	b.sync(agent, `{"accounts":[`+person("jo", `,"surname":"x"`)[:0]+
		`{"externalId":"jo","username":"joanna","email":"jo@example.test"}],"deletedGroups":["g2","g3"]}`)
	b.finish()
	b.want("accounts", b.accounts(agent), "JO ENABLED, joanna ENABLED, nomail ENABLED")
	b.want("refused", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "0")

	for body, code := range map[string]int{
		`{"accounts":{}}`: 2004, `{"mood":"good"}`: 2015,
		`{"accounts":[{"externalId":"x","mood":"good"}]}`: 2015, `{"syncId":"` + strings.Repeat("x", 101) + `"}`: 2008,
		`{"deletedAccounts":[` + strings.Repeat(`"x",`, 10000) + `"x"]}`: 2010,
		`{"deletedAccounts":["\u0000"]}`:                                 2006, `{"deletedGroups":["a\u0000"]}`: 2006,
	} {
		b.Post(agent+"/sync", body).WantError(400, code)
	}
	b.Post("/v1/agents/6ZmOHBdXeMz4fTfMHAdQ2Y/sync", `{}`).WantError(404, 404)
}

// An entry that no id identifies is left out and listed like any other that cannot be taken.
func TestEntriesWithoutAnIDAreListedAndTheOthersAreTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"syncId":"s","accounts":[`+
		person("jo", ``)+`,{"username":"x","email":"x@example.test"},{"username":"x","email":"x@example.test"},
		{"externalId":"","username":"z"},{"externalId":"`+
		strings.Repeat("x", 256)+`","username":"long"},{"externalId":"a\u0000","username":"nul"},
		{"email":"y@example.test"}],
		"groups":[{"description":"x"},{"name":"x","members":["a\u0000"]},{"name":"`+strings.Repeat("x", 1100)+`"},
			{"externalId":"g","name":"Staff","members":["jo"]}],"complete":true}`)
	b.finish()
	b.want("accounts", b.accounts(agent), "jo ENABLED")
	b.want("groups", b.members(agent), "Staff: jo")
	b.Get(agent + "/refusals?limit=100").Want(200).Golden("agent_refusals_unnamed")
	b.sync(agent, `{"syncId":"s2","accounts":[`+person("jo", ``)+
		`],"groups":[{"externalId":"g","name":"Staff","members":["jo"]}],"complete":true}`)
	b.finish()
	b.want("refused after a good sync", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "0")
}

func TestAnEntryThatCannotBeDecodedIsListedAndTheOthersAreTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("known", ``)+`,`+person("stays", ``)+`],
		"groups":[{"externalId":"kept","name":"Kept","members":["known"]}]}`)
	b.sync(agent, `{"syncId":"s","accounts":[`+person("jo", ``)+`,`+
		person("known", `,"disabled":true,"givenName":"a\u0000b"`)+`,
		`+person("stays", `,"middleName":"\u0000"`)+`,`+person("half", `,"surname":"\ud800"`)+`,
		`+person("long", `,"surname":"`+strings.Repeat("x", 256)+
		`"`)+`,{"externalId":"nul","username":"a\u0000b","email":"nul@example.test"}],
		"groups":[{"externalId":"g","name":"Staff","members":["jo"]},{"externalId":"nul","name":"a\u0000b"},
		{"externalId":"kept","name":"Kept","members":["a\u0000b"]},{"externalId":"half","name":"Half","description":"\udc00"}],
		"complete":true}`)
	b.finish()
	b.want("accounts", b.accounts(agent), "jo ENABLED, known DISABLED, stays ENABLED")
	b.want("groups", b.members(agent), "Kept: known, Staff: jo")
	b.Get(agent + "/refusals").Want(200).Golden("agent_refusals_undecoded")

	b.sync(agent, `{"syncId":"s2","accounts":[`+person("jo", ``)+`,`+person("nul", ``)+`],"complete":true}`)
	b.finish()
	b.want("repaired", b.accounts(agent), "jo ENABLED, known DISABLED, nul ENABLED, stays DISABLED")
	b.want("refused", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "0")
}

func TestNamesThatAreExchangedAreTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	named := func(external, name string) string {
		return fmt.Sprintf(`{"externalId":%q,"username":%q,"email":"%s@example.test"}`, external, name, external)
	}
	b.sync(agent, `{"accounts":[`+named("1", "a")+`,`+named("2", "b")+`,`+named("3", "c")+`],
		"groups":[{"externalId":"1","name":"a"},{"externalId":"2","name":"b"}]}`)
	b.sync(agent, `{"accounts":[`+named("1", "b")+`,`+named("2", "c")+`,`+named("3", "a")+`],
		"groups":[{"externalId":"1","name":"b"},{"externalId":"2","name":"a"}]}`)
	b.want("accounts", b.accounts(agent), "a ENABLED, b ENABLED, c ENABLED")
	b.want("refused", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "0")
	b.want("the email of a",
		fmt.Sprint(b.Get(b.Get(agent).Href("directory") + "/accounts?username=a").Items()[0]["email"]), "3@example.test")
	// One of a chain that cannot move holds up those behind it, and a name that an
	// account keeps is not taken from it.
	b.sync(agent, `{"accounts":[`+named("4", "b")+`,`+named("1", "c")+`,`+named("2", "b")+
		`,{"externalId":"3","username":"d","email":"none"}]}`)
	b.want("accounts", b.accounts(agent), "a ENABLED, b ENABLED, c ENABLED")
	b.want("refused", fmt.Sprint(b.Get(agent+"/refusals").Int("size")), "2")
}

func TestASyncDoesNotEnableWhatAnAdministratorDisabled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`]}`)
	account := b.Get(b.Get(agent).Href("directory") + "/accounts").Items()[0]["href"].(string)
	status := func(want string) { t.Helper(); b.want("status", b.Get(account).Text("status"), want) }
	source := func(disabled bool) {
		t.Helper()
		b.sync(agent, `{"accounts":[`+person("jo", fmt.Sprintf(`,"disabled":%t`, disabled))+`]}`)
	}
	administrator := func(status string) { t.Helper(); b.Post(account, `{"status":"`+status+`"}`).Want(200) }
	source(true)
	status("DISABLED")
	source(false)
	status("ENABLED")
	administrator("DISABLED")
	source(true)
	source(false)
	status("DISABLED")
	source(true)
	administrator("ENABLED") // not while the source has it disabled
	status("DISABLED")
	source(false)
	status("ENABLED")
	source(true)
	administrator("LOCKED")
	source(false)
	status("LOCKED")
	// An entry that is refused for its email disables its account all the same.
	administrator("ENABLED")
	b.sync(agent, `{"accounts":[{"externalId":"jo","email":"none","disabled":true}]}`)
	status("DISABLED")
	b.want("size of the enabled", fmt.Sprint(b.Get(b.Get(agent).Href("directory")+"/accounts?status=ENABLED").Int("size")),
		"0")
	b.want("size", fmt.Sprint(b.Get(b.Get(agent).Href("directory")+"/accounts").Int("size")), "1")
	b.Post(account, `{"surname":"x"}`).WantError(400, 7202)
	b.Post(account+"/customData", `{"floor":3}`).Want(200)
}

func TestALoginIsCheckedByTheAgent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	listen(t, b.db)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`,`+person("off", `,"disabled":true`)+`]}`)
	directory := b.Get(agent).Href("directory")
	for _, c := range []struct {
		login, answer string
		code          int
	}{
		{"jo", `{"result":"SUCCESS"}`, 0}, {"JO@example.test", `{"result":"success"}`, 0},
		{"jo", `{"result":"FAILURE"}`, 7100},
		{"jo", `{"result":"FAILURE","reason":"EXPIRED"}`, 7100}, {"jo", `{"result":"ERROR","code":9001}`, 9001},
		{"jo", `{"result":"ERROR","code":9003}`, 9003}, {"jo", `{"result":"ERROR","code":9006}`, 9006},
		{"off", `{"result":"SUCCESS"}`, 7101},
	} {
		done := b.login(directory, c.login, "a password")
		check := b.poll(agent)
		if check["password"] != "a password" ||
			check["username"] != strings.ToLower(strings.TrimSuffix(c.login, "@example.test")) ||
			check["externalId"] != check["username"] {
			t.Errorf("the agent gets %v", check)
		}
		b.want("a second agent gets", string(b.Get(agent+"/authentications").Want(200).Body), "[]")
		at := fmt.Sprint(agent, "/authentications/", check["id"])
		b.Post(at, c.answer).Want(204)
		b.Post(at, c.answer).WantError(404, 404)
		if code := <-done; code != c.code {
			t.Errorf("%s %s: %d, want %d", c.login, c.answer, code, c.code)
		}
	}
	if code := <-b.login(directory, "jo", ""); code != 7100 {
		t.Errorf("an empty password: %d", code)
	}
	var left int
	if err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM agent_checks WHERE password IS NOT NULL`).
		Scan(&left); err != nil || left != 0 {
		t.Errorf("%d passwords are left, %v", left, err)
	}
	for body, code := range map[string]int{
		`{}`: 2000, `{"result":"MAYBE"}`: 2003, `{"result":"ERROR"}`: 2000, `{"result":"ERROR","code":9000}`: 2009,
		`{"result":"ERROR","code":9007}`:        2010,
		`{"result":"FAILURE","reason":"BORED"}`: 2003, `{"result":"SUCCESS","mood":1}`: 2015,
	} {
		b.Post(agent+"/authentications/6ZmOHBdXeMz4fTfMHAdQ2Y", body).WantError(400, code)
	}
	b.Get(agent+"/authentications?wait=21").WantError(400, 2103)

	b.clock.Move(2*time.Minute + time.Second)
	if code := <-b.login(directory, "jo", "a password"); code != 9000 {
		t.Errorf("with an agent that is offline: %d", code)
	}
}

func TestACheckIsHandedOutAgainWhenItsAgentWentSilent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	listen(t, b.db)
	agent := b.agent("L", ldapProvider(``))
	b.sync(agent, `{"accounts":[`+person("jo", ``)+`]}`)
	done := b.login(b.Get(agent).Href("directory"), "jo", "a password")
	first := b.poll(agent)
	b.want("at once", string(b.Get(agent+"/authentications").Want(200).Body), "[]")
	b.clock.Move(7 * time.Second)
	second := b.poll(agent)
	if first["id"] != second["id"] {
		t.Errorf("%v and %v are handed out", first, second)
	}
	b.Post(fmt.Sprint(agent, "/authentications/", second["id"]), `{"result":"SUCCESS"}`).Want(204)
	if code := <-done; code != 0 {
		t.Errorf("the login ended with %d", code)
	}
}
