package mfa

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// stateTTL is the lifetime of a state.
const stateTTL = 5 * time.Minute

// loginTTL bounds the time from the first step to the last state issued.
const loginTTL = 30 * time.Minute

// loginState is a login between its first step and its second. It is not stored: the client
// sends it back as the state, a signed token.
type loginState struct {
	Application  id.ID    `json:"app"`
	Account      id.ID    `json:"sub"`
	Organization id.ID    `json:"org,omitzero"`
	Factor       id.ID    `json:"factor,omitzero"`    // absent: the user is to enrol one
	Challenge    id.ID    `json:"challenge,omitzero"` // absent: the user is to ask for one
	Types        []string `json:"types"`              // of factors that are allowed
	LoggedIn     bool     `json:"loggedIn,omitzero"`  // the user had tokens before: no login ends with this step
	ExpiresAt    int64    `json:"exp"`

	// Password is when the password that passed the first step was set, in microseconds: a
	// newer one ends the login. Zero: it has none.
	Password int64 `json:"pwd,omitzero"`
	Latest   int64 `json:"latest"` // ExpiresAt of any state that follows
}

// passwordOf is the Password of the login state of an account.
func passwordOf(account directoryapi.Account) int64 {
	if account.PasswordModifiedAt == nil {
		return 0
	}
	return account.PasswordModifiedAt.UnixMicro()
}

// statePurpose is the purpose that the keys of a tenant's states are derived for, so
// that a state of another tenant, or a token of another kind, is not one.
func statePurpose(tenant id.ID) string { return "mfa.state/" + tenant.String() }

// signState returns the signed token of a state.
func (s *Service) signState(tenant id.ID, begun loginState) secure.Secret {
	now := s.now()
	if begun.Latest == 0 {
		begun.Latest = now.Add(loginTTL).Unix()
	}
	begun.ExpiresAt = min(now.Add(stateTTL).Unix(), begun.Latest)
	var claims secure.Claims
	text, err := json.Marshal(begun)
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	keyID, key := s.ring.Derive(statePurpose(tenant))
	var state string
	if err == nil {
		state, err = secure.SignJWT(map[string]any{"kid": keyID}, claims, key)
	}
	if err != nil {
		panic(err) // a struct of ids and texts is JSON, and HS256 takes any key
	}
	return secure.Secret(state)
}

// readState reads a state of a tenant. It returns apierr.Reference for any other text,
// and apierr.CodeExpired, also where the account has another password since: whoever set
// it may have been robbed of the one before.
func (s *Service) readState(ctx context.Context, tenant id.ID, state secure.Secret) (loginState, error) {
	_, claims, err := secure.ParseJWT(state.Reveal(), func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
		keyID, _ := header["kid"].(string)
		return s.ring.Derived(keyID, statePurpose(tenant))
	})
	var begun loginState
	var text []byte
	if err == nil {
		text, err = json.Marshal(claims)
	}
	if err == nil {
		err = json.Unmarshal(text, &begun)
	}
	if err != nil {
		return loginState{}, apierr.Reference.Because("the state is not one that this tenant's login has returned")
	}
	if s.now().Unix() >= begun.ExpiresAt {
		return loginState{}, apierr.CodeExpired.Because("the second step took longer than %s; log in again", stateTTL)
	}
	account, err := s.directory.Account(ctx, id.Ref{Tenant: tenant, ID: begun.Account})
	if errors.Is(err, apierr.NotFound) || err == nil && begun.Password != 0 && begun.Password != passwordOf(account) {
		return loginState{}, apierr.CodeExpired.Because("the account has another password since the first step; log in again")
	}
	return begun, err
}
