package rest

import (
	"net/url"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth"
)

// FuzzParseEncryption checks that the parser never panics, refuses with an error of the catalogue,
// allows no more iterations than the limit, and never drops a request for encryption.
func FuzzParseEncryption(f *testing.F) {
	for _, seed := range []string{
		"", "encryptSecret=true", "encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0ODw", "encryptSecret=false&x=y&&=",
		"encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0ODw&encryptionKeySize=256&encryptionKeyIterations=65537",
		"%65ncryptSecret=%74rue",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		encryption, others, err := parseEncryption(query)
		if err != nil {
			if apierr.From(err).Status != 400 {
				t.Fatalf("%q: %v", query, err)
			}
			return
		}
		asked, err := url.ParseQuery(query)
		if err == nil && asked.Get(encryptSecret) == "true" && encryption == nil {
			t.Fatalf("%q is not encrypted", query)
		}
		if encryption != nil && (len(encryption.Salt) != saltLength || encryption.Bits > 256 || encryption.Iterations < 1 ||
			encryption.Iterations > oauth.MaxIterations) {
			t.Fatalf("%q asks for %+v", query, encryption)
		}
		if left, err := url.ParseQuery(others); err == nil && left.Has(encryptSecret) {
			t.Fatalf("%q leaves %q", query, others)
		}
	})
}
