package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest/resttest"
)

// group makes a group in a directory, later than all before it, and returns its
// address.
func (b *bench) group(directory, name string) string {
	b.Helper()
	b.clock.Move(time.Millisecond)
	return b.Post(directory+"/groups", fmt.Sprintf(`{"name":%q}`, name)).Want(201).Href()
}

// member makes an account in a directory, later than all before it, and returns
// its address.
func (b *bench) member(directory, email string) string {
	b.Helper()
	b.clock.Move(time.Millisecond)
	return b.Post(directory+"/accounts", fmt.Sprintf(`{"email":%q,"password":"Changeme1!"}`, email)).Want(201).Href()
}

// mirrored lets a directory be the mirror of one elsewhere.
func (b *bench) mirrored(directory string) {
	b.Helper()
	ref, ok := base.Parse(directory)
	if !ok {
		b.Fatalf("%s is no directory", directory)
	}
	if err := pg.MustChange(b.Context(), b.db,
		`UPDATE directories SET provider_id = 'ldap' WHERE tenant_id = $1 AND id = $2`, b.signedUp.Tenant.ID,
		ref.ID); err != nil {
		b.Fatal(err)
	}
}

// parallel sends as many requests at the same time and counts the answers by
// their status.
func parallel(times int, send func(i int) resttest.Answer) map[int]int {
	var group sync.WaitGroup
	statuses := make(chan int, times)
	for i := range times {
		group.Go(func() { statuses <- send(i).Status })
	}
	group.Wait()
	close(statuses)
	count := map[int]int{}
	for status := range statuses {
		count[status]++
	}
	return count
}

// values returns a member of each item of a collection.
func values(a resttest.Answer, name string) []string {
	found := []string{}
	items, _ := a.Object()["items"].([]any)
	for _, item := range items {
		text, _ := item.(map[string]any)[name].(string)
		found = append(found, text)
	}
	return found
}

// unknown is the address of a resource that never was.
func (b *bench) unknown(kind string) string { return base.To(kind, id.New(b.clock.Now())) }

func TestGroup(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	made := b.Post(staff+"/groups",
		`{"name":" Editors ","description":"They edit","status":"disabled","customData":{"colour":"red"},"href":"ignored","accounts":{"href":"x"}}`).
		Want(201).Golden("group_created")
	b.clock.Move(time.Minute)
	b.Get(made.Href()).Want(200).Golden("group")
	updated := b.Post(made.Href(), `{"description":null,"status":"ENABLED"}`).Want(200).Golden("group_updated")
	if updated.Text("createdAt") != "2026-11-20T20:25:00.000Z" ||
		updated.Text("modifiedAt") != "2026-11-20T20:26:00.000Z" {
		t.Errorf("the group was made at %s and changed at %s", updated.Text("createdAt"), updated.Text("modifiedAt"))
	}
	b.Post(made.Href(), `{"name":"EDITORS"}`).Want(200)
	b.Post(made.Href(), string(b.Get(made.Href()).Body)).Want(200) // as some clients do
	b.Get(staff + "/groups").Want(200).Golden("group_list")
	b.Get(b.tenant() + "/groups?name=edi*").Want(200).Golden("group_list_tenant")
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404)
	b.Delete(made.Href()).Want(204)
	b.Post(made.Href(), `{"name":"Editors"}`).WantError(404, 404)
}

func TestGroupRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	editors := b.group(staff, "Editors")
	long := strings.Repeat("ä", 255)
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{}`, 400, 2000},
		{`{"name":null}`, 400, 2000},
		{`{"name":"a\u200bb"}`, 400, 2006},
		{`{"name":"a\u200bb","status":"PAUSED"}`, 400, 2003},
		{`{"name":" "}`, 400, 2000},
		{`{"name":1}`, 400, 2004},
		{`{"name":"` + long + `x"}`, 400, 2008},
		{`{"name":"G","description":"` + strings.Repeat("ä", 1001) + `"}`, 400, 2008},
		{`{"name":"G","status":"UNVERIFIED"}`, 400, 2003},
		{`{"name":"G","status":""}`, 400, 2000},
		{`{"name":"G","customData":"red"}`, 400, 2006},
		{`{"name":"G","colour":"red"}`, 400, 2015},
		{`{"name":"ＥＤＩＴＯＲＳ"}`, 409, 2001},
		{`["name"]`, 400, 2006},
	} {
		b.Post(staff+"/groups", c.body).WantError(c.status, c.code)
	}
	b.Post(staff+"/groups", `{"name":"editors"}`).WantError(409, 2001).Golden("group_taken")
	full := b.Post(staff+"/groups", `{"name":"`+long+`","description":"`+strings.Repeat("ä", 1000)+`"}`).Want(201).Href()
	b.Post(full, `{"name":"editors"}`).WantError(409, 2001)
	b.Post(full, `{"name":null}`).WantError(400, 2000)
	b.Post(full, `{"description":""}`).Want(200)
	b.Post(editors, `{"status":"paused"}`).WantError(400, 2003)
	b.Post(b.unknown("directories")+"/groups", `{"name":"G"}`).WantError(404, 404)
	b.Post("/v1/directories/nothing/groups", `{"name":"G"}`).WantError(404, 404)
	b.Get("/v1/groups/nothing").WantError(404, 404)
	b.Send("PUT", editors, "application/json", `{}`).WantError(405, 1100)
	if got := b.Get(staff + "/groups").Int("size"); got != 2 {
		t.Errorf("the directory has %d groups after the refusals, want 2", got)
	}
	b.group(b.directory("Guests"), "Editors")
}

// Text at its limit has a normal form of many bytes, which no index may refuse.
func TestGroupsOfLongText(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	var name, description strings.Builder
	for i := range 255 {
		name.WriteRune(rune(0x20000 + i*131)) // four bytes each, and nothing to compress
	}
	for i := range 1000 {
		description.WriteRune(rune(0x20000 + i*37))
	}
	b.Post(staff+"/groups", fmt.Sprintf(`{"name":%q,"description":%q}`, name.String(), description.String())).Want(201)
	b.Post(staff+"/groups", fmt.Sprintf(`{"name":%q}`, strings.Repeat("ﷺﷻ﷽", 85))).Want(201) // each is up to 20 letters
	b.Get(staff + "/groups?orderBy=description,name").Want(200)
}

func TestTheSameGroupAtTheSameTimeIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	count := parallel(50, func(int) resttest.Answer { return b.Post(staff+"/groups", `{"name":"Editors"}`) })
	if count[201] != 1 || count[409] != 49 {
		t.Fatalf("answers by status: %v; want one 201 and the rest 409", count)
	}
}

func TestGroupsAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	for i, body := range []string{
		`{"name":"Writers","description":"Write_100%"}`, `{"name":"editors","description":"read"}`,
		`{"name":"Readers","status":"DISABLED"}`,
	} {
		b.clock.Move(time.Duration(i) * time.Minute)
		b.Post(staff+"/groups", body).Want(201)
	}
	b.Post(b.directory("Sent")+"/groups", `{"name":"Named","nameKey":"x"}`).Want(201) // which is ignored
	b.group(b.directory("Guests"), "Others")
	later := url.QueryEscape("[2026-11-20T20:26,]")
	for query, want := range map[string][]string{
		"":                              {"editors", "Readers", "Writers"},
		"name=EDITORS":                  {"editors"},
		"name=*ers":                     {"Readers", "Writers"},
		"name=*e*&status=disabled":      {"Readers"},
		"description=*e_1*":             {"Writers"},
		"description=*":                 {"editors", "Writers"},
		"q=read":                        {"editors", "Readers"},
		"q=100%25":                      {"Writers"},
		"createdAt=" + later:            {"editors", "Readers"},
		"modifiedAt=2026-11-20T20:25":   {"Writers"},
		"orderBy=name":                  {"editors", "Readers", "Writers"},
		"orderBy=name+desc":             {"Writers", "Readers", "editors"},
		"orderBy=status,name":           {"Readers", "editors", "Writers"},
		"orderBy=createdAt+desc":        {"Readers", "editors", "Writers"},
		"orderBy=name&offset=1&limit=1": {"Readers"},
		"offset=3":                      {},
	} {
		if got := values(b.Get(staff+"/groups?"+query).Want(200), "name"); !slices.Equal(got, want) {
			t.Errorf("?%s returns %v, want %v", query, got, want)
		}
	}
	for query, code := range map[string]int{
		"colour=red": 2105, "status=paused": 2105, "name=a&name=b": 2102, "name": 2101, "limit=0": 2103,
		"orderBy=colour": 2106, "orderBy=name+up": 2104, "createdAt=soon": 2103, "directory=x": 2105,
	} {
		b.Get(staff+"/groups?"+query).WantError(400, code)
	}
}

func TestGroupsOfAMirrorDirectory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	editors := b.Post(staff+"/groups", `{"name":"Editors","description":"They edit"}`).Want(201).Href()
	jo, al := b.member(staff, "jo@example.test"), b.member(staff, "al@example.test")
	membership := b.Post("/v1/groupMemberships", members(jo, editors)).Want(201).Href()
	b.mirrored(staff)
	b.Post(staff+"/groups", `{"name":"Readers"}`).WantError(400, 6100).Golden("group_in_mirror")
	b.Post(editors, `{"name":"editors"}`).WantError(400, 7202)
	b.Post(editors, `{"description":"Others"}`).WantError(400, 7202)
	b.Post(editors, `{"description":null}`).WantError(400, 7202)
	b.Post(editors, `{"name":"Editors","description":"They edit","status":"DISABLED","customData":{"colour":"red"}}`).
		Want(200).Golden("group_mirrored")
	b.Post("/v1/groupMemberships", members(al, editors)).WantError(400, 7202)
	b.Delete(membership).WantError(400, 7202)
	b.Get(membership).Want(200)
	b.Delete(editors).Want(204)
}

func TestADeletedGroupKeepsItsAccounts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	editors, jo := b.group(staff, "Editors"), b.member(staff, "jo@example.test")
	membership := b.Post("/v1/groupMemberships", members(jo, editors)).Want(201).Href()
	b.Delete(editors).Want(204)
	b.Get(membership).WantError(404, 404)
	b.Get(jo).Want(200)
	event, err := pg.Value[string](b.Context(), b.db,
		`SELECT convert_from(envelope, 'UTF8')::json->>'type' FROM outbox ORDER BY seq DESC LIMIT 1`)
	if err != nil || event != "GroupDeleted" {
		t.Errorf("the last event is %q, %v", event, err)
	}
	readers := b.group(staff, "Readers")
	b.Delete(staff).Want(204)
	b.Get(readers).WantError(404, 404)
}

func TestAnotherTenantHasNoPartInGroups(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff, guests := b.directory("Staff"), b.directory("Guests")
	editors, jo, al := b.group(staff, "Editors"), b.member(staff, "jo@example.test"), b.member(guests, "al@example.test")
	membership := b.Post("/v1/groupMemberships", members(jo, editors)).Want(201).Href()
	link := b.Post("/v1/accountLinks", ends(jo, al)).Want(201).Href()
	signedUp := b.signUp("shy-lynx", "other@example.test")
	other := &bench{
		T: b.T, Client: b.As(caller.Caller{Tenant: signedUp.Tenant.ID}), db: b.db, svc: b.svc, signedUp: signedUp,
		clock: b.clock,
	}

	for _, path := range []string{
		editors, editors + "/accountMemberships", staff + "/groups", b.tenant() + "/groups", membership, link,
		jo + "/groups", jo + "/groupMemberships", jo + "/accountLinks", jo + "/linkedAccounts",
	} {
		other.Get(path).WantError(404, 404)
	}
	for _, path := range []string{editors, membership, link} {
		other.Delete(path).Want(204)
	}
	other.Post(editors, `{"status":"DISABLED"}`).WantError(404, 404)
	other.Post(staff+"/groups", `{"name":"Mine"}`).WantError(404, 404)
	own := other.directory("Own")
	group, sam := other.group(own, "Editors"), other.member(own, "sam@example.test")
	for _, body := range []string{members(jo, group), members(sam, editors), members(jo, editors)} {
		other.Post("/v1/groupMemberships", body).WantError(400, 2014)
	}
	for _, body := range []string{ends(jo, sam), ends(sam, jo), ends(jo, al)} {
		other.Post("/v1/accountLinks", body).WantError(404, 404)
	}
	for path, size := range map[string]int{
		editors + "/accountMemberships": 1, jo + "/groups": 1, jo + "/accountLinks": 1, staff + "/groups": 1,
	} {
		if got := b.Get(path).Want(200).Int("size"); got != size {
			t.Errorf("%s has %d, want %d", path, got, size)
		}
	}
	for path := range map[string]int{group + "/accountMemberships": 0, sam + "/groups": 0, sam + "/accountLinks": 0} {
		if got := other.Get(path).Want(200).Int("size"); got != 0 {
			t.Errorf("%s has %d, want none", path, got)
		}
	}
}

func TestDeletingAnIDThatNoResourceHasIsDone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	groups := b.unknown("groups")
	groups = groups[:strings.LastIndexByte(groups, '/')+1]
	for _, never := range []string{strings.Repeat("0", 22), strings.Repeat("z", 22), strings.Repeat("a", 20)} {
		b.Delete(groups + never).Want(204)
		b.Get(groups+never).WantError(404, 404)
	}
	b.Delete(groups+"nothing").WantError(404, 404)
}
