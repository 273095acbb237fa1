package notification

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" // the algorithm of the provider
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/store"
)

// SMSReceipt is a delivery receipt: a request by which the SMS provider reports the state of
// a text message. RecordSMSReceipt (smschannel.go) writes that state.
type SMSReceipt struct {
	Signature string // X-Twilio-Signature
	Form      url.Values
}

// isSigned reports whether the provider has signed the receipt for the address that the
// receipt was sent to. A provider may sign the address with its port or without it.
func (r SMSReceipt) isSigned(token secure.Secret, address string) bool {
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

// sign returns the signature of the receipt: the HMAC-SHA-1, with the account's token as the
// key, of the address and of the names and values of the fields, sorted by name.
func (r SMSReceipt) sign(token secure.Secret, address string) []byte {
	mac := hmac.New(sha1.New, []byte(token))
	mac.Write([]byte(address))
	for _, name := range slices.Sorted(maps.Keys(r.Form)) {
		for _, value := range slices.Compact(slices.Sorted(slices.Values(r.Form[name]))) {
			mac.Write([]byte(name + value))
		}
	}
	return mac.Sum(nil)
}

// finalState returns the final state of the delivery that the receipt reports and, for a
// failure, the reason. It returns "" where the reported state is not final.
func (r SMSReceipt) finalState() (state store.State, reason string) {
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
