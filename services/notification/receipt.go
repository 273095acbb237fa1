package notification

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" // the provider signs so
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// Receipt is a request by which the provider reports the state of a text.
type Receipt struct {
	Signature string // X-Twilio-Signature
	Form      url.Values
}

// isSigned reports whether the signature is that of the receipt at an address.
// Providers write its port or leave it out: either way is right.
func (r Receipt) isSigned(token secure.Secret, address string) bool {
	signature, err := base64.StdEncoding.DecodeString(r.Signature)
	if err != nil {
		return false
	}
	at, err := url.Parse(address)
	if err != nil {
		return false
	}
	name, port := strings.TrimSuffix(at.Host, ":"+at.Port()), cmp.Or(at.Port(), "443")
	for _, at.Host = range []string{name, name + ":" + port} {
		if hmac.Equal(signature, r.sign(token, at.String())) {
			return true
		}
	}
	return false
}

// sign is the HMAC-SHA-1, under the account's token, over the address and each
// field's name and value in the order of the names.
func (r Receipt) sign(token secure.Secret, address string) []byte {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(address))
	for _, name := range slices.Sorted(maps.Keys(r.Form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(r.Form[name]))) {
			mac.Write([]byte(name + value))
		}
	}
	return mac.Sum(nil)
}

// finalState returns the state of a delivery that the receipt reports, and the
// reason; empty for a state that is not final.
func (r Receipt) finalState() (state, reason string) {
	switch strings.ToLower(r.Form.Get("MessageStatus")) {
	case "delivered", "read":
		return store.Delivered, ""
	case "undelivered", "failed":
		reason = "the provider could not deliver it"
		if code := r.Form.Get("ErrorCode"); code != "" && len(code) <= 10 && strings.Trim(code, "0123456789") == "" {
			reason += ": code " + code
		}
		return store.Failed, reason
	}
	return "", ""
}
