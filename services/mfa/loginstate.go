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

// stateTTL is the lifetime of a state token.
const stateTTL = 5 * time.Minute

// loginTTL is the lifetime of a login between its steps: no state token that follows from
// the first one is valid for longer.
const loginTTL = 30 * time.Minute

// loginState is a login between its first step (the password) and its second. It is not
// stored: the client gets it as the state, a signed token, and sends it back.
type loginState struct {
	Application  id.ID    `json:"app"`
	Account      id.ID    `json:"sub"`
	Organization id.ID    `json:"org,omitzero"`
	Factor       id.ID    `json:"factor,omitzero"`    // absent: the user must enroll a factor
	Challenge    id.ID    `json:"challenge,omitzero"` // absent: the client must create a challenge
	Types        []string `json:"types"`              // types of factor that the login allows
	// the user is logged in and adds a factor: this state completes no login
	LoggedIn     bool  `json:"loggedIn,omitzero"`
	SecondFactor bool  `json:"passed,omitzero"` // the user has passed a second factor, and may add another
	Hosted       bool  `json:"-"`               // the login of a hosted page, which gets no state
	ExpiresAt    int64 `json:"exp"`

	// PasswordSetAt is the time at which the password of the first step was set, in Unix
	// microseconds: a newer password ends the login. Zero: the account has no password.
	PasswordSetAt   int64 `json:"pwd,omitzero"`
	LatestExpiresAt int64 `json:"latest"` // the latest ExpiresAt of the states that follow
}

// passwordSetAt is the time at which the password of an account was set, in Unix
// microseconds, or zero for an account without a password.
func passwordSetAt(account directoryapi.Account) int64 {
	if account.PasswordModifiedAt == nil {
		return 0
	}
	return account.PasswordModifiedAt.UnixMicro()
}

// statePurpose is the purpose for which the key of a tenant's states is derived, so that
// no state of another tenant and no token of another kind is valid as a state.
func statePurpose(tenant id.ID) string { return "mfa.state/" + tenant.String() }

// signState returns a login state as a signed token, which expires after stateTTL.
func (s *Service) signState(tenant id.ID, login loginState) secure.Secret {
	now := s.now()
	if login.LatestExpiresAt == 0 {
		login.LatestExpiresAt = now.Add(loginTTL).Unix()
	}
	login.ExpiresAt = min(now.Add(stateTTL).Unix(), login.LatestExpiresAt)
	var claims secure.Claims
	must := func(err error) {
		if err != nil {
			panic(err) // a struct of ids and texts is JSON, and HS256 takes any key
		}
	}
	text, err := json.Marshal(login)
	must(err)
	must(json.Unmarshal(text, &claims))
	keyID, key := s.ring.Derive(statePurpose(tenant))
	state, err := secure.SignJWT(map[string]any{"kid": keyID}, claims, key)
	must(err)
	return secure.Secret(state)
}

// verifyState verifies a state token of a tenant. It returns apierr.Reference for any other
// text, and apierr.CodeExpired for a state that has expired or whose account has a new
// password since the first step: whoever passed that step may have stolen the old password.
func (s *Service) verifyState(ctx context.Context, tenant id.ID, state secure.Secret) (loginState, error) {
	_, claims, err := secure.ParseJWT(state.Reveal(),
		func(header map[string]any, _ secure.Claims) (secure.Secret, error) {
			keyID, _ := header["kid"].(string)
			return s.ring.Derived(keyID, statePurpose(tenant))
		})
	foreign := apierr.Reference.Because("the state is not one that this tenant's login has returned")
	if err != nil {
		return loginState{}, foreign
	}
	text, err := json.Marshal(claims)
	if err != nil {
		return loginState{}, foreign
	}
	var login loginState
	if err := json.Unmarshal(text, &login); err != nil {
		return loginState{}, foreign
	}
	if s.now().Unix() >= login.ExpiresAt {
		return loginState{}, apierr.CodeExpired.Because("the second step took longer than %s; log in again", stateTTL)
	}
	account, err := s.directory.Account(ctx, id.Ref{Tenant: tenant, ID: login.Account})
	if errors.Is(err, apierr.NotFound) || err == nil && login.PasswordSetAt != passwordSetAt(account) {
		return loginState{}, apierr.CodeExpired.Because(
			"the account has another password since the first step; log in again")
	}
	return login, err
}
