package rest_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/rest/resttest"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

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
	resttest.CompareJSON(t, name, []byte(strings.NewReplacer(pairs...).Replace(body)))
}
