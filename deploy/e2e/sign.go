package e2e

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Signed is a request that is signed with the client's API key by the digest scheme SAuthc1,
// which does not send the secret, as the published client libraries do it. The
// body, if there is one, is JSON. It can be sent once.
func (c *Client) Signed(method, address string, body []byte, at time.Time) Request {
	if strings.HasPrefix(address, "/") {
		address = c.Key.BaseURL + address
	}
	target, err := url.Parse(address)
	if err != nil {
		panic("a scenario signs an unreadable address: " + err.Error())
	}
	timestamp := at.UTC().Format("20060102T150405Z")
	date, nonce := timestamp[:8], strings.ToLower(rand.Text())
	path := "/"
	if target.Path != "" {
		path = strings.ReplaceAll(escape(target.Path), "%2F", "/")
	}
	const signed = "host;x-service-date"
	canonical := strings.Join([]string{
		method, path, canonicalQuery(target.Query()),
		"host:" + target.Host + "\nx-service-date:" + timestamp + "\n",
		signed, digest(body),
	}, "\n")
	id := strings.Join([]string{c.Key.ID, date, nonce, "sauthc1_request"}, "/")
	key := []byte("SAuthc1" + c.Key.Secret)
	for _, step := range []string{date, nonce, "sauthc1_request"} {
		key = mac(key, step)
	}
	signature := mac(key, strings.Join([]string{"HMAC-SHA-256", timestamp, id, digest([]byte(canonical))}, "\n"))
	request := Request{Method: method, URL: address, Anonymous: true, Header: http.Header{
		"X-Service-Date": {timestamp},
		"Authorization":  {fmt.Sprintf("SAuthc1 sauthc1Id=%s, sauthc1SignedHeaders=%s, sauthc1Signature=%x", id, signed, signature)},
	}}
	if body != nil {
		request.Body = body
		request.Header.Set("Content-Type", "application/json")
	}
	return request
}

// canonicalQuery spells the decoded pairs of a query in the order of name and
// value.
func canonicalQuery(values url.Values) string {
	var pairs []string
	for name, all := range values {
		for _, value := range all {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape leaves the letters, the digits, and - _ . ~ as they are.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
