// Package clientcredential reads by what a call to an endpoint of an OpenID provider shows who its client is. It
// verifies nothing: the OAuth service does, and gateway/clientlimit.go counts by what that has found.
package clientcredential

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/pkg/secure"
)

// Credential is the client authentication or the access token of a call.
type Credential struct {
	// Client is the client_id that the call names, which is no secret; empty: an opaque token names none.
	Client string
	// Key is the hash of a secret or an opaque token with what it belongs to. A signed text is another one in each
	// call: its hash is that of the client and the address.
	Key [sha256.Size]byte
	// Signed says that Key is that of a signed text.
	Signed bool
}

// Of returns the credential of a request from an address; ok is false for a request without one.
func Of(request *fasthttp.Request, from [16]byte) (c Credential, ok bool) {
	if header := request.Header.Peek("Authorization"); len(header) > 0 {
		scheme, text, _ := bytes.Cut(header, []byte{' '})
		if !bytes.EqualFold(scheme, []byte("Basic")) {
			return token(string(text), from), true
		}
		plain, _ := base64.StdEncoding.DecodeString(string(text))
		client, _, _ := strings.Cut(string(plain), ":")
		return Credential{Client: client, Key: hash("basic", client, string(text))}, true
	}
	form, _ := url.ParseQuery(string(request.Body()))
	switch assertion, client := secure.Secret(form.Get("client_assertion")), form.Get("client_id"); {
	case assertion != "":
		return signed("assertion", claim(assertion, "sub"), from), true
	case form.Get("client_secret") != "":
		return Credential{Client: client, Key: hash("post", client, form.Get("client_secret"))}, true
	case form.Get("access_token") != "":
		return token(form.Get("access_token"), from), true
	}
	return c, false
}

func token(text string, from [16]byte) Credential {
	if client := claim(secure.Secret(text), "client_id"); client != "" {
		return signed("token", client, from)
	}
	return Credential{Key: hash("token", text)}
}

func signed(kind, client string, from [16]byte) Credential {
	return Credential{Client: client, Key: hash(kind, client, string(from[:])), Signed: true}
}

// claim returns a claim of a JWT without verifying it; empty: there is none.
func claim(jwt secure.Secret, name string) string {
	claims, err := secure.UnverifiedClaims(jwt)
	if err != nil {
		return ""
	}
	text, _ := claims[name].(string)
	return text
}

// hash returns the hash of texts, of which none can be taken for a part of another.
func hash(texts ...string) [sha256.Size]byte {
	h := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		_, _ = h.Write(sum[:]) // never fails
	}
	return [sha256.Size]byte(h.Sum(nil))
}
