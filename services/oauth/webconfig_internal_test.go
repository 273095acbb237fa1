package oauth

import (
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
)

// With any body a web config has only valid values, and an error has a status of the client (4xx).
func FuzzWebConfigChange(f *testing.F) {
	for _, seed := range []string{
		`{"status":"DISABLED","login":{"enabled":"false"},"verifyEmail":{"enabled":null}}`,
		`{"me":{"enabled":true,"expand":{"groups":true,"tenant":"false"}},"mfa":{"required":true,"factorTypes":["SMS","sms"]}}`,
		`{"signingApiKey":null,"dnsLabel":"calm-otter","me":{"expand":{"groups":null}}}`,
		`{"mfa":{"factorTypes":[]},"oauth2":{"x":1}}`, `{"register":[],"me":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var in WebConfigChange
		c := defaultWebConfig(applicationapi.Application{})
		err := field.Decode(body, &in, nil)
		if err == nil {
			err = in.apply(&c, "")
		}
		if err != nil {
			if status := apierr.From(err).Status; status != 400 {
				t.Fatalf("%q: %d %v", body, status, err)
			}
			return
		}
		if c.Status != directoryapi.Enabled && c.Status != directoryapi.Disabled {
			t.Fatalf("%q: the status is %q", body, c.Status)
		}
		for _, list := range []struct{ some, all []string }{{c.MeExpand, MeExpansions}, {c.FactorTypes, mfaapi.Types}} {
			for i, name := range list.some {
				if !slices.Contains(list.all, name) || slices.Contains(list.some[:i], name) {
					t.Fatalf("%q returns %v", body, list.some)
				}
			}
		}
		if len(c.FactorTypes) == 0 {
			t.Fatalf("%q leaves no type of factor", body)
		}
	})
}
