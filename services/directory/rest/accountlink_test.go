package rest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/rest/resttest"
)

// ends is the body that links two accounts.
func ends(left, right string) string {
	return fmt.Sprintf(`{"leftAccount":{"href":%q},"rightAccount":{"href":%q}}`, left, right)
}

func TestAccountLink(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff, guests, fans := b.directory("Staff"), b.directory("Guests"), b.directory("Fans")
	jo, guest, fan := b.member(staff, "jo@example.test"), b.member(guests, "jo@guests.test"),
		b.member(fans, "jo@fans.test")
	made := b.Post("/v1/accountLinks", ends(jo, guest)).Want(201).Golden("link_created")
	b.Get(made.Href()).Want(200).Golden("link")
	b.clock.Move(time.Minute)
	b.Post("/v1/accountLinks", ends(fan, jo)).Want(201)

	b.Get(jo + "/accountLinks").Want(200).Golden("link_list")
	b.Get(jo + "/linkedAccounts?email=*guests.test").Want(200).Golden("linked_accounts")
	for path, want := range map[string][]string{
		jo + "/linkedAccounts":                           {"jo@guests.test", "jo@fans.test"},
		jo + "/linkedAccounts?orderBy=email":             {"jo@fans.test", "jo@guests.test"},
		jo + "/linkedAccounts?limit=1&offset=1":          {"jo@fans.test"},
		jo + "/linkedAccounts?q=fans":                    {"jo@fans.test"},
		guest + "/linkedAccounts":                        {"jo@example.test"}, // not those of the other end
		fan + "/linkedAccounts":                          {"jo@example.test"},
		b.member(staff, "al@x.test") + "/linkedAccounts": {},
	} {
		if got := values(b.Get(path).Want(200), "email"); !slices.Equal(got, want) {
			t.Errorf("%s are %v, want %v", path, got, want)
		}
	}
	if got := b.Get(jo + "/accountLinks?createdAt=2026-11-20T20:26&orderBy=createdAt").Want(200).Int("size"); got != 1 {
		t.Errorf("%d links were made in that minute, want 1", got)
	}

	b.Post(made.Href(), ends(jo, guest)).WantError(405, 1100)
	b.Get("/v1/accountLinks").WantError(405, 1100)
	b.Delete(made.Href()).Want(204)
	b.Delete(made.Href()).Want(204)
	b.Get(made.Href()).WantError(404, 404)
	b.Get(guest).Want(200)
	b.Delete(fan).Want(204)
	if got := b.Get(jo + "/accountLinks").Want(200).Int("size"); got != 0 {
		t.Errorf("%d links are left of deleted accounts", got)
	}
}

func TestLinkedAccountsShowTheirOpenVerification(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	waiting := b.Post(b.verifying()+"/accounts", jo).Want(201)
	other := b.member(b.directory("Guests"), "jo@guests.test")
	b.Post("/v1/accountLinks", ends(waiting.Href(), other)).Want(201)
	items, _ := b.Get(other + "/linkedAccounts").Want(200).Object()["items"].([]any)
	if len(items) != 1 {
		t.Fatalf("the account is linked to %d accounts, want 1", len(items))
	}
	token, _ := items[0].(map[string]any)["emailVerificationToken"].(map[string]any)
	if token["href"] != waiting.Href("emailVerificationToken") {
		t.Errorf("the token is %v", token)
	}
}

func TestAccountLinkRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff, guests := b.directory("Staff"), b.directory("Guests")
	jo, al, guest, other := b.member(staff, "jo@example.test"), b.member(staff, "al@example.test"),
		b.member(guests, "jo@guests.test"), b.member(guests, "al@guests.test")
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{``, 400, 7502},
		{`{`, 400, 7502},
		{`[]`, 400, 7502},
		{`{}`, 400, 7502},
		{fmt.Sprintf(`{"leftAccount":{"href":%q}}`, jo), 400, 7502},
		{fmt.Sprintf(`{"leftAccount":{"href":%q},"rightAccount":null}`, jo), 400, 7502},
		{fmt.Sprintf(`{"leftAccount":%q,"rightAccount":{"href":%q}}`, jo, guest), 400, 7502},
		{ends(jo, "guest"), 400, 7502},
		{ends(jo, ""), 400, 7502},
		{ends(staff, guest), 400, 7502},
		{`{"left":{}}`, 400, 2015},
		{ends(jo, jo), 400, 7501},
		{ends(jo, b.unknown("accounts")), 404, 404},
		{ends(b.unknown("accounts"), jo), 404, 404},
		{ends(jo, "https://localhost:8443/v1/accounts/nothing"), 404, 404},
		{ends(jo, al), 409, 7504},
	} {
		b.Post("/v1/accountLinks", c.body).WantError(c.status, c.code)
	}
	b.Send("POST", "/v1/accountLinks", "text/plain", ends(jo, guest)).WantError(415, 1101)
	link := b.Post("/v1/accountLinks", ends(jo, guest)).Want(201).Href()
	for _, body := range []string{ends(jo, guest), ends(guest, jo)} {
		again := b.Post("/v1/accountLinks", body).WantError(409, 7500).Golden("link_exists")
		if again.Header.Get("Location") != link || again.Href("accountLink") != link {
			t.Errorf("the refusal names %q and %q, want %q", again.Header.Get("Location"), again.Href("accountLink"), link)
		}
	}
	for _, body := range []string{ends(jo, other), ends(other, jo), ends(al, guest), ends(guest, al)} {
		b.Post("/v1/accountLinks", body).WantError(409, 7505)
	}
	b.Post("/v1/accountLinks", ends(al, other)).Want(201)
	for _, path := range []string{"/accountLinks", "/linkedAccounts"} {
		b.Get(b.unknown("accounts")+path).WantError(404, 404)
	}
}

func TestAnAccountHasTenLinks(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	jo := b.member(b.directory("Staff"), "jo@example.test")
	var others []string
	var directories []string
	for i := range 11 {
		directories = append(directories, b.directory(fmt.Sprintf("D%d", i)))
		others = append(others, b.member(directories[i], "jo@example.test"))
	}
	for _, other := range others[:9] {
		b.Post("/v1/accountLinks", ends(jo, other)).Want(201)
	}
	tenth := b.Post("/v1/accountLinks", ends(others[9], jo)).Want(201).Href()
	b.Post("/v1/accountLinks", ends(jo, others[10])).WantError(400, 7503)
	b.Post("/v1/accountLinks", ends(others[10], jo)).WantError(400, 7503)
	b.Post("/v1/accountLinks", ends(jo, others[0])).WantError(409, 7500)
	b.Delete(tenth).Want(204)
	b.Post("/v1/accountLinks", ends(jo, others[10])).Want(201)
	b.Post("/v1/accountLinks", ends(jo, others[9])).WantError(400, 7503)
	b.Delete(directories[0]).Want(204)
	b.Post("/v1/accountLinks", ends(jo, others[9])).Want(201)
}

func TestTheSameLinkAtTheSameTimeIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	jo, guest := b.member(b.directory("Staff"), "jo@example.test"), b.member(b.directory("Guests"), "jo@guests.test")
	count := parallel(50, func(i int) resttest.Answer {
		if i%2 == 0 {
			return b.Post("/v1/accountLinks", ends(jo, guest))
		}
		return b.Post("/v1/accountLinks", ends(guest, jo))
	})
	if count[201] != 1 || count[409] != 49 {
		t.Fatalf("answers by status: %v; want one 201 and the rest 409", count)
	}
}

func TestParallelLinksKeepToTheLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff, guests := b.directory("Staff"), b.directory("Guests")
	jo := b.member(staff, "jo@example.test")
	var same, others []string
	for i := range 10 {
		same = append(same, b.member(guests, fmt.Sprintf("a%d@example.test", i)))
	}
	for i := range 15 {
		others = append(others, b.member(b.directory(fmt.Sprintf("D%d", i)), "jo@example.test"))
	}
	if count := parallel(len(same),
		func(i int) resttest.Answer { return b.Post("/v1/accountLinks", ends(same[i], jo)) }); count[201] != 1 ||
		count[409] != 9 {
		t.Errorf("answers by status: %v; want one link into the directory", count)
	}
	if count := parallel(len(others),
		func(i int) resttest.Answer { return b.Post("/v1/accountLinks", ends(jo, others[i])) }); count[201] != 9 ||
		count[400] != 6 {
		t.Errorf("answers by status: %v; want nine more links", count)
	}
}
