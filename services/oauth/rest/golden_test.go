package rest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/doorward/doorward/services/oauth/internal/oauthtest"
)

var update = flag.Bool("update", false, "write the golden answers instead of comparing with them")

// golden compares a JSON answer with testdata, in which the values that differ
// from run to run stand under the given names.
func golden(t *testing.T, name string, d *oauthtest.Deployment, body string, names map[string]string) {
	t.Helper()
	pairs := []string{
		d.Tenant.String(), "<tenant>", d.Administrator.String(), "<administrator>", d.Account.String(), "<account>",
		d.Application.String(), "<application>", d.Key, "<key>",
	}
	for value, placeholder := range names {
		pairs = append(pairs, value, placeholder)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(strings.NewReplacer(pairs...).Replace(body)), "", "  "); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	pretty.WriteByte('\n')
	file := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(file, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if pretty.String() != string(want) {
		t.Errorf("%s is now\n%swant\n%s", name, pretty.String(), want)
	}
}
