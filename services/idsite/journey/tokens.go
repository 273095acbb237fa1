package journey

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// TokenLogin is the login of a client for tokens.
type TokenLogin struct {
	Account directoryapi.Account
	Tokens  oauthapi.ClientTokens
}

// LogInForTokens logs a user in by a grant, such as password or service_social, and issues tokens of the
// application at. Where the login wants a second factor, the fields of the error say how it goes on
// (EnrollFactorOfClient, ChallengeFactorOfClient).
func (j *Journey) LogInForTokens(ctx context.Context, at id.Ref, form map[string]secure.Secret) (TokenLogin, error) {
	tokens, err := j.IssueTokens(ctx, at, form)
	if err != nil {
		return TokenLogin{}, err
	}
	valid, err := j.ValidateToken(ctx, at, tokens.Access)
	return TokenLogin{valid.Account, tokens}, err
}

// IssueTokens issues tokens for a request to the token endpoint.
func (j *Journey) IssueTokens(ctx context.Context, at id.Ref, form map[string]secure.Secret) (oauthapi.ClientTokens, error) {
	return j.peers.OAuth.ClientToken(ctx, oauthapi.ClientForm{Tenant: at.Tenant, Application: at.ID, Form: form})
}

// RevokeToken revokes a token, and the access or refresh token that was issued with it.
func (j *Journey) RevokeToken(ctx context.Context, at id.Ref, form map[string]secure.Secret) error {
	_, err := j.peers.OAuth.ClientRevoke(ctx, oauthapi.ClientForm{Tenant: at.Tenant, Application: at.ID, Form: form})
	return err
}

// ValidateToken validates an access token.
func (j *Journey) ValidateToken(ctx context.Context, at id.Ref, token secure.Secret) (oauthapi.ValidToken, error) {
	return j.peers.OAuth.ValidateToken(ctx, oauthapi.ValidateToken{Tenant: at.Tenant, Application: at.ID, Token: token})
}
