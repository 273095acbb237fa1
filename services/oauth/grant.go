package oauth

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// Form has the fields of a request to the token endpoint by their names. Passwords are
// among them.
type Form map[string]secure.Secret

// fieldRequired is a text that clients compare (docs/interface/errors.md#texts-that-clients-compare).
const fieldRequired = "%s parameter is required; it cannot be null, empty, or blank."

// required returns a field, or the error invalid_request where it is absent or empty.
func (f Form) required(name string) (secure.Secret, error) {
	if f[name] == "" {
		return "", withOAuthError(apierr.Required.Because(fieldRequired, name), "invalid_request")
	}
	return f[name], nil
}

// withOAuthError adds the member error of RFC 6749, section 5.2, to an error with the status
// 400, or 409, which becomes 400: such as the conflict of a social login with the email of
// another account. Other errors are returned unchanged.
func withOAuthError(err error, code string) error {
	refusal := apierr.From(err)
	if err == nil || refusal.Status != http.StatusBadRequest && refusal.Status != http.StatusConflict {
		return err
	}
	refusal = refusal.With("error", code)
	refusal.Status = http.StatusBadRequest
	return refusal
}

// TokenRequest is a request to the token endpoint.
type TokenRequest struct {
	Tenant      id.ID
	Application id.ID
	Key         string // id of the caller's API key, which signs the tokens
	Form        Form

	startedAt time.Time // set by grantTokens
}

// IssuedTokens is the answer of the token endpoint.
type IssuedTokens struct {
	Access        secure.Secret
	Refresh       secure.Secret // empty: no refresh token was issued
	ExpiresIn     time.Duration // of the access token
	AccessTokenID id.ID
}

// grants has the function of each grant type (grant_*.go), by its neutral name
// (neutralGrantType).
var grants = map[string]func(*Service, context.Context, TokenRequest) (IssuedTokens, error){
	"password":                 (*Service).passwordGrant,
	"refresh_token":            (*Service).refreshTokenGrant,
	"client_credentials":       (*Service).clientCredentialsGrant,
	"service_token":            (*Service).assertionGrant,
	"id_site_token":            (*Service).assertionGrant,
	"service_social":           (*Service).socialLoginGrant,
	"service_factor_challenge": (*Service).secondFactorGrant,
}

// Token is the token endpoint: it grants and issues tokens (docs/interface/oauth.md#grants).
// It returns apierr.NotFound for an unknown application; other refusals have the member
// error of RFC 6749 (docs/interface/errors.md#oauth-failures).
func (s *Service) Token(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	issued, err := s.grantTokens(ctx, in)
	return issued, s.notFoundOr(ctx, in.Tenant, in.Application, err)
}

func (s *Service) grantTokens(ctx context.Context, in TokenRequest) (IssuedTokens, error) {
	in.startedAt = s.now()
	text, err := in.Form.required("grant_type")
	if err != nil {
		return IssuedTokens{}, err
	}
	grant, ok := grants[neutralGrantType(text.Reveal(), s.cfg.Alias)]
	if !ok {
		var known []string
		for _, name := range slices.Sorted(maps.Keys(grants)) {
			known = append(known, aliasedGrantType(name, s.cfg.Alias))
		}
		refusal := apierr.Unsupported.Because("grant_type must be one of %s", strings.Join(known, ", "))
		return IssuedTokens{}, withOAuthError(refusal, "invalid_request")
	}
	issued, err := grant(s, ctx, in)
	s.countGrant(ctx, neutralGrantType(text.Reveal(), s.cfg.Alias), err)
	return issued, err
}

// neutralGrantType replaces the alias of the deployment in a grant type by the word
// "service" (docs/interface/conventions.md#the-alias). Names without an alias, such as
// those of RFC 6749, are returned unchanged.
func neutralGrantType(grantType string, word alias.Alias) string {
	if _, standard := grants[grantType]; standard {
		return grantType
	}
	return word.Neutral(grantType, "service_")
}

// aliasedGrantType is the inverse of neutralGrantType: it returns the name that clients of
// the deployment use.
func aliasedGrantType(grantType string, word alias.Alias) string {
	if strings.HasPrefix(grantType, "service_") {
		return word.Spell(grantType)
	}
	return grantType
}

// subject is whom tokens are issued to: an account, the organization that its login named, or
// the zero id, and whether that login has passed a second factor (MFA).
type subject struct {
	account, organization id.ID
	secondFactor          bool
}

func subjectOf(t store.Token) subject { return subject{t.AccountID, t.OrganizationID, t.SecondFactor} }

// newToken returns a token that is not stored yet. Its times are whole seconds, as in a
// JWT. Its id contains the time at which the request began, which is compared with changes
// of the password (store/passwordchange.go).
func (s *Service) newToken(in TokenRequest, kind store.TokenKind, user subject, ttl time.Duration) store.Token {
	issued := in.startedAt.Truncate(time.Second)
	return store.Token{
		Kind: kind, TenantID: in.Tenant, ID: id.New(in.startedAt), ApplicationID: in.Application, AccountID: user.account, KeyID: in.Key,
		IssuedAt: issued, ExpiresAt: issued.Add(ttl), OrganizationID: user.organization, StartedAt: in.startedAt,
		SecondFactor: user.secondFactor,
	}
}

// issueTokens signs and stores an access token and, with withRefresh and unless the policy
// forbids it, a refresh token.
func (s *Service) issueTokens(ctx context.Context, in TokenRequest, user subject, withRefresh bool) (IssuedTokens, error) {
	accessTTL, refreshTTL, err := s.tokenLifetimes(ctx, in.Tenant, in.Application)
	if err != nil {
		return IssuedTokens{}, err
	}
	access := s.newToken(in, store.Access, user, accessTTL)
	var refresh store.Token
	if withRefresh && refreshTTL > 0 {
		refresh = s.newToken(in, store.Refresh, user, refreshTTL)
		access.RefreshID = refresh.ID
	}
	issued, err := s.signTokens(ctx, in, access, refresh)
	if err != nil {
		return IssuedTokens{}, err
	}
	if refresh.ID.IsZero() {
		err = s.accessTokenInserts.add(ctx, access)
	} else {
		err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertTokenPair(ctx, access, refresh) })
	}
	if errors.Is(err, apierr.NotFound) {
		err = loginRefusal(apierr.WrongPassword.Because("the password of the account was changed while it logged in"))
	}
	if err != nil {
		return IssuedTokens{}, err
	}
	return issued, nil
}

// signTokens signs an access token, and a refresh token unless its id is zero, with the
// API key of the request.
func (s *Service) signTokens(ctx context.Context, in TokenRequest, access, refresh store.Token) (IssuedTokens, error) {
	key, err := s.signingKey(ctx, in.Tenant, in.Key)
	if errors.Is(err, apierr.NotFound) || (err == nil && key.Status != directoryapi.Enabled) {
		return IssuedTokens{}, errBadAPIKey
	}
	if err != nil {
		return IssuedTokens{}, err
	}
	issued := IssuedTokens{AccessTokenID: access.ID, ExpiresIn: access.ExpiresAt.Sub(access.IssuedAt)}
	if issued.Access, err = s.signToken(ctx, access, key.Secret); err == nil && !refresh.ID.IsZero() {
		issued.Refresh, err = s.signToken(ctx, refresh, key.Secret)
	}
	return issued, err
}

// insertAccessTokens stores access tokens without refresh tokens. The error of a token is
// apierr.NotFound where the account's password was changed since the request began.
func (s *Service) insertAccessTokens(ctx context.Context, tokens []store.Token) []error {
	return s.insertTokens(ctx, tokens, (*store.Tx).InsertAccessTokens)
}

// insertRefreshedTokens stores access tokens that a refresh issues. The error of a token is
// apierr.NotFound where its refresh token was deleted.
func (s *Service) insertRefreshedTokens(ctx context.Context, tokens []store.Token) []error {
	return s.insertTokens(ctx, tokens, (*store.Tx).InsertRefreshedTokens)
}

func (s *Service) insertTokens(ctx context.Context, tokens []store.Token,
	insert func(*store.Tx, context.Context, []store.Token) *[]store.InsertedToken) []error {
	var inserted *[]store.InsertedToken
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		inserted = insert(tx, ctx, tokens)
		return nil
	})
	if err != nil {
		return repeatError(len(tokens), err)
	}
	errs := make([]error, len(tokens))
	for i, t := range tokens {
		if !slices.Contains(*inserted, store.InsertedToken{TenantID: t.TenantID, ID: t.ID}) {
			errs[i] = apierr.NotFound
		}
	}
	return errs
}
