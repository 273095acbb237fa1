package rest_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/services/mfa/mfatest"
)

// parallel makes calls at once and returns the number of answers by status.
func parallel(times int, call func(i int) resttest.Answer) map[int]int {
	var group sync.WaitGroup
	statuses := make(chan int, times)
	for i := range times {
		group.Go(func() { statuses <- call(i).Status })
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
	list := []string{}
	for _, item := range a.Items() {
		text, _ := item[name].(string)
		list = append(list, text)
	}
	return list
}

func TestPhone(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	phones := mfatest.Of(d.Jo) + "/phones"
	made := d.Post(phones, `{"number":"888 391 5282"}`).Want(201).Golden("phone_created")
	d.Move(time.Minute)
	d.Get(made.Href()).Want(200).Golden("phone")
	d.Post(made.Href(), `{"name":"Mobile","description":"Of work","status":"disabled","account":{"href":"ignored"}}`).Want(
		200).Golden("phone_updated")
	d.Post(phones, `{"number":"+1 (267) 555-5555","name":"Home","description":null,"status":"DISABLED","verificationStatus":"verified"}`).Want(201).Golden("phone_created_whole")
	d.Get(phones).Want(200).Golden("phone_list")
	d.Get(mfatest.Base.To("tenants", d.Tenant, "phones") + "?limit=1&orderBy=number").Want(200).Golden("phone_tenant_list")
	d.Delete(made.Href()).Want(204)
	d.Delete(made.Href()).Want(204)
	d.Get(made.Href()).WantError(404, 404)
}

func TestPhoneRefusals(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	phones := mfatest.Of(d.Jo) + "/phones"
	first := d.Post(phones, `{"number":"+18883915282"}`).Want(201).Href()
	second := d.Post(phones, `{"number":"+12675555555"}`).Want(201).Href()
	number := func(more string) string { return `{"number":"+447400123456"` + more + `}` }
	for _, c := range []struct {
		body         string
		status, code int
	}{
		{`{}`, 400, 2000},
		{`{"number":null}`, 400, 2000},
		{`{"number":"  "}`, 400, 2000},
		{`{"number":8883915282}`, 400, 2004},
		{`{"number":"+1883915282"}`, 400, 13101},
		{`{"number":"12"}`, 400, 13101},
		{`{"number":"jo@example.test"}`, 400, 13101},
		{`{"number":"+18883915282 ext. 3"}`, 400, 13101},
		{`{"number":"+19002345678"}`, 400, 13101},
		{`{"number":"` + strings.Repeat("1", 256) + `"}`, 400, 2008},
		{`{"number":"1-888-391-5282"}`, 409, 13102},
		{`{"number":"\u202a+1 888 391 5282\u202c"}`, 409, 13102},
		{number(`,"name":"` + strings.Repeat("ä", 256) + `"`), 400, 2008},
		{number(`,"description":"` + strings.Repeat("ä", 1001) + `"`), 400, 2008},
		{number(`,"status":"LOST"`), 400, 2003},
		{number(`,"status":""`), 400, 2000},
		{number(`,"verificationStatus":"MAYBE"`), 400, 2003},
		{`{"number":"none","verificationStatus":"MAYBE"}`, 400, 2003},
		{`{"number":"none","verificationStatus":"MAYBE","status":""}`, 400, 2000},
		{number(`,"colour":"red"`), 400, 2015},
		{`[]`, 400, 2006},
	} {
		d.Post(phones, c.body).WantError(c.status, c.code)
	}
	d.Post(phones, `{"number":"+18883915282"}`).WantError(409, 13102).Golden("phone_taken")
	d.Post(first, `{"number":"+12675555555"}`).WantError(409, 13102)
	d.Post(first, `{"number":null}`).WantError(400, 2000)
	d.Post(first, `{"status":null}`).WantError(400, 2000)
	d.Post(first, `{"verificationStatus":null}`).WantError(400, 2000)
	d.Post(first, `{"number":"none"}`).WantError(400, 13101)
	d.Send("PUT", first, "application/json", `{}`).WantError(405, 1100)
	d.Post(phones, number(`,"status":null,"verificationStatus":null,"name":"`+strings.Repeat("ä", 255)+`","description":"`+
		strings.Repeat("ä", 1000)+`"`)).Want(201)
	d.Post(mfatest.Of(d.Account(d.Tenant, "al"))+"/phones", `{"number":"+18883915282"}`).Want(201)
	d.Get(second).Want(200)
	if got := d.Get(phones).Int("size"); got != 3 {
		t.Errorf("the account has %d phones after the refusals, want 3", got)
	}
	nobody := mfatest.Base.To("accounts", id.New(d.Now()))
	d.Get(nobody+"/phones").WantError(404, 404)
	d.Post(nobody+"/phones", number("")).WantError(404, 404)
	d.Get(mfatest.Base.To("tenants", id.New(d.Now()), "phones")).WantError(404, 404)
	d.Get("/v1/phones/nothing").WantError(404, 404)
}

func TestTheNumberOfAVerifiedPhoneStays(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	phone := d.Post(mfatest.Of(d.Jo)+"/phones", `{"number":"+18883915282"}`).Want(201).Href()
	d.Post(phone, `{"number":"+12675555555"}`).Want(200)
	d.Post(phone, `{"number":"+18883915282","verificationStatus":"VERIFIED"}`).WantError(400, 13100)
	d.Post(phone, `{"number":"+18883915282"}`).Want(200)
	d.Post(phone, `{"number":"+18883915282","verificationStatus":"VERIFIED"}`).Want(200)
	d.Post(phone, `{"number":"+12675555555"}`).WantError(400, 13100).Golden("phone_fixed")
	d.Post(phone, `{"number":"+12675555555","verificationStatus":"UNVERIFIED"}`).WantError(400, 13100)
	if got := d.Post(phone, `{"number":"888-391-5282","name":"Mine"}`).Want(200).Text("number"); got != "+18883915282" {
		t.Errorf("the number is %s", got)
	}
	d.Post(phone, `{"verificationStatus":"UNVERIFIED"}`).Want(200)
	d.Post(phone, `{"number":"+12675555555"}`).Want(200)
}

// A number that was stored under an older rule, or before its plan of numbers changed, is no obstacle where the
// phone is sent back as it was read.
func TestANumberThatIsSentBackAsItIsStays(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	phone := d.Post(mfatest.Of(d.Jo)+"/phones", `{"number":"+18883915282","verificationStatus":"VERIFIED"}`).Want(
		201).Href()
	// a premium-rate number
	if _, err := pg.Exec(t.Context(), d.DB, `UPDATE phones SET number = '+19005551234'`); err != nil {
		t.Fatal(err)
	}
	if got := d.Post(phone, `{"number":"+19005551234","name":"Mine"}`).Want(200).Text(
		"verificationStatus"); got != "VERIFIED" {
		t.Errorf("the phone is %s", got)
	}
	d.Post(phone, `{"number":"+1 900 555 1234"}`).WantError(400, 13101)
}

// A code that went to one number does not prove another.
func TestAChangedNumberIsUnverified(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(
		201)
	challenge := factor.Href("mostRecentChallenge")
	d.Post(factor.Href("phone"), `{"name":"Same number"}`).Want(200)
	if got := d.Get(challenge).Text("status"); got != "CREATED" {
		t.Errorf("with the same number the challenge is %s", got)
	}
	d.Post(factor.Href("phone"), `{"number":"+12675555555"}`).Want(200)
	d.Post(challenge, `{"code":"`+d.Code(challenge)+`"}`).WantError(400, 13112)
	if got := d.Get(factor.Href("phone")).Text("verificationStatus"); got != "UNVERIFIED" {
		t.Errorf("the new number is %s", got)
	}
}

func TestTheSameNumberAtTheSameTimeIsMadeOnce(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	count := parallel(50, func(int) resttest.Answer {
		return d.Post(mfatest.Of(d.Jo)+"/phones",
			`{"number":"+18883915282"}`)
	})
	if count[201] != 1 || count[409] != 49 {
		t.Fatalf("answers by status: %v; want one 201 and the rest 409", count)
	}
}

func TestPhonesAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	phones := mfatest.Of(d.Jo) + "/phones"
	for _, body := range []string{
		`{"number":"+18883915282","name":"Work","description":"100%"}`,
		`{"number":"+12675555555","name":"home","status":"DISABLED"}`,
		`{"number":"+447400123456","verificationStatus":"VERIFIED"}`,
	} {
		d.Post(phones, body).Want(201)
		d.Move(time.Minute)
	}
	us, home, gb := "+18883915282", "+12675555555", "+447400123456"
	for query, want := range map[string][]string{
		"":                              {us, home, gb},
		"number=" + url.QueryEscape(us): {us},
		"number=" + url.QueryEscape("+1*") + "&orderBy=number": {home, us},
		"name=HOME":                   {home},
		"description=*%25":            {us},
		"status=disabled":             {home},
		"verificationStatus=verified": {gb},
		"q=5555":                      {home},
		"q=work":                      {us},
		"createdAt=2026-11-20T20:26":  {home},
		"orderBy=createdAt+desc":      {gb, home, us},
		"orderBy=name&limit=1":        {gb},
		"offset=3":                    {},
	} {
		for _, list := range []string{phones, mfatest.Base.To("tenants", d.Tenant, "phones")} {
			if got := values(d.Get(list+"?"+query).Want(200), "number"); !slices.Equal(got, want) {
				t.Errorf("%s?%s returns %v, want %v", list, query, got, want)
			}
		}
	}
	for query, code := range map[string]int{"colour=red": 2105, "status=lost": 2105, "limit=0": 2103,
		"orderBy=account": 2106,
		"createdAt=soon":  2103} {
		d.Get(phones+"?"+query).WantError(400, code)
	}
}

func TestSecondFactorsAreIsolatedByTenant(t *testing.T) {
	t.Parallel()
	d := mfatest.Open(t)
	factor := d.Post(mfatest.Of(d.Jo)+"/factors?challenge=true", `{"type":"SMS","phone":{"number":"+18883915282"}}`).Want(
		201)
	phone, challenge := factor.Href("phone"), factor.Href("mostRecentChallenge")
	other, al := d.Stranger()
	for _, path := range []string{
		mfatest.Of(d.Jo) + "/phones", mfatest.Of(d.Jo) + "/factors", mfatest.Base.To("tenants", d.Tenant, "phones"),
		phone, factor.Href(), factor.Href() + "/challenges", challenge,
	} {
		other.Get(path).WantError(404, 404)
	}
	for _, path := range []string{phone, factor.Href()} {
		other.Delete(path).Want(204)
	}
	other.Post(mfatest.Of(d.Jo)+"/phones", `{"number":"+12675555555"}`).WantError(404, 404)
	other.Post(mfatest.Of(d.Jo)+"/factors", `{"type":"google-authenticator"}`).WantError(404, 404)
	other.Post(phone, `{"status":"DISABLED"}`).WantError(404, 404)
	other.Post(factor.Href(), `{"status":"DISABLED"}`).WantError(404, 404)
	other.Post(factor.Href()+"/challenges", "").WantError(404, 404)
	other.Post(challenge, `{"code":"`+d.Code(challenge)+`"}`).WantError(404, 404)
	other.Post(mfatest.Of(al)+"/factors", fmt.Sprintf(`{"type":"SMS","phone":{"href":%q}}`, phone)).WantError(404, 404)
	d.Get(factor.Href()).Want(200).Golden("factor_untouched")
	d.Get(phone).Want(200).Golden("phone_untouched")
	d.Get(challenge).Want(200).Golden("challenge_untouched")
	if got := other.Get(mfatest.Of(al) + "/factors").Want(200).Int("size"); got != 0 {
		t.Errorf("the stranger has %d factors", got)
	}
}
