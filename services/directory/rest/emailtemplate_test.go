package rest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

// templates are the collections of the six workflows below the policies of a
// directory, by the workflow.
func templates(directory string) map[string]string {
	return map[string]string{
		"verification":        creationPolicy(directory) + "/verificationEmailTemplates",
		"verificationSuccess": creationPolicy(directory) + "/verificationSuccessEmailTemplates",
		"welcome":             creationPolicy(directory) + "/welcomeEmailTemplates",
		"existingAccount":     creationPolicy(directory) + "/existingAccountEmailTemplates",
		"reset":               passwordPolicy(directory) + "/resetEmailTemplates",
		"resetSuccess":        passwordPolicy(directory) + "/resetSuccessEmailTemplates",
	}
}

// template returns the address of the one template of a collection.
func (b *bench) template(collection string) string {
	b.Helper()
	items := b.Get(collection).Want(200).Object()["items"].([]any)
	if len(items) != 1 {
		b.Fatalf("%s has %d templates", collection, len(items))
	}
	return items[0].(map[string]any)["href"].(string)
}

// quoted is a text as JSON.
func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	for workflow, collection := range templates(staff) {
		b.Get(collection + "?limit=10").Want(200).Golden("templates_" + workflow)
		b.Get(b.template(collection)).Want(200).Golden("template_" + workflow)
		if past := b.Get(collection + "?offset=1").
			Want(200); past.Int("size") != 1 || len(past.Object()["items"].([]any)) != 0 {
			t.Errorf("the page after the template: %s", past.Body)
		}
		b.Get(collection+"?name=x").WantError(400, 2105)
		b.Get(
			collection + "?orderBy=name,description,fromName,fromEmailAddress,subject,mimeType,textBody,htmlBody,createdAt,modifiedAt").Want(200)
		b.Get(collection+"?orderBy=defaultModel").WantError(400, 2106)
		b.Post(collection, `{}`).WantError(405, 1100)
	}
	unknown := "/v1/directories/" + id.New(b.clock.Now()).String()
	for _, collection := range templates(unknown) {
		b.Get(collection).WantError(404, 404)
	}
	b.Get("/v1/emailTemplates/"+id.New(b.clock.Now()).String()).WantError(404, 404)
	b.Post("/v1/emailTemplates/"+id.New(b.clock.Now()).String(), `{}`).WantError(404, 404)
}

func TestTemplateUpdate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	template := b.template(templates(b.directory("Staff"))["reset"])
	read := b.Get(template).Want(200)
	b.clock.Move(time.Minute)
	b.Post(
		template, `{"name":" Reset ","description":null,"fromName":"Shop","fromEmailAddress":" shop@example.test ","subject":"Forgot it?",
		"mimeType":"Multipart/Alternative","textBody":" $!{url}\n","htmlBody":"<p>${sptoken}</p>","defaultModel":{"linkBaseUrl":"https://app.example.test/#/reset"},
		"createdAt":"x","href":"y"}`).Want(200).Golden("template_updated")
	b.Post(template, `{"subject":"Again"}`).Want(200).Golden("template_subject_updated")
	b.Post(template, `{"fromName":null,"fromEmailAddress":null}`).Want(200)
	b.Post(template, `{"defaultModel":{"linkBaseUrl":"myapp://reset"}}`).Want(200)
	b.Post(template, `{"defaultModel":{}}`).WantError(400, 2000)
	b.Post(template, `{"defaultModel":null}`).Want(200).Golden("template_own_link")
	b.Post(template, `{"defaultModel":{"linkBaseUrl":null}}`).Want(200).Golden("template_defaults_again")
	b.Post(template, string(read.Body)).Want(200).Golden("template_as_first")
	b.Delete(template).WantError(405, 1100)
}

// A client that sends back what it read does not hold on to the sender and the
// page that the deployment has today.
func TestTheDefaultsOfTheDeploymentAreNotStored(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	template := b.template(templates(b.directory("Staff"))["verification"])
	b.Post(template, string(b.Get(template).Want(200).Body)).Want(200)
	stored, err := pg.Value[int](t.Context(),
		b.db, `SELECT sum(num_nonnulls(from_name, from_email_address, link_base_url))::integer FROM email_templates
		WHERE tenant_id = $1`, b.signedUp.Tenant.ID)
	if err != nil || stored != 0 {
		t.Errorf("%d defaults were stored: %v", stored, err)
	}
}

func TestTemplateLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	template := b.template(templates(b.directory("Staff"))["welcome"])
	post := func(name, value string, code int) {
		t.Helper()
		answer := b.Post(template, `{"`+name+`":`+value+`}`)
		if code == 0 {
			answer.Want(200)
			return
		}
		answer.WantError(400, code)
	}
	for _, name := range []string{"name", "subject"} {
		post(name, `"a"`, 0)
		post(name, quoted(strings.Repeat("ä", 255)), 0)
		post(name, quoted(strings.Repeat("ä", 256)), 2008)
		for _, none := range []string{`null`, `""`, `" \t"`} {
			post(name, none, 2000)
		}
	}
	post("subject", `"Hi $!{account.givenName} ${application.name}"`, 0)
	for _, broken := range []string{`"Hi ${"`, `"Hi $!{account.givenName"`, `"${a b}"`, `"$!{}"`} {
		post("subject", broken, 2006)
	}
	for _, name := range []string{"name", "subject", "fromName"} {
		post(name, `"Hello\r\nBcc: eve@evil.example"`, 2006)
		post(name, `"Hello\nX"`, 2006)
		post(name, `"a\u0007b"`, 2006)
		post(name, `"a\u0085b"`, 2006)
		post(name, `"a\u2028b"`, 2006)
		post(name, `"a\u0000b"`, 2006)
		post(name, `1`, 2004)
	}
	post("fromName", `"S"`, 0)
	post("fromName", quoted(strings.Repeat("ä", 255)), 0)
	post("fromName", quoted(strings.Repeat("ä", 256)), 2008)
	post("fromName", `""`, 2007)
	post("fromName", `" "`, 2007)
	post("fromName", `null`, 0)
	post("fromEmailAddress", `"a@b.c"`, 0)
	post("fromEmailAddress", quoted(strings.Repeat("a", 64)+"@"+strings.Repeat(strings.Repeat("b", 61)+".", 3)+"cde"), 0)
	post("fromEmailAddress", quoted(strings.Repeat("a", 64)+"@"+strings.Repeat(strings.Repeat("b", 61)+".", 3)+"cdefg"),
		2008)
	post("fromEmailAddress", `""`, 2007)
	for _, bad := range []string{"shop", "shop@localhost", "a b@example.test", "Shop <shop@example.test>",
		"<shop@example.test>",
		"a@example.test,b@example.test", "a@example.test\r\nBcc: b@example.test", "a@b@example.test", "a\"b@example.test"} {
		post("fromEmailAddress", quoted(bad), 2006)
	}
	post("fromEmailAddress", `"no-reply@localhost"`, 0) // the deployment's own
	post("description", `""`, 0)
	post("description", `null`, 0)
	post("description", quoted(strings.Repeat("ä", 1000)), 0)
	post("description", quoted(strings.Repeat("ä", 1001)), 2008)
	for _, name := range []string{"textBody", "htmlBody"} {
		post(name, `"a"`, 0)
		post(name, quoted(strings.Repeat("ä", 256_000)), 0)
		post(name, quoted(strings.Repeat("a", 256_001)), 2008)
		post(name, quoted(strings.Repeat("ä", 256_000)+" "), 2008)
		for _, none := range []string{`null`, `""`, `" \n"`} {
			post(name, none, 2000)
		}
		post(name, `[]`, 2004)
	}
	post("mimeType", `"TEXT/HTML"`, 0)
	if kind := b.Get(template).Text("mimeType"); kind != "text/html" {
		t.Errorf("the mimeType reads %q", kind)
	}
	post("mimeType", `"multipart/alternative"`, 0)
	post("mimeType", `"text/plain"`, 0)
	post("mimeType", `"text/rtf"`, 2003)
	post("mimeType", `null`, 2000)
	post("workflow", `"reset"`, 2015)
}

func TestTemplateMacros(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := templates(b.directory("Staff"))
	for workflow, collection := range all {
		template := b.template(collection)
		for _, broken := range []string{
			"${", "$!{", "${url} ${account.email", "${url} $!{}", "${url} ${}", "${url} ${ account.email }", "${url} ${1}",
			"${url} $!{account.getClass()}",
		} {
			b.Post(template, `{"textBody":`+quoted(broken)+`}`).WantError(400, 2006)
			b.Post(template, `{"htmlBody":`+quoted(broken)+`}`).WantError(400, 2006)
		}
		for _, fine := range []string{
			"${url} $5 and $ and $! and {x}", "${url} ${unknown.thing} $!{application.customData.a_b-1}",
		} {
			b.Post(template, `{"textBody":`+quoted(fine)+`,"htmlBody":`+quoted(fine)+`}`).Want(200)
		}
		code := 0
		if workflow == "verification" || workflow == "reset" {
			code = 7301
		}
		for _, c := range []struct {
			kind, text, html string
			code             int
		}{
			{"text/plain", "Hello", "$!{url}", code},
			{"text/plain", "url sptoken {url} $url ${URL} ${account.url}", "$!{url}", code},
			{"text/plain", "$!{url}", "Hello", 0},
			{"text/plain", "${url}", "Hello", 0},
			{"text/plain", "$!{sptoken}", "Hello", 0},
			{"text/plain", "${sptoken}", "Hello", 0},
			{"text/plain", "$!{sptokenNameValuePair}", "Hello", 0},
			{"text/plain", "${sptokenNameValuePair}", "Hello", 0},
			{"text/html", "${url}", "Hello", code},
			{"text/html", "Hello", "${url}", 0},
			{"multipart/alternative", "${url}", "Hello", code},
			{"multipart/alternative", "Hello", "${url}", code},
			{"multipart/alternative", "${url}", "${sptoken}", 0},
		} {
			answer := b.Post(template, `{"mimeType":"`+c.kind+`","textBody":`+quoted(c.text)+`,"htmlBody":`+quoted(c.html)+`}`)
			if c.code == 0 {
				answer.Want(200)
				continue
			}
			answer.WantError(400, c.code)
		}
	}
}

// The check looks at what will be sent, not at what the body names.
func TestATemplateIsCheckedAsItWillBe(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	template := b.template(templates(b.directory("Staff"))["verification"])
	b.Post(template, `{"htmlBody":"Hello"}`).Want(200)
	b.Post(template, `{"mimeType":"text/html"}`).WantError(400, 7301)
	b.Post(template, `{"mimeType":"multipart/alternative"}`).WantError(400, 7301)
	b.Post(template, `{"mimeType":"text/html","htmlBody":"${url}"}`).Want(200)
	b.Post(template, `{"htmlBody":"Hello"}`).WantError(400, 7301)
	b.Post(template, `{"textBody":"Hello"}`).Want(200)
	b.Post(template, `{"mimeType":"text/plain"}`).WantError(400, 7301)
	b.Get(template).Want(200).Golden("template_after_refusals")
}

func TestLinkBaseURL(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := templates(b.directory("Staff"))
	long := "https://example.test/" + strings.Repeat("a", 2000-len("https://example.test/"))
	for _, workflow := range []string{"verification", "reset"} {
		template := b.template(all[workflow])
		for _, good := range []string{
			"https://example.test", "http://localhost:3000/verify", "HTTPS://example.test/a?b=c&d=%20#/e",
			"https://[::1]:8443/x",
			"myapp://verify", "com.example.app:/verify", "https://tëst.example/ü", long,
		} {
			answer := b.Post(template, `{"defaultModel":{"linkBaseUrl":`+quoted(good)+`}}`).Want(200)
			if model := answer.Object()["defaultModel"].(map[string]any); model["linkBaseUrl"] != good {
				t.Errorf("the link reads %v, want %s", model, good)
			}
		}
		for _, bad := range []string{
			"verify", "/verify", "//example.test/verify", "example.test", "https:", "https://", "https:///verify",
			"https:example.test", "http://:80",
			"javascript:alert(1)", "JavaScript:alert(1)", "javascript://example.test/%0aalert(1)", "vbscript:x",
			"data:text/html,x", "DATA:text/html;base64,x",
			"file:///etc/passwd", "blob:https://example.test/x", "java\nscript:alert(1)", "https://example.test/\r\nBcc: x",
			"https://example.test/a b",
			"https://example.test/\u202egnp", "https://example.test/\"onclick=", "https://example.test/<b>",
			`https://example.test\@evil.example`, "https://exa mple.test",
			"https://example.test/\u0000", "https://example.test/%zz", "1app://x", "https://example.test:port/",
		} {
			b.Post(template, `{"defaultModel":{"linkBaseUrl":`+quoted(bad)+`}}`).WantError(400, 2006)
		}
		b.Post(template, `{"defaultModel":{"linkBaseUrl":""}}`).WantError(400, 2000)
		b.Post(template, `{"defaultModel":{"linkBaseUrl":" "}}`).WantError(400, 2000)
		b.Post(template, `{"defaultModel":{"linkBaseUrl":`+quoted(long+"a")+`}}`).WantError(400, 2008)
		b.Post(template, `{"defaultModel":{"linkBaseUrl":1}}`).WantError(400, 2004)
		b.Post(template, `{"defaultModel":"https://example.test"}`).WantError(400, 2004)
		b.Post(template, `{"defaultModel":{"linkBaseUrl":"https://example.test","colour":"red"}}`).WantError(400, 2015)
	}
	for _, workflow := range []string{"verificationSuccess", "welcome", "resetSuccess"} {
		template := b.template(all[workflow])
		b.Post(template, `{"defaultModel":{"linkBaseUrl":"https://example.test"}}`).WantError(400, 2017)
		b.Post(template, `{"defaultModel":{"linkBaseUrl":null}}`).Want(200)
		b.Post(template, `{"defaultModel":{}}`).Want(200)
		b.Post(template, `{"defaultModel":null}`).Want(200)
		if model, there := b.Get(template).Want(200).Object()["defaultModel"]; there {
			t.Errorf("the template of %s has the defaultModel %v", workflow, model)
		}
	}
}

func TestTheTemplatesOfAMirrorAreReadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	b.mirrored(staff)
	for _, collection := range templates(staff) {
		template := b.template(collection)
		b.Post(template, `{"subject":"Mine"}`).WantError(400, 7202)
	}
	b.Get(b.template(templates(staff)["reset"])).Want(200).Golden("template_reset")
}
