package rest_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/openapi/openapitest"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// Golden test of every representation, byte by byte but for its ids.
func TestCustomDataAnswers(t *testing.T) {
	t.Parallel()
	c := open(t)
	bare := c.application(t, "Bare")
	shop := text(c.create(t, "/applications?createDirectory=true",
		`{"name":"Shop","customData":{"plan":"gold","seats":{"most":12}}}`)["href"])
	for _, scenario := range []struct {
		name, method, path string
		body               any
	}{
		{"customdata-empty", "GET", bare + "/customData", nil},
		{"customdata-of-creation", "GET", shop + "/customData", nil},
		{"customdata-merged", "POST", shop + "/customData",
			`{"seats":{"least":1},"big":123456789012345678901234567890.10,"huge":1e100000,"none":null,"text":"\u0000 é \ud83d\ude00 <&>"}`},
		{"customdata", "GET", shop + "/customData", nil},
		{"customdata-read-only", "POST", shop + "/customData",
			`{"href":"https://elsewhere.test/","createdAt":"2001-01-01T00:00:00.000Z","modifiedAt":"","plan":"silver"}`},
	} {
		t.Run(scenario.name, func(t *testing.T) {
			c.Clock.Tick()
			a := c.want(t, 200, scenario.method, scenario.path, scenario.body)
			a.Golden(scenario.name)
			if scenario.method == "POST" && a.header.Get("Location") != scenario.path {
				t.Errorf("the Location is %q", a.header.Get("Location"))
			}
			if kind := a.header.Get("Content-Type"); kind != "application/json;charset=UTF-8" ||
				a.header.Get("Cache-Control") != "no-cache" {
				t.Errorf("the headers are %v", a.header)
			}
		})
	}
	for _, path := range []string{shop + "/customData/plan", shop + "/customData/pl%61n", shop + "/customData/big", shop +
		"/customData/absent", shop + "/customData/href", shop + "/customData/%C3%A9"} {
		c.Clock.Tick()
		if a := c.want(t, 204, "DELETE", path, nil); len(a.body) > 0 {
			t.Errorf("DELETE %s answers %q", path, a.body)
		}
	}
	c.want(t, 200, "GET", shop+"/customData", nil).Golden("customdata-without-keys")
	c.Clock.Tick()
	c.want(t, 204, "DELETE", shop+"/customData", nil)
	c.want(t, 200, "GET", shop+"/customData", nil).Golden("customdata-cleared")
	if a := c.want(t, 200, "HEAD", shop+"/customData", nil); len(a.body) > 0 {
		t.Errorf("HEAD answers %q", a.body)
	}
}

func TestCustomDataThatIsRefused(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	kept := c.want(t, 200, "POST", shop+"/customData", `{"a":1}`).body
	for _, scenario := range []struct {
		what, data string
		code       int
	}{
		{"an empty key", `{"":1}`, 3000},
		{"an empty key inside", `{"a":[{"":1}]}`, 3000},
		{"a key that is too long", `{"` + strings.Repeat("k", 256) + `":1}`, 3001},
		{"a key with a dot", `{"a.b":1}`, 3002},
		{"a key that begins with a dash", `{"b":{"-a":1}}`, 3002},
		{"a reserved key", `{"meta":1}`, 3003},
		{"a read-only key of another type", `{"modifiedAt":1}`, 3003},
		{"an array", `[]`, 2006},
		{"a text", `"text"`, 2006},
		{"too deep nesting", `{"a":` + strings.Repeat("[", 9995) + strings.Repeat("]", 9995) + `}`, 2006},
		{"nesting too deep for any parser", `{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}`, 2006},
		{"no UTF-8", "{\"b\":\"\xff\"}", 2005},
		{"too much", `{"b":"` + strings.Repeat("x", customdata.MaxSize) + `"}`, 3004},
		{"too much with what is there", `{"b":"` + strings.Repeat("x", customdata.MaxSize-10) + `"}`, 3004},
	} {
		t.Run(scenario.what, func(t *testing.T) {
			c.refused(t, 400, scenario.code, "POST", shop+"/customData", scenario.data)
			c.refused(t, 400, scenario.code, "POST", shop, `{"name":"Changed","customData":`+scenario.data+`}`)
			if scenario.what != "too much with what is there" {
				c.refused(t, 400, scenario.code, "POST", "/applications?createDirectory=true", `{"name":"New","customData":`+
					scenario.data+`}`)
			}
		})
	}
	c.refused(t, 400, 2006, "POST", shop+"/customData", "")
	c.refused(t, 400, 2006, "POST", shop+"/customData", "null")
	for kind, code := range map[string]int{"text/plain": 1101, "": 1101, "application/json;charset=latin1": 2005} {
		request := httptest.NewRequest("POST", strings.TrimPrefix(shop, "https://doorward.test")+"/customData",
			strings.NewReader(`{"b":2}`))
		request.Header.Set(caller.Header, c.signer.Sign(caller.Caller{Tenant: c.tenant}))
		if kind != "" {
			request.Header.Set("Content-Type", kind)
		}
		response, err := openapitest.Do(t, c.app, request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if want := map[int]int{1101: 415, 2005: 400}[code]; response.StatusCode != want {
			t.Errorf("the content type %q returns %d, want %d", kind, response.StatusCode, want)
		}
	}
	if now := c.want(t, 200, "GET", shop+"/customData", nil).body; string(now) != string(kept) {
		t.Errorf("the custom data was %s and is %s", kept, now)
	}
	if page := c.get(t, applicationtest.Base.To("tenants", c.tenant, "applications")); page["size"] != 1.0 ||
		c.get(t, shop)["name"] != "Shop" {
		t.Errorf("something was made or changed: %v", page)
	}
	if names := c.Directories.Names(t, c.tenant); len(names) != 1 {
		t.Errorf("refusals left the directories %q", names)
	}
}

func TestCustomDataOfTenMegabytes(t *testing.T) {
	t.Parallel()
	c := open(t)
	sized := func(size int) string { return `{"a":"` + strings.Repeat("<", size-len(`{"a":""}`)) + `"}` }
	const most = customdata.MaxSize
	for i, size := range []int{most - 1, most} {
		shop := c.application(t, fmt.Sprintf("Shop %d", i))
		posted := c.want(t, 200, "POST", shop+"/customData", sized(size)).body
		read := c.want(t, 200, "GET", shop+"/customData", nil).body
		if string(posted) != string(read) || !strings.HasSuffix(string(read), sized(size)[1:]) {
			t.Errorf("%d bytes were answered with %d and read as %d", size, len(posted), len(read))
		}
		again := c.want(t, 200, "POST", shop, `{"customData":`+string(read)+`}`)
		if len(again.body) > 10000 {
			t.Errorf("the owner's answer has %d bytes", len(again.body))
		}
		c.want(t, 204, "DELETE", shop+"/customData/a", nil)
	}
	shop := c.create(t, "/applications", `{"name":"Made with it","customData":`+sized(most)+`}`)
	c.refused(t, 400, 3004, "POST", text(shop["href"])+"/customData", `{"b":1}`)
	c.want(t, 200, "POST", text(shop["href"])+"/customData", `{"a":1}`)
	c.refused(t, 400, 3004, "POST", text(shop["href"])+"/customData", sized(most+1))
}

func TestCustomDataAndItsOwner(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	before := c.get(t, shop)
	data := func() object { return c.get(t, shop+"/customData") }

	t.Run("it is created with its owner", func(t *testing.T) {
		if d := data(); len(d) != 3 || d["createdAt"] != before["createdAt"] || d["modifiedAt"] != before["createdAt"] {
			t.Errorf("the custom data is %v", d)
		}
	})
	t.Run("its change is not its owner's", func(t *testing.T) {
		c.Clock.Tick()
		c.update(t, shop+"/customData", `{"a":1}`)
		c.Clock.Tick()
		c.update(t, shop, `{"customData":{"b":2}}`)
		if after := c.get(t, shop); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the owner was %v and is %v", before, after)
		}
		if d := data(); d["a"] != 1.0 || d["b"] != 2.0 || d["modifiedAt"] == d["createdAt"] ||
			d["createdAt"] != before["createdAt"] {
			t.Errorf("the custom data is %v", d)
		}
	})
	t.Run("its owner's change is not its own", func(t *testing.T) {
		former := data()
		for _, body := range []string{`{"name":"Shop 2"}`, `{"name":"Shop 3","customData":{"href":"` + shop +
			`/customData"}}`, `{"name":"Shop 4","customData":null}`, `{"name":"Shop","customData":{}}`} {
			c.Clock.Tick()
			c.update(t, shop, body)
		}
		if d := data(); fmt.Sprint(d) != fmt.Sprint(former) {
			t.Errorf("the custom data was %v and is %v", former, d)
		}
	})
	t.Run("both change at once or not at all", func(t *testing.T) {
		c.application(t, "Taken")
		former := data()
		c.refused(t, 409, 2001, "POST", shop, `{"name":"Taken","customData":{"c":3}}`)
		c.refused(t, 400, 2003, "POST", shop, `{"status":"asleep","customData":{"c":3}}`)
		if d := data(); fmt.Sprint(d) != fmt.Sprint(former) {
			t.Errorf("the custom data was %v and is %v", former, d)
		}
	})
	t.Run("what was read can be posted back", func(t *testing.T) {
		former := data()
		whole := c.get(t, shop)
		whole["customData"] = former
		c.update(t, shop, whole)
		back := c.update(t, shop+"/customData", former)
		if delete(back, "modifiedAt"); back["a"] != 1.0 || back["b"] != 2.0 || len(back) != len(former)-1 {
			t.Errorf("the custom data was %v and is %v", former, back)
		}
	})
	t.Run("it goes with its owner", func(t *testing.T) {
		c.want(t, 204, "DELETE", shop, nil)
		c.refused(t, 404, 404, "GET", shop+"/customData", nil)
		c.refused(t, 404, 404, "POST", shop+"/customData", `{"a":1}`)
		c.refused(t, 404, 404, "POST", shop+"/customData", `{}`)
		c.want(t, 204, "DELETE", shop+"/customData", nil)
		c.want(t, 204, "DELETE", shop+"/customData/a", nil)
		if n, err := pg.Value[int](t.Context(), c.DB, `SELECT count(*) FROM custom_data`); err != nil || n != 0 {
			t.Errorf("%d documents are left, %v", n, err)
		}
	})
}

func TestCustomDataIsChangedByManyAtOnce(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			path, body := shop+"/customData", fmt.Sprintf(`{"k%d":%d}`, i, i)
			if i%2 == 1 {
				path, body = shop, `{"customData":`+body+`}`
			}
			if a := c.send(t, "POST", path, body); a.status != 200 {
				t.Errorf("the update answers %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if d := c.get(t, shop+"/customData"); len(d) != 3+50 {
		t.Errorf("the custom data has %d members: %v", len(d), d)
	}
}

func TestAKeyOfCustomDataIsOnlyDeleted(t *testing.T) {
	t.Parallel()
	c := open(t)
	shop := c.application(t, "Shop")
	for _, method := range []string{"GET", "POST"} {
		a := c.want(t, 405, method, shop+"/customData/plan", `{"plan":1}`)
		if a.object(t)["code"] != 1100.0 || a.header.Get("Allow") != "DELETE" {
			t.Errorf("%s returns %s and allows %q", method, a.body, a.header.Get("Allow"))
		}
	}
	for _, path := range []string{"/customData", "/customData/a"} {
		for _, v := range []string{c.NewID().String(), "0000000000000000000000"} {
			c.want(t, 204, "DELETE", "/applications/"+v+path, nil)
		}
		c.refused(t, 404, 404, "DELETE", "/applications/x"+path, nil)
	}
	for _, v := range []string{"x", "0000000000000000000000", c.NewID().String()} {
		c.refused(t, 404, 404, "GET", "/applications/"+v+"/customData", nil)
		c.refused(t, 404, 404, "POST", "/applications/"+v+"/customData", `{"a":1}`)
	}
}
