package directoryview

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

// Whatever stands in place of a social login, it is one that proves
// something, a link, or refused for what the client did.
func FuzzProviderData(f *testing.F) {
	for _, seed := range []string{`{"providerId":"google","code":"c"}`, `{"href":"x"}`,
		`{"providerId":"twitter","accessToken":"a","accessTokenSecret":"s"}`,
		`{"providerId":"GitHub","accessToken":"a","accountStore":{"nameKey":"bank"}}`, `{}`, `[]`, `{"accountStore":null}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		var in providerData
		err := json.Unmarshal([]byte(data), &in)
		if err != nil || in.isLink {
			return
		}
		l, err := in.login()
		if err != nil {
			if refusal := apierr.From(err); refusal.Status != http.StatusBadRequest {
				t.Errorf("%q is refused with %v", data, err)
			}
			return
		}
		if l.Provider == "" || (l.AccessToken == "") == (l.Code == "") {
			t.Errorf("%q proves nothing: %+v", data, l)
		}
	})
}
