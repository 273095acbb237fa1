package contract_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

func assertions(t *testing.T, s surroundings) {
	key := made(t, s, s.Administrator)
	signed, err := s.API.SignAssertion(t.Context(), oauthapi.SignAssertion{
		Tenant: s.Tenant, KeyID: key.ID, Claims: json.RawMessage(`{"aud":"","state":12345678901234567890}`),
	})
	if err != nil || signed.KeyID != key.ID {
		t.Fatalf("the assertion is signed by %s, %v", signed.KeyID, err)
	}
	got, err := s.API.VerifyJWT(t.Context(), oauthapi.VerifyJWT{Token: signed.Token})
	if err != nil || got.Tenant != s.Tenant || got.KeyID != key.ID {
		t.Fatalf("VerifyJWT returns %+v, %v", got, err)
	}
	var header map[string]string
	var claims map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(got.Header, &header), json.Unmarshal(got.Claims, &claims)); err != nil {
		t.Fatal(err)
	}
	if header["kid"] != key.ID || header["stt"] != "assertion" || string(claims["aud"]) != `"`+key.ID+`"` {
		t.Errorf("the header is %s, the claims are %s", got.Header, got.Claims)
	}
	refusal, err := s.API.SignAssertion(t.Context(), oauthapi.SignAssertion{
		Tenant: s.Tenant, KeyID: key.ID, Claims: json.RawMessage(`{"err":{}}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	header = nil
	got, err = s.API.VerifyJWT(t.Context(), oauthapi.VerifyJWT{Token: refusal.Token})
	if err := errors.Join(err, json.Unmarshal(got.Header, &header)); err != nil || header["stt"] != "" {
		t.Errorf("the header of an error is %s, %v", got.Header, err)
	}
	for what, in := range map[string]oauthapi.SignAssertion{
		"another tenant": {Tenant: s.EndUser, KeyID: key.ID}, "an unknown key": {Tenant: s.Tenant, KeyID: secure.KeyID()},
	} {
		in.Claims = json.RawMessage(`{}`)
		if _, err := s.API.SignAssertion(t.Context(), in); !errors.Is(err, apierr.NotFound) {
			t.Errorf("%s ends with %v", what, err)
		}
	}
	foreign, err := secure.SignJWT(map[string]any{"kid": key.ID}, secure.Claims{}, "another secret of at least 32 bytes")
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []secure.Secret{"", "x.y.z", secure.Secret(foreign), signed.Token + "x"} {
		if _, err := s.API.VerifyJWT(t.Context(), oauthapi.VerifyJWT{Token: bad}); !errors.Is(err, apierr.TokenSignature) {
			t.Errorf("%q ends with %v", bad.Reveal(), err)
		}
	}
	keys, err := s.API.KeysOf(t.Context(), id.Ref{Tenant: s.Tenant, ID: s.Administrator})
	if err != nil || len(keys.Items) == 0 {
		t.Errorf("the keys of the account are %+v, %v", keys, err)
	}
	s.SetStatus(s.Administrator, directoryapi.Disabled)
	s.Wait(100 * time.Millisecond)
	if _, err := s.API.VerifyJWT(t.Context(), oauthapi.VerifyJWT{Token: signed.Token}); !errors.Is(err, apierr.TokenSignature) {
		t.Errorf("the key of a disabled administrator ends with %v", err)
	}
}

func clientTokens(t *testing.T, s surroundings) {
	made(t, s, s.Administrator)
	config, err := s.API.ClientConfig(t.Context(), id.Ref{Tenant: s.Tenant, ID: s.Application})
	if err != nil || !config.Enabled || !config.OAuth2 || !config.Register || !config.Login || !config.Me || config.VerifyEmail != nil {
		t.Errorf("the web config is %+v, %v", config, err)
	}
	form := func(fields map[string]secure.Secret) oauthapi.ClientForm {
		return oauthapi.ClientForm{Tenant: s.Tenant, Application: s.Application, Form: fields}
	}
	login := map[string]secure.Secret{"grant_type": "password", "username": secure.Secret(s.Login), "password": s.Password}
	tokens, err := s.API.ClientToken(t.Context(), form(login))
	if err != nil || tokens.Access == "" || tokens.ExpiresIn <= 0 || !tokens.AccessExpiresAt.After(s.Now()) {
		t.Fatalf("the tokens expire in %d s, at %s, %v", tokens.ExpiresIn, tokens.AccessExpiresAt, err)
	}
	valid := oauthapi.ValidateToken{Tenant: s.Tenant, Application: s.Application,
		PresentedToken: oauthapi.PresentedToken{Token: tokens.Access}}
	if got, err := s.API.ValidateToken(t.Context(), valid); err != nil || got.Account.ID != s.EndUser {
		t.Errorf("the token is that of %s, %v", got.Account.ID, err)
	}
	login["password"] = "Wrong0000!"
	if _, err := s.API.ClientToken(t.Context(), form(login)); !errors.Is(err, apierr.WrongPassword) ||
		apierr.From(err).Fields["error"] != "invalid_grant" {
		t.Errorf("a wrong password ends with %v", err)
	}
	login["grant_type"] = "pigeon"
	if _, err := s.API.ClientToken(t.Context(), form(login)); apierr.From(err) == nil ||
		apierr.From(err).Fields["error"] != "unsupported_grant_type" {
		t.Errorf("an unknown grant ends with %v", err)
	}
	other := valid
	other.Token += "x"
	if _, err := s.API.ValidateToken(t.Context(), other); !errors.Is(err, apierr.TokenSignature) {
		t.Errorf("another token ends with %v", err)
	}
	revoke := form(map[string]secure.Secret{"token": tokens.Access, "token_type_hint": "access_token"})
	if _, err := s.API.ClientRevoke(t.Context(), revoke); err != nil {
		t.Fatal(err)
	}
	if _, err := s.API.ValidateToken(t.Context(), valid); err == nil {
		t.Error("a revoked token is valid")
	}
}
