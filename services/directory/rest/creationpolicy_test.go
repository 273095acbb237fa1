package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/caller"
)

// creationPolicy is the address of the account creation policy of a directory.
func creationPolicy(directory string) string {
	return strings.Replace(directory, "/directories/", "/accountCreationPolicies/", 1)
}

func TestCreationPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := b.Get(b.directory("Staff")).Want(200).Href("accountCreationPolicy")
	read := b.Get(policy).Want(200).Golden("creation_policy")
	b.clock.Move(time.Minute)
	b.Post(
		policy, `{"verificationEmailStatus":"enabled","verificationSuccessEmailStatus":"Enabled","welcomeEmailStatus":"ENABLED",
		"emailDomainWhitelist":["*example.test","ÄÖ.test"],"emailDomainBlacklist":["bad.example.test"],"directory":{"href":"x"},"createdAt":"x"}`).
		Want(200).Golden("creation_policy_all_changed")
	b.Post(policy, `{"emailDomainWhitelist":["other.test"],"emailDomainBlacklist":null}`).Want(200).
		Golden("creation_policy_lists_replaced")
	b.Post(policy, `{"registrationCustomData":["newsletter","plan-b"]}`).Want(200).Golden("creation_policy_custom_data")
	b.Post(policy, string(read.Body)).Want(200)
	b.Get(policy).Want(200).Golden("creation_policy")
}

func TestCreationPolicyRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := creationPolicy(b.directory("Staff"))
	many := func(n int) string {
		domains := make([]string, n)
		for i := range domains {
			domains[i] = fmt.Sprintf("d%d.test", i)
		}
		list, err := json.Marshal(domains)
		if err != nil {
			t.Fatal(err)
		}
		return string(list)
	}
	b.Post(policy, `{"verificationEmailStatus":"ON","emailDomainWhitelist":[""],"welcomeEmailStatus":null}`).
		WantError(400, 2000)
	for _, list := range []string{"emailDomainWhitelist", "emailDomainBlacklist"} {
		for _, c := range []struct {
			value string
			code  int // 0: accepted
		}{
			{`"example.test"`, 2004},
			{`{"0":"example.test"}`, 2004},
			{`true`, 2004},
			{`[1]`, 2004},
			{`[["example.test"]]`, 2004},
			{`["example.test",null]`, 2004},
			{`[""]`, 2004},
			{`[" example.test"]`, 2004},
			{`["jo@example.test"]`, 2004},
			{`["https://example.test"]`, 2004},
			{`["example..test"]`, 2004},
			{`[".example.test"]`, 2004},
			{`["example.test."]`, 2004},
			{`["example.test\n"]`, 2004},
			{`["\u202eexample.test"]`, 2004},
			{`["*","*.test","ex*ple.*","**","täst.test","xn--tst-qla.test","a-b.test"]`, 0},
			{`[]`, 0},
			{`["` + strings.Repeat("ä", 255) + `"]`, 0},
			{`["` + strings.Repeat("a", 256) + `"]`, 2008},
			{many(999), 0},
			{many(1000), 0},
			{many(1001), 2008},
		} {
			answer := b.Post(policy, `{"`+list+`":`+c.value+`}`)
			if c.code == 0 {
				answer.Want(200)
				continue
			}
			answer.WantError(400, c.code)
		}
	}
	for body, code := range map[string]int{
		`"newsletter"`: 2004, `[1]`: 2004, `[""]`: 2002, `["a.b"]`: 2002, `["spMeta"]`: 2002, `["a b"]`: 2002,
		`["` + strings.Repeat("x", 256) + `"]`: 2002,
		many(101):                              2008,
	} {
		b.Post(policy, `{"registrationCustomData":`+body+`}`).WantError(400, code)
	}
	for _, status := range []string{"verificationEmailStatus", "verificationSuccessEmailStatus", "welcomeEmailStatus"} {
		b.Post(policy, `{"`+status+`":"ON"}`).WantError(400, 2003)
		b.Post(policy, `{"`+status+`":null}`).WantError(400, 2000)
		b.Post(policy, `{"`+status+`":true}`).WantError(400, 2004)
	}
	b.Post(policy, `{"colour":"red"}`).WantError(400, 2015)
	b.Delete(policy).WantError(405, 1100)
}

func TestARefusedPolicyStaysAsItWas(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := creationPolicy(b.directory("Staff"))
	b.Post(policy, `{"welcomeEmailStatus":"ENABLED","emailDomainWhitelist":["other.test"],"emailDomainBlacklist":[1]}`).
		WantError(400, 2004)
	b.Get(policy).Want(200).Golden("creation_policy")
}

func TestOfTheCreationPolicyOfAMirrorOnlyTheDomainsChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	policy := creationPolicy(staff)
	b.Post(
		policy, `{"verificationEmailStatus":"ENABLED","verificationSuccessEmailStatus":"ENABLED","welcomeEmailStatus":"ENABLED"}`).Want(200)
	b.mirrored(staff)
	b.Get(policy).Want(200).Golden("creation_policy_of_mirror")
	for _, status := range []string{"verificationEmailStatus", "verificationSuccessEmailStatus", "welcomeEmailStatus"} {
		b.Post(policy, `{"emailDomainWhitelist":["corp.test"],"`+status+`":"ENABLED"}`).WantError(400, 7202)
	}
	b.Post(policy, `{"registrationCustomData":[]}`).WantError(400, 7202)
	b.Get(policy).Want(200).Golden("creation_policy_of_mirror")
	// What is read can be sent back, with the domains that the mirror may speak for.
	b.Post(
		policy, `{"welcomeEmailStatus":"DISABLED","emailDomainWhitelist":["corp.test"],"emailDomainBlacklist":["old.corp.test"]}`).
		Want(200).Golden("creation_policy_of_mirror_updated")
	b.Get(policy).Want(200).Golden("creation_policy_of_mirror_with_domains")
}

func TestAnotherTenantsPoliciesAreNotFound(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.Get(b.directory("Staff")).Want(200)
	other := b.As(caller.Caller{Tenant: b.signUp("shy-lynx", "other@example.test").Tenant.ID})
	creation, password, schema := staff.Href("accountCreationPolicy"), staff.Href("passwordPolicy"),
		staff.Href("accountSchema")
	template := b.Get(password + "/resetEmailTemplates").Want(200).
		Object()["items"].([]any)[0].(map[string]any)["href"].(string)
	fields := b.fields(schema)
	for _, path := range []string{
		creation, creation + "/verificationEmailTemplates", creation + "/verificationSuccessEmailTemplates",
		creation + "/welcomeEmailTemplates",
		password, password + "/strength", password + "/resetEmailTemplates", password + "/resetSuccessEmailTemplates",
		template, schema, schema + "/fields", fields["givenName"],
	} {
		before := string(b.Get(path).Want(200).Body)
		other.Get(path).WantError(404, 404)
		for _, body := range []string{
			`{"welcomeEmailStatus":"ENABLED"}`, `{"resetTokenTtl":1}`, `{"minLength":9}`, `{"subject":"Mine"}`,
			`{"required":true}`,
		} {
			if answer := other.Post(path, body); answer.Status == 200 || answer.Status >= 500 {
				t.Errorf("another tenant's POST of %s to %s: %d", body, path, answer.Status)
			}
		}
		if after := string(b.Get(path).Want(200).Body); after != before {
			t.Errorf("another tenant changed %s from %s to %s", path, before, after)
		}
	}
	other.Post(creation, `{"welcomeEmailStatus":"ENABLED"}`).WantError(404, 404)
	other.Post(password, `{"resetTokenTtl":1}`).WantError(404, 404)
	other.Post(password+"/strength", `{"minLength":9}`).WantError(404, 404)
	other.Post(template, `{"subject":"Mine"}`).WantError(404, 404)
	other.Post(fields["surname"], `{"required":true}`).WantError(404, 404)
}
