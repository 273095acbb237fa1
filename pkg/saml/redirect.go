package saml

import (
	"bytes"
	"compress/flate"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
)

// LoginRequest is an AuthnRequest that the service provider sends: it asks an identity provider to
// log a user in (SAML 2.0 profiles, section 4.1.4.1). request.go reads received AuthnRequests.
type LoginRequest struct {
	ID          string // as an xs:ID: it begins with a letter or _
	Issuer      string // entity id of the service provider
	Destination string // of the identity provider
	ConsumerURL string // assertion consumer URL, to which the response is sent
	ForceAuthn  bool
	Now         time.Time
}

// Redirect returns the URL that sends the request to the identity provider by HTTP-Redirect.
func (r LoginRequest) Redirect(pair KeyPair, algorithm, relayState string) (string, error) {
	format, create := EmailNameID, true
	request := saml.AuthnRequest{
		ID: r.ID, Version: "2.0", IssueInstant: r.Now.UTC(), Destination: r.Destination,
		Issuer:                      &saml.Issuer{Value: r.Issuer},
		AssertionConsumerServiceURL: r.ConsumerURL, ProtocolBinding: postBinding,
		NameIDPolicy: &saml.NameIDPolicy{Format: &format, AllowCreate: &create},
	}
	if r.ForceAuthn {
		request.ForceAuthn = &r.ForceAuthn
	}
	return redirect(r.Destination, request.Element(), pair, algorithm, relayState)
}

// LogoutRequest is the request of single logout (SLO) that the service provider sends: it informs an
// identity provider that a user has logged out (SAML 2.0 profiles, section 4.4.4.1).
type LogoutRequest struct {
	Issuer       string // entity id of the service provider
	Destination  string // of the identity provider
	NameID       string
	NameIDFormat string
	SessionIndex string // empty: all sessions
	Now          time.Time
}

// Redirect returns the URL that sends the request to the identity provider by HTTP-Redirect.
func (r LogoutRequest) Redirect(pair KeyPair, algorithm, relayState string) (string, error) {
	until := r.Now.UTC().Add(responseLife)
	request := saml.LogoutRequest{
		ID: newMessageID(), Version: "2.0", IssueInstant: r.Now.UTC(), NotOnOrAfter: &until, Destination: r.Destination,
		Issuer: &saml.Issuer{Value: r.Issuer}, NameID: &saml.NameID{Format: r.NameIDFormat, Value: xmlText(r.NameID)},
	}
	if r.SessionIndex != "" {
		request.SessionIndex = &saml.SessionIndex{Value: xmlText(r.SessionIndex)}
	}
	return redirect(r.Destination, request.Element(), pair, algorithm, relayState)
}

// redirect returns the URL of a signed request by the binding HTTP-Redirect (SAML 2.0 bindings,
// section 3.4.4.1).
func redirect(destination string, request *etree.Element, pair KeyPair, algorithm, relayState string) (string, error) {
	text, err := marshalCanonical(request)
	if err != nil {
		return "", err
	}
	compressed, err := deflate(text)
	if err != nil {
		return "", err
	}
	query := "SAMLRequest=" + url.QueryEscape(base64.StdEncoding.EncodeToString(compressed))
	if relayState != "" {
		query += "&RelayState=" + url.QueryEscape(relayState)
	}
	query += "&SigAlg=" + url.QueryEscape(signatureMethods[algorithm])
	signature, err := signText(pair, algorithm, query)
	if err != nil {
		return "", err
	}
	separator := "?"
	if strings.Contains(destination, "?") {
		separator = "&"
	}
	signed := query + "&Signature=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	return destination + separator + signed, nil
}

// compressorPool keeps compressors, because each allocates some 1.2 MB. A better compression level
// would clear most of that for each message.
var compressorPool = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // fails for an unknown level alone
	return w
}}

func deflate(text []byte) ([]byte, error) {
	writer, _ := compressorPool.Get().(*flate.Writer)
	defer compressorPool.Put(writer)
	var compressed bytes.Buffer
	writer.Reset(&compressed)
	_, err := writer.Write(text)
	err = errors.Join(err, writer.Close())
	return compressed.Bytes(), err
}

func signText(pair KeyPair, algorithm, text string) ([]byte, error) {
	hash, known := signatureHashes[signatureMethods[algorithm]]
	if !known {
		return nil, errors.New("the algorithm is unknown")
	}
	h := hash.New()
	h.Write([]byte(text))
	return rsa.SignPKCS1v15(rand.Reader, pair.Key, hash, h.Sum(nil))
}
