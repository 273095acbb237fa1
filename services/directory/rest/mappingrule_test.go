package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
)

func TestUserInfoMappingRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	empty := b.Get(b.mirror("G", social("github", ``)) + "/provider").Href("userInfoMappingRules")
	b.Get(empty).Want(200).Golden("user_info_rules_empty")
	rules := b.Get(b.mirror("F",
		generic(`,"userInfoMappingRules":{"items":[{"name":"user.mail","accountAttributes":["email"]}]}`)) +
		"/provider").Href("userInfoMappingRules")
	b.Get(rules).Want(200).Golden("user_info_rules")
	b.clock.Move(time.Minute)
	b.Post(rules, `{"items":[{"name":"id","accountAttributes":["customData.providerUserId"]},
		{"name":"bio","nameFormat":null,"accountAttributes":["customData.bio.text","username","givenName","middleName","surname"]}]}`).
		Want(200).Golden("user_info_rules_updated")
	b.Post(rules, `{}`).Want(200)
	b.Post(rules, string(b.Get(rules).Body)).Want(200).Golden("user_info_rules_updated")
	b.Post(rules, `{"items":null}`).Want(200)
	b.Get(rules).Want(200).Golden("user_info_rules_empty")
	b.Delete(rules).WantError(405, 1100)
	b.Get("/v1/userInfoMappingRules/"+id.New(b.clock.Now()).String()).WantError(404, 404)
	b.Get(strings.Replace(rules, "userInfo", "attributeStatement", 1)).WantError(404, 404)
	b.Post(strings.Replace(rules, "userInfo", "attributeStatement", 1), `{"items":[]}`).WantError(404, 404)
}

func TestAttributeStatementMappingRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	rules := b.Get(b.mirror("S",
		samlProvider(
			`,"attributeStatementMappingRules":{"href":"x","items":[{"name":"mail","accountAttributes":["email"]}]}`)) +
		"/provider").
		Href("attributeStatementMappingRules")
	b.Get(rules).Want(200).Golden("attribute_rules")
	b.Post(
		rules, `{"items":[{"nameFormat":"urn:oasis:names:tc:SAML:2.0:attrname-format:basic","accountAttributes":["customData.a","customData.b"]},
		{"name":"sn","nameFormat":"basic","accountAttributes":["surname"]}]}`).Want(200).Golden("attribute_rules_updated")
	b.Post(rules, `{"items":[]}`).Want(200).Golden("attribute_rules_empty")
	b.Delete(rules).WantError(405, 1100)
	b.Get(strings.Replace(rules, "attributeStatement", "userInfo", 1)).WantError(404, 404)
}

func TestMappingRuleRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	userInfo := b.Get(b.mirror("F", generic(``)) + "/provider").Href("userInfoMappingRules")
	attributes := b.Get(b.mirror("S", samlProvider(``)) + "/provider").Href("attributeStatementMappingRules")
	rule := func(name, targets string) string {
		return `{"name":"` + name + `","accountAttributes":[` + targets + `]}`
	}
	many := func(n int, one string) string { return strings.TrimSuffix(strings.Repeat(one+",", n), ",") }
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		items string
		code  int // 0: accepted
	}{
		{`{}`, 2004}, {`["x"]`, 2004}, {`[null]`, 2004}, {`[{"name":"x","accountAttributes":["email"],"x":1}]`, 2015},
		{`[{"accountAttributes":["email"]}]`, 2000}, {`[` + rule(" ", `"email"`) + `]`, 2000},
		{`[` + rule(long, `"email"`) + `]`, 0}, {`[` + rule(long+"x", `"email"`) + `]`, 2008},
		{`[{"name":"x"}]`, 2000}, {`[{"name":"x","accountAttributes":null}]`, 2000}, {`[` + rule("x", ``) + `]`, 2000},
		{`[{"name":"x","accountAttributes":"email"}]`, 2004},
		{`[` + rule("x", many(20, `"email"`)) + `]`, 0}, {`[` + rule("x", many(21, `"email"`)) + `]`, 2008},
		{`[` + many(100, rule("x", `"email"`)) + `]`, 0}, {`[` + many(101, rule("x", `"email"`)) + `]`, 2008},
		{`[` + rule("x", `"password"`) + `]`, 2002}, {`[` + rule("x", `"status"`) + `]`, 2002},
		{`[` + rule("x", `""`) + `]`, 2002}, {`[` + rule("x", `"Email"`) + `]`, 2002},
		{`[` + rule("x", `"customData"`) + `]`, 2002}, {`[` + rule("x", `"customData."`) + `]`, 2002},
		{`[` + rule("x", `"customData.a..b"`) + `]`, 2002},
		{`[` + rule("x", `"customData.-a"`) + `]`, 2002}, {`[` + rule("x", `"customData.a b"`) + `]`, 2002},
		{`[` + rule("x", `"customData.a\u0000"`) + `]`, 2002},
		{`[` + rule("x", `"customData.a.href"`) + `]`, 2002},
		{`[` + rule("x", `"customData.`+strings.Repeat("x", 255)+`"`) + `]`, 0},
		{`[` + rule("x", `"customData.`+strings.Repeat("x", 256)+`"`) + `]`, 2002},
	} {
		for _, rules := range []string{userInfo, attributes} {
			before := string(b.Get(rules).Body)
			answer := b.Post(rules, `{"items":`+c.items+`}`)
			if c.code == 0 {
				answer.Want(200)
				continue
			}
			answer.WantError(400, c.code)
			if after := string(b.Get(rules).Body); after != before {
				t.Errorf("%s made of %s: %s", c.items, before, after)
			}
		}
	}
	b.Post(userInfo, `{"items":[{"name":"x","nameFormat":"y","accountAttributes":["email"]}]}`).WantError(400, 2017)
	b.Post(userInfo, `{"items":[{"nameFormat":"y","accountAttributes":["email"]}]}`).WantError(400, 2017)
	b.Post(attributes, `{"rules":[]}`).WantError(400, 2015)
	b.Post("/v1/directories",
		`{"name":"D","provider":`+generic(`,"userInfoMappingRules":{"items":[`+rule("x", `"status"`)+`]}`)+`}`).WantError(400,
		2002)
}
