package idsite

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/store"
)

var testNow = time.Date(2026, 11, 21, 6, 30, 0, 0, time.UTC)

func tokenService(t testing.TB) *Service {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	peers := Peers{Application: anyOrganization{}}
	return New(nil, peers, ring, func() time.Time { return testNow }, Config{Base: "https://localhost:8443/v1"})
}

// anyOrganization has an organization of every nameKey.
type anyOrganization struct{ applicationapi.Contract }

func (anyOrganization) LoginDirectories(_ context.Context, in applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	return applicationapi.LoginDirectories{Organization: id.New(testNow), NameKey: in.NameKey}, nil
}

// wantPlain checks the claims of a session token that has text in every place
// which a client can write: they have no character of URL-safe Base64 alone, and
// the text comes back.
func wantPlain(t *testing.T, s *Service, hostile string) {
	t.Helper()
	flow := store.Flow{
		TenantID: id.New(testNow), ID: id.New(testNow), ApplicationID: id.New(testNow), RequestID: hostile, CallbackURI: hostile, State: &hostile,
		NameKey: hostile, AccountStore: hostile, Token: hostile, FactorTypes: []string{"sms"}, ExpiresAt: testNow.Add(time.Hour),
	}
	token, err := s.newPageToken(t.Context(), flow, store.Site{DomainName: "calm-otter.id.localhost", SessionTTI: "PT30M"})
	if err != nil {
		t.Fatal(err)
	}
	claims := strings.Split(token.Reveal(), ".")[1]
	if strings.ContainsAny(claims, "-_") {
		t.Fatalf("the claims with %q have - or _: %s", hostile, claims)
	}
	body, err := base64.RawStdEncoding.DecodeString(claims)
	if err != nil {
		t.Fatal(err)
	}
	var read pageTokenClaims
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	want := strings.ToValidUTF8(hostile, "\ufffd")
	if hostile == want && (read.Callback != want || read.RequestID != want || read.Token != want) {
		t.Fatalf("%q is read as %+v", want, read)
	}
}

func TestTheClaimsOfASessionTokenArePlainBase64(t *testing.T) {
	t.Parallel()
	s := tokenService(t)
	for _, hostile := range []string{
		"", "?", "??", "???", ">>>", "~~~", "\x7f\x7f", "https://app.localhost/cb?a=b&c=~d>e", "ÿÿÿ", "日本語", "😀😀", "\u2028", "\"\\</script>",
	} {
		for padding := range 3 { // every alignment of the groups of three bytes
			wantPlain(t, s, strings.Repeat("x", padding)+hostile)
		}
	}
	letters := []rune("ab?>~\x7fÿ\u07ff\uffff😀\\\"&<\n")
	for range 500 {
		text := make([]rune, rand.IntN(40))
		for i := range text {
			text[i] = letters[rand.IntN(len(letters))]
		}
		wantPlain(t, s, string(text))
	}
}

func FuzzSessionClaims(f *testing.F) {
	for _, seed := range []string{"https://app.localhost/cb?a=~", "ÿ?>", "\xff\xfe", "😀"} {
		f.Add(seed)
	}
	s := tokenService(f)
	f.Fuzz(func(t *testing.T, text string) { wantPlain(t, s, text) })
}

// The claims of a request are text, numbers or anything else: reading them ends,
// and what they mean is bounded.
func FuzzRequestClaims(f *testing.F) {
	for _, seed := range []string{
		`{"jti":"1","iat":1795242600,"path":"/#/register","state":"s","require_mfa":["sms"]}`,
		`{"jti":"","iat":"x","exp":1e99,"path":"//evil.test","require_mfa":"none"}`, `{"iat":-1,"path":"/\\evil?x#y","require_mfa":[1]}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var r request
		if json.Unmarshal([]byte(text), &r.claims) != nil {
			return
		}
		path := r.pagePath()
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "?#\\\r\n \x00") {
			t.Fatalf("%s leads to the path %q", text, path)
		}
		if raw, given := r.claims["require_mfa"]; given && string(raw) != "null" && string(raw) != "[]" && len(r.factorTypes()) == 0 {
			t.Fatalf("%s loses its second step", text)
		}
		if err := r.validate(testNow); err == nil && (r.stringClaim("jti") == "" || len(r.stringClaim("jti")) > maxRequestID) {
			t.Fatalf("%s is accepted", text)
		}
		r.state()
		r.boolClaim("sof")
	})
}
