package openapi_test

import (
	"strings"
	"testing"

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
