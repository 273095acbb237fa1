package openid_test

import (
	"crypto"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
)

func TestDPoP(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	p := newParty(t, d, d.Site, relyingparty.Change{DPoPBoundAccessTokens: field.Some(true)})
	p.refuse("no proof", "invalid_dpop_proof", p.redeem(p.code(nil)))
	p.key = newKeyPair(t)
	issued := p.token(p.redeem(p.code(nil)))
	sum, err := (&jose.JSONWebKey{Key: p.key.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	_, claims := p.claims(issued.AccessToken)
	if cnf, _ := claims["cnf"].(map[string]any); issued.TokenType != "DPoP" ||
		cnf["jkt"] != base64.RawURLEncoding.EncodeToString(sum) {
		t.Errorf("the token has %v and the type %s", claims, issued.TokenType)
	}
	withProof := func(proofs ...string) openid.Call {
		in := p.refresh(issued.RefreshToken)
		in.Proofs = proofs
		return in
	}
	now := d.Clock.Now()
	used := p.proof("/token", nil)
	issued = p.token(withProof(used))
	replica := d.Replica(t)
	if _, err := replica.OpenID.Token(t.Context(), withProof(used)); err == nil {
		t.Error("another process accepts a proof that was used")
	}
	address := issuerOf(t, d, d.Site) + "/token"
	for _, change := range []map[string]any{
		{"iat": now.Add(10 * time.Second).Unix()}, {"iat": now.Add(-10 * time.Second).Unix()}, {"nbf": 1, "exp": 1,
			"more": "x"},
		{"htu": address + "?x=1#y"}, {"htu": strings.Replace(address, "https://id.example.test",
			"HTTPS://ID.example.test:443", 1)},
	} {
		issued = p.token(withProof(p.proof("/token", change)))
	}
	for name, in := range map[string]openid.Call{
		"two proofs":      withProof(p.proof("/token", nil), p.proof("/token", nil)),
		"no proof":        withProof(),
		"no JWT":          withProof("x"),
		"another method":  withProof(p.proof("/token", map[string]any{"htm": "GET"})),
		"another address": withProof(p.proof("/userinfo", nil)),
		"no jti":          withProof(p.proof("/token", map[string]any{"jti": nil})),
		"no method":       withProof(p.proof("/token", map[string]any{"htm": nil})),
		"no address":      withProof(p.proof("/token", map[string]any{"htu": nil})),
		"no time":         withProof(p.proof("/token", map[string]any{"iat": nil})),
	} {
		p.refuse(name, "invalid_dpop_proof", in)
	}
	p.refuse("a time that is off", "use_dpop_nonce", withProof(p.proof("/token",
		map[string]any{"iat": now.Add(-time.Hour).Unix()})))
	p.refuse("a nonce of somebody", "use_dpop_nonce", withProof(p.proof("/token", map[string]any{"nonce": "x"})))
	p.refuse("an hour off with a nonce", "invalid_dpop_proof",
		withProof(p.proof("/token", map[string]any{"nonce": d.Service.Nonce(), "iat": now.Add(-time.Hour).Unix()})))
	issued = p.token(withProof(p.proof("/token", map[string]any{"nonce": replica.Nonce(),
		"iat": now.Add(-2 * time.Minute).Unix()})))

	t.Run("UserInfo needs the proof", func(t *testing.T) {
		hash := sha256.Sum256([]byte(issued.AccessToken))
		good := map[string]any{"ath": base64.RawURLEncoding.EncodeToString(hash[:])}
		ask := func(scheme string, proofs ...string) error {
			_, err := d.Service.UserInfo(t.Context(), openid.Call{Application: d.Site.Application, Method: "POST",
				Endpoint: "/userinfo", Scheme: scheme,
				Bearer: secure.Secret(issued.AccessToken), Proofs: proofs})
			return err
		}
		if err := ask("dpop", p.proof("/userinfo", good)); err != nil {
			t.Error(err)
		}
		wantError(t, "no proof", "invalid_token", ask("dpop"))
		wantError(t, "the scheme Bearer", "invalid_token", ask("bearer", p.proof("/userinfo", good)))
		wantError(t, "no ath", "invalid_dpop_proof", ask("dpop", p.proof("/userinfo", nil)))
		thief := *p
		thief.key = newKeyPair(t)
		wantError(t, "another key", "invalid_token", ask("dpop", thief.proof("/userinfo", good)))
	})
	t.Run("the refresh token of a public client is bound", func(t *testing.T) {
		public := newParty(t, d, d.Site, relyingparty.Change{ApplicationType: field.Some("browser")})
		public.key = newKeyPair(t)
		first := public.token(public.redeem(public.code(nil)))
		public.key = newKeyPair(t)
		public.refuse("another key", "invalid_dpop_proof", public.refresh(first.RefreshToken))
	})
	t.Run("a code is bound to the key of its request", func(t *testing.T) {
		code := p.code(func(in *oauthapi.IssueCode) { in.DPoPKey = "another" })
		p.refuse("another key", "invalid_dpop_proof", p.redeem(code))
	})
}
