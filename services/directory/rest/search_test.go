package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"
)

// people are three accounts of one directory, a day apart.
func (b *bench) people() string {
	b.Helper()
	staff := b.directory("Staff")
	for _, person := range []string{
		`"username":"ann","email":"ann@example.test","givenName":"Ann","middleName":"B","surname":"Zimmer","customData":{"plan":"Gold","score":10,"start":"2015-01-14","tags":["red","blue"],"address":{"city":"Bonn"},"vip":true}`,
		`"username":"bob","email":"bob@other.test","givenName":"Bob","surname":"Young","customData":{"plan":"silver","score":9.5,"start":"2016-03-01T10:30:00.000Z","tags":["green"],"address":{"city":"Berlin"},"vip":false}`,
		`"username":"cy_d","email":"cy@example.test","surname":"Xu","status":"DISABLED","customData":{"plan":7,"score":"high","start":2015,"note":null}`,
	} {
		b.Post(staff+"/accounts", `{"password":"Changeme1!",`+person+`}`).Want(201)
		b.clock.Move(24 * time.Hour)
	}
	return staff + "/accounts?"
}

func (b *bench) found(query string) string {
	b.Helper()
	var names []string
	for _, item := range b.Get(query).Want(200).Items() {
		names = append(names, item["username"].(string))
	}
	return strings.Join(names, " ")
}

func TestAccountsAreSearchedAndSorted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.people()
	for query, want := range map[string]string{
		"":                              "ann bob cy_d",
		"username=ANN":                  "ann",
		"username=cy%5Fd":               "cy_d",
		"username=c*":                   "cy_d",
		"username=cy_*":                 "cy_d",
		"username=c__d":                 "",
		"email=*@example.test":          "ann cy_d",
		"email=*OTHER*":                 "bob",
		"email=a*@example.test":         "",
		"givenName=b*":                  "bob",
		"givenName=*":                   "ann bob",
		"middleName=*b":                 "ann",
		"surname=xu":                    "cy_d",
		"surname=*U*":                   "bob cy_d",
		"q=EXAMPLE":                     "ann cy_d",
		"q=immer":                       "ann",
		"q=oung":                        "bob",
		"q=y":                           "bob cy_d",
		"q=nobody":                      "",
		"q=%25":                         "",
		"status=disabled":               "cy_d",
		"status=ENABLED":                "ann bob",
		"q=example&status=disabled":     "cy_d",
		"createdAt=2026-11-20":          "ann",
		"createdAt=2026-11":             "ann bob cy_d",
		"createdAt=[2026-11-21,]":       "bob cy_d",
		"createdAt=(2026-11-21,]":       "cy_d",
		"createdAt=[,2026-11-22)":       "ann bob",
		"createdAt=2027":                "",
		"modifiedAt=[2026-11-22]":       "cy_d",
		"passwordModifiedAt=2026-11-21": "bob",
		"orderBy=surname":               "cy_d bob ann",
		"orderBy=surname+desc":          "ann bob cy_d",
		"orderBy=email":                 "ann bob cy_d",
		"orderBy=username+DESC":         "cy_d bob ann",
		"orderBy=givenName,username":    "cy_d ann bob",
		"orderBy=middleName+desc":       "ann cy_d bob",
		"orderBy=fullName":              "ann bob cy_d",
		"orderBy=status,createdAt+desc": "cy_d bob ann",
		"orderBy=createdAt+desc":        "cy_d bob ann",
		"orderBy=modifiedAt+desc":       "cy_d bob ann",
		"orderBy=passwordModifiedAt":    "ann bob cy_d",
		"orderBy=emailVerificationStatus,username+desc": "cy_d bob ann",
		"limit=1&offset=1":                "bob",
		"limit=1&orderBy=surname":         "cy_d",
		"offset=3":                        "",
		"offset=99999999999999999999":     "",
		"limit=1000000000&status=ENABLED": "ann bob",
	} {
		if got := b.found(accounts + strings.ReplaceAll(query, "[", "%5B")); got != want {
			t.Errorf("?%s finds %q, want %q", query, got, want)
		}
	}
	b.Get(accounts + "q=example&orderBy=surname%20desc&limit=500").Want(200).Golden("account_search_whole")
}

func TestAccountsAreFoundByCustomData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.people()
	for query, want := range map[string]string{
		"plan=gold":               "ann",
		"plan=GO*":                "ann",
		"plan=*VER":               "bob",
		"plan=*il*":               "bob",
		"plan=7":                  "cy_d",
		"plan=7.0":                "cy_d",
		"plan=*":                  "ann bob cy_d",
		"score=10":                "ann",
		"score=1*":                "ann",
		"score=[9,10]":            "ann bob",
		"score=(9.5,10]":          "ann",
		"score=[9.5,10)":          "bob",
		"score=[10,]":             "ann",
		"score=[,9.99]":           "bob",
		"score=high":              "cy_d",
		"start=2015":              "cy_d",
		"start=2015-01-14":        "ann",
		"start=[2015]":            "ann cy_d",
		"start=[2015,2016]":       "ann bob cy_d",
		"start=[2015-01,2015-02]": "ann",
		"start=(2015-01-14,]":     "bob",
		"start=[,2015-01-14)":     "",
		"tags=red":                "ann",
		"tags=*e*":                "ann bob",
		"address.city=b*":         "ann bob",
		"address.city=bonn":       "ann",
		"vip=true":                "ann",
		"vip=FALSE":               "bob",
		"note=null":               "",
		"note=*":                  "",
		"nothing=x":               "",
	} {
		name, value, _ := strings.Cut(query, "=")
		if got := b.found(accounts + "customData." + name + "=" + url.QueryEscape(value)); got != want {
			t.Errorf("customData.%s finds %q, want %q", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"orderBy=customData.score":                             "bob ann cy_d",
		"orderBy=customData.score%20desc":                      "cy_d ann bob",
		"orderBy=customData.plan":                              "cy_d ann bob",
		"orderBy=customData.address.city":                      "bob ann cy_d",
		"orderBy=customData.address.city%20desc":               "ann bob cy_d",
		"orderBy=customData.nothing,username%20desc":           "cy_d bob ann",
		"orderBy=customData.tags":                              "ann bob cy_d", // an array is no value to sort by
		"customData.plan=*&customData.score=1*&status=enabled": "ann",
		"q=example&customData.vip=true":                        "ann",
	} {
		if got := b.found(accounts + query); got != want {
			t.Errorf("?%s finds %q, want %q", query, got, want)
		}
	}
	for query, code := range map[string]int{
		"customData.=x": 2105, "customData.a..b=x": 2105, "customData.a%20b=x": 2105, "customData=x": 2105,
		"orderBy=customData": 2106, "orderBy=customData.a%20b": 2104,
		"customData.a=[1": 2103, "customData.a=[,]": 2103, "customData.a=[x,y]": 2103, "customData.a=[2,1]": 2108,
		"customData.a=[2016,2015]": 2108, "customData.a=": 2101,
		"customData.a=1&customData.a=2": 2102, "customData.a": 2101,
	} {
		b.Get(accounts+strings.ReplaceAll(query, "[", "%5B")).WantError(400, code)
	}
	var many []string
	for i := range 9 {
		many = append(many, fmt.Sprintf("customData.k%d=1", i))
	}
	b.Get(accounts+strings.Join(many, "&")).WantError(400, 2100)
	if got := b.found(b.tenant() + "/accounts?customData.plan=gold"); got != "ann" {
		t.Errorf("the tenant's accounts give %q", got)
	}
}

// TestCustomDataThatChangesIsFoundAsItIs covers every way in which it changes.
func TestCustomDataThatChangesIsFoundAsItIs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.people()
	ann := b.Get(accounts + "username=ann").Items()[0]["href"].(string)
	count := func(want int, queries ...string) {
		t.Helper()
		for _, query := range queries {
			if size := b.Get(accounts + query).Want(200).Int("size"); size != want {
				t.Errorf("?%s finds %d, want %d", query, size, want)
			}
		}
	}
	b.Post(ann+"/customData", `{"plan":"bronze"}`).Want(200)
	count(1, "customData.plan=bronze", "customData.score=10")
	count(0, "customData.plan=gold")
	b.Post(ann, `{"customData":{"tags":"one"}}`).Want(200)
	count(1, "customData.tags=one")
	count(0, "customData.tags=red")
	b.Delete(ann + "/customData/plan").Want(204)
	count(0, "customData.plan=bronze")
	count(1, "customData.tags=one")
	b.Delete(ann + "/customData").Want(204)
	count(0, "customData.tags=one", "customData.vip=true")
	b.Post(ann+"/customData", `{"plan":"iron"}`).Want(200)
	b.Delete(ann).Want(204)
	count(0, "customData.plan=iron")
	count(2, "")
}

// TestTheSizeOfACollectionIsKept changes accounts in every way that their
// number by status follows.
func TestTheSizeOfACollectionIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.people()
	want := func(all, enabled, disabled, unverified int) {
		t.Helper()
		for query, n := range map[string]int{
			"": all, "status=ENABLED": enabled, "status=DISABLED": disabled, "status=UNVERIFIED": unverified,
		} {
			for _, path := range []string{accounts, b.tenant() + "/accounts?q=.test&"} {
				extra := 0
				if strings.Contains(path, "tenants") && (query == "" || query == "status=ENABLED") {
					extra = 1 // the owner
				}
				if size := b.Get(path + query).Want(200).Int("size"); size != n+extra {
					t.Errorf("%s%s has the size %d, want %d", path, query, size, n+extra)
				}
			}
		}
	}
	want(3, 2, 1, 0)
	ann := b.Get(accounts + "username=ann").Items()[0]["href"].(string)
	b.Post(ann, `{"status":"UNVERIFIED"}`).Want(200)
	want(3, 1, 1, 1)
	b.Post(ann, `{"status":"DISABLED"}`).Want(200)
	b.Post(ann, `{"email":"bob@other.test"}`).WantError(409, 2001)
	want(3, 1, 2, 0)
	b.Delete(ann).Want(204)
	want(2, 1, 1, 0)
}

func TestGroupsOfADirectoryAreFoundByCustomData(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	for _, body := range []string{
		`{"name":"a","customData":{"cost":{"centre":12},"site":"Bonn"}}`,
		`{"name":"b","customData":{"cost":{"centre":7},"site":"Berlin"}}`, `{"name":"c"}`,
	} {
		b.Post(staff+"/groups", body).Want(201)
	}
	found := func(want, query string) {
		t.Helper()
		var names []string
		for _, item := range b.Get(staff + "/groups?" + query).Want(200).Items() {
			names = append(names, item["name"].(string))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("?%s finds %q, want %q", query, got, want)
		}
	}
	found("a b", "customData.site=b*")
	found("a", "customData.cost.centre=%5B10,20%5D")
	found("b a c", "orderBy=customData.cost.centre")
	found("", "customData.site=Rome")

	a := b.Get(staff + "/groups?name=a").Items()[0]["href"].(string)
	b.Post(a, `{"customData":{"site":"Rome"}}`).Want(200)
	found("a", "customData.site=rome")
	b.Post(a+"/customData", `{"site":"Oslo"}`).Want(200)
	found("", "customData.site=rome")
	found("a", "customData.site=oslo")
	b.Delete(a + "/customData/site").Want(204)
	found("", "customData.site=oslo")
	found("a", "customData.cost.centre=12")
	b.Delete(a).Want(204)
	found("", "customData.cost.centre=12")

	c := b.Get(staff + "/groups?name=c").Items()[0]["href"].(string)
	b.Get(c+"/accounts?customData.site=x").WantError(400, 2105)
	b.Get(b.tenant()+"/groups?customData.site=x").WantError(400, 2105)
}

// A client that copies a large collection begins each page after the last item of the page before.
func TestAccountsAndMembershipsAreReadAfterAnItem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	crew := b.group(staff, "Crew")
	for _, name := range []string{"a", "b", "c"} {
		account := b.member(staff, name+"@example.test")
		b.Post("/v1/groupMemberships", fmt.Sprintf(`{"account":{"href":%q},"group":{"href":%q}}`, account, crew)).Want(201)
	}
	tenant := b.Get(staff).Href("tenant")
	for _, list := range []string{
		staff + "/accounts", crew + "/accounts", crew + "/accountMemberships", tenant + "/accounts",
	} {
		whole := b.Get(list).Want(200).Items()
		for i, item := range whole {
			href := item["href"].(string)
			page := b.Get(list + "?after=" + href[strings.LastIndexByte(href, '/')+1:]).Want(200)
			if rest := page.Items(); len(rest) != len(whole)-i-1 || page.Int("size") != len(whole) {
				t.Errorf("%s after item %d has %d items of %d, want %d of %d", list, i, len(rest), page.Int("size"), len(whole)-i-1,
					len(whole))
			}
		}
	}
	item := b.Get(staff + "/accounts").Items()[0]["href"].(string)
	b.Get(staff+"/accounts?orderBy=email&after="+item[strings.LastIndexByte(item, '/')+1:]).WantError(400, 2103)
	b.Get(staff+"/accounts?after="+url.QueryEscape(item)).WantError(400, 2103)
	b.Get(staff+"/groups?after="+item[strings.LastIndexByte(item, '/')+1:]).WantError(400, 2105)
}
