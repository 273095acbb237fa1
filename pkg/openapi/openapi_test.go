package openapi_test

import (
	"fmt"
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
