package openapi_test

import (
	"os"
	"testing"

	"github.com/doorward/doorward/pkg/openapi"
)

var deployment = openapi.Deployment{Base: "https://localhost:8443/v1", Alias: "service"}

func TestWrite(t *testing.T) {
	d, err := openapi.New(deployment)
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/oa/openapi.yaml", text, 0o644)
	text, err = d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	os.WriteFile("/tmp/oa/openapi.json", text, 0o644)
	t.Log(len(text), len(d.Operations))
}
