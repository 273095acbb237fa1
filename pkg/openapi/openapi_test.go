package openapi_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/openapi"
)

var deployment = openapi.Deployment{Base: "https://id.example.test/v1", Alias: "acme"}

func TestTheDocumentSpeaksTheDeploymentsAddressAndAlias(t *testing.T) {
	d, err := openapi.New(deployment)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"https://id.example.test"`, "acme_social", "acme_access_token_href", "Acme-Request-Id"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document has no %s", want)
		}
	}
	for _, other := range []string{"{{", "<accountId>", "service_token", "localhost:8443"} {
		if strings.Contains(string(text), other) {
			t.Errorf("the document has %s", other)
		}
	}
}

func TestEveryTopicHasAPage(t *testing.T) {
	d, err := openapi.New(deployment)
	if err != nil {
		t.Fatal(err)
	}
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
	d, err := openapi.New(deployment)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range apierr.All() {
		if found := regexp.MustCompile(fmt.Sprintf("(code |`)%d[`)]", e.Code)).Match(text); found == (undescribed[e.Code] != "") {
			t.Errorf("the code %d is described: %t", e.Code, found)
		}
	}
}
