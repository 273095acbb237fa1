// Package signaturetest signs requests in tests as a client does.
package signaturetest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/secure"
)

// Sign fills in the signature of a request as the owner of the secret does
// (docs/interface/authentication.md#sauthc1).
func Sign(in oauthapi.VerifySignature, secret secure.Secret) oauthapi.VerifySignature {
	link := func(key []byte, text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	date, _, _ := strings.Cut(in.Timestamp, "T")
	k1 := link([]byte("SAuthc1"+secret.Reveal()), date)
	k2 := link(k1, in.Nonce)
	k3 := link(k2, "sauthc1_request")
	id := in.ID + "/" + date + "/" + in.Nonce + "/sauthc1_request"
	in.Signature = hex.EncodeToString(link(k3, "HMAC-SHA-256\n"+in.Timestamp+"\n"+id+"\n"+in.Request))
	return in
}
