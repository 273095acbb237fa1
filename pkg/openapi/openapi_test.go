package openapi_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/openapi"
)

func open(t *testing.T) *openapi.Document {
	t.Helper()
	d, err := openapi.New(openapi.Deployment{Base: "https://id.example.test/v1", Alias: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// written returns the document as JSON.
func written(t *testing.T) string {
	t.Helper()
	text, err := open(t).JSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheDocumentSpeaksTheDeploymentsAddressAndAlias(t *testing.T) {
	text := written(t)
	for _, want := range []string{`"https://id.example.test"`, "acme_social", "acme_access_token_href", "Acme-Request-Id"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %s", want)
		}
	}
	for _, other := range []string{"{{", "<accountId>", "service_token", "localhost:8443"} {
		if strings.Contains(text, other) {
			t.Errorf("the document has %s", other)
		}
	}
}

func TestEveryTopicHasAPage(t *testing.T) {
	d := open(t)
	files, err := d.Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range d.Operations {
		page := string(files[strings.ReplaceAll(strings.ToLower(op.Topic), " ", "-")].Body)
		if !strings.Contains(page, `<section id="`+op.ID+`">`) {
			t.Errorf("the page of %s has no %s", op.Topic, op.ID)
		}
	}
	for name, file := range files {
		for _, unsafe := range []string{"<style", "style=", "onclick", "<script>", "//cdn"} {
			if strings.Contains(string(file.Body), unsafe) {
				t.Errorf("%s has %s, which its policy refuses", name, unsafe)
			}
		}
	}
}

// undescribed are the errors that no operation of the document answers, each with
// the reason.
var undescribed = map[int]string{
	1100: "methods that a resource does not have are no operations",
	2011: "reserved", 2020: "reserved", 2023: "reserved",
	2024: "the page of an invitation, which is for people",
}

func TestEveryCodeStandsAtAnOperation(t *testing.T) {
	text := written(t)
	for _, e := range apierr.All() {
		if found := regexp.MustCompile(fmt.Sprintf("(code |`)%d[`)]", e.Code)).MatchString(text); found == (undescribed[e.Code] != "") {
			t.Errorf("the code %d is described: %t", e.Code, found)
		}
	}
}

// The claims of a hosted login are one table: source/idsite.yaml, which docs/interface/id-site.md repeats.
func TestTheDocsHaveTheClaimsOfAHostedLogin(t *testing.T) {
	d := open(t)
	text, err := os.ReadFile("../../docs/interface/id-site.md")
	if err != nil {
		t.Fatal(err)
	}
	table := "| Claim | Required | |\n|---|---|---|\n"
	for _, c := range d.Claims.Request {
		required := "no"
		if c.Required {
			required = "yes"
		}
		table += "| " + c.Name + " | " + required + " | " + c.Text + " |\n"
	}
	if !strings.Contains(string(text), table) {
		t.Errorf("docs/interface/id-site.md lacks the table of the request's claims:\n%s", table)
	}
	table = "| Claim | |\n|---|---|\n"
	for _, c := range d.Claims.Assertion {
		table += "| " + c.Name + " | " + c.Text + " |\n"
	}
	if !strings.Contains(string(text), table) {
		t.Errorf("docs/interface/id-site.md lacks the table of the assertion's claims:\n%s", table)
	}
	files, err := d.Pages()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(d.Claims.Request, d.Claims.Assertion...) {
		if !strings.Contains(string(files["hosted-login-guide"].Body), "<td><code>"+c.Name+"</code></td>") {
			t.Errorf("the guide to hosted logins lacks the claim %s", c.Name)
		}
	}
}

// Browsers and pages call what needs no API key, so its examples send none.
func TestExamplesOfPublicOperationsSendNoAPIKey(t *testing.T) {
	files, err := open(t).Pages()
	if err != nil {
		t.Fatal(err)
	}
	for command := range strings.SplitSeq(string(files["id-site"].Body), "<pre><code>") {
		command, _, _ = strings.Cut(command, "</code>")
		if strings.Contains(command, "/sso") && strings.Contains(command, "curl.conf") {
			t.Errorf("an example sends the API key: %s", command)
		}
	}
}
