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

// Form holds the fields of a request to the token endpoint, each once. Passwords
// are among them.
type Form map[string]secure.Secret

// required returns a field that must have a value.
func (f Form) required(name string) (secure.Secret, error) {
	if f[name] == "" {
		return "", refused(apierr.Required.Because("the form field %s is required", name), "invalid_request")
	}
	return f[name], nil
}

// refused adds the error of RFC 6749, section 5.2, to an error of the status 400. So has
// a conflict, such as that of a social login with the email of another account.
func refused(err error, code string) error {
	refusal := apierr.From(err)
	if err == nil || refusal.Status != http.StatusBadRequest && refusal.Status != http.StatusConflict {
		return err
	}
	refusal = refusal.With("error", code)
	refusal.Status = http.StatusBadRequest
	return refusal
}

// TokenRequest asks for tokens.
type TokenRequest struct {
	Tenant      id.ID
	Application id.ID
	Key         string // id of the API key that signs the tokens: the caller's
	Form        Form

	began time.Time // set by grant
}

// Issued is the answer to a request for tokens.
type Issued struct {
	Access        secure.Secret
	Refresh       secure.Secret // empty: none is given out
	ExpiresIn     time.Duration // of the access token
	AccessTokenID id.ID
}

// grants lists the grant types by their neutral names. There is no authorization code grant,
// so no PKCE here; logins at providers use it in services/directory/connect.
var grants = map[string]func(*Service, context.Context, TokenRequest) (Issued, error){
	"password":                 (*Service).passwordGrant,
	"refresh_token":            (*Service).refreshGrant,
	"client_credentials":       (*Service).clientGrant,
	"service_token":            (*Service).serviceGrant,
	"id_site_token":            (*Service).serviceGrant,
	"service_social":           (*Service).socialGrant,
	"service_factor_challenge": (*Service).factorGrant,
}

// Token answers a request for tokens (docs/interface/oauth.md#grants). It returns
// apierr.NotFound for the application; other refusals have the member error of
// RFC 6749 (docs/interface/errors.md#oauth-failures).
func (s *Service) Token(ctx context.Context, in TokenRequest) (Issued, error) {
	issued, err := s.grant(ctx, in)
	return issued, s.refusal(ctx, in.Tenant, in.Application, err)
}

func (s *Service) grant(ctx context.Context, in TokenRequest) (Issued, error) {
	in.began = s.now()
	text, err := in.Form.required("grant_type")
	if err != nil {
		return Issued{}, err
	}
	grant, ok := grants[neutral(text.Reveal(), s.cfg.Alias)]
	if !ok {
		var known []string
		for _, name := range slices.Sorted(maps.Keys(grants)) {
			known = append(known, aliased(name, s.cfg.Alias))
		}
		return Issued{}, refused(apierr.Unsupported.Because("grant_type must be one of %s", strings.Join(known, ", ")), "invalid_request")
	}
	issued, err := grant(s, ctx, in)
	s.count(ctx, neutral(text.Reveal(), s.cfg.Alias), err)
	return issued, err
}

// neutral returns the neutral name of a grant type, in which the deployment's
// alias may stand for the word service (docs/interface/conventions.md#the-alias).
// Names without that word, such as those of RFC 6749, have no alias.
func neutral(grantType string, word alias.Alias) string {
	if _, standard := grants[grantType]; standard {
		return grantType
	}
	return word.Neutral(grantType, "service_")
}

// aliased is the inverse of neutral: the name as the clients of the deployment
// know it.
func aliased(grantType string, word alias.Alias) string {
	if strings.HasPrefix(grantType, "service_") {
		return word.Spell(grantType)
	}
	return grantType
}

// holder is the subject of tokens: an account, and the organization that its
// login named, if any.
type holder struct{ account, organization id.ID }

func holderOf(t store.Token) holder { return holder{t.AccountID, t.OrganizationID} }

// newToken returns a token that is not stored yet. Its times are whole seconds, as in
// a JWT, and its id is of the time when the request began.
func (s *Service) newToken(in TokenRequest, kind store.Kind, user holder, ttl time.Duration) store.Token {
	issued := in.began.Truncate(time.Second)
	return store.Token{
		Kind: kind, TenantID: in.Tenant, ID: id.New(in.began), ApplicationID: in.Application, AccountID: user.account, KeyID: in.Key,
		IssuedAt: issued, ExpiresAt: issued.Add(ttl), OrganizationID: user.organization, Began: in.began,
	}
}

// issue stores and returns an access token for an account and, where the grant and
// the policy allow one, a refresh token.
func (s *Service) issue(ctx context.Context, in TokenRequest, user holder, withRefresh bool) (Issued, error) {
	accessTTL, refreshTTL, err := s.lifetimes(ctx, in.Tenant, in.Application)
	if err != nil {
		return Issued{}, err
	}
	access := s.newToken(in, store.Access, user, accessTTL)
	var refresh store.Token
	if withRefresh && refreshTTL > 0 {
		refresh = s.newToken(in, store.Refresh, user, refreshTTL)
		access.RefreshID = refresh.ID
	}
	issued, err := s.signPair(ctx, in, access, refresh)
	if err != nil {
		return Issued{}, err
	}
	if refresh.ID.IsZero() {
		err = s.access.add(ctx, access)
	} else {
		err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.InsertPair(ctx, access, refresh) })
	}
	if errors.Is(err, apierr.NotFound) {
		err = refused(apierr.WrongPassword.Because("the password of the account was changed while it logged in"), "invalid_request")
	}
	if err != nil {
		return Issued{}, err
	}
	return issued, nil
}

// signPair signs an access token, and a refresh token unless that is zero, with
// the API key of the caller.
func (s *Service) signPair(ctx context.Context, in TokenRequest, access, refresh store.Token) (Issued, error) {
	key, err := s.signingKey(ctx, in.Tenant, in.Key)
	if errors.Is(err, apierr.NotFound) || (err == nil && key.Status != directoryapi.Enabled) {
		return Issued{}, errBadKey
	}
	if err != nil {
		return Issued{}, err
	}
	issued := Issued{AccessTokenID: access.ID, ExpiresIn: access.ExpiresAt.Sub(access.IssuedAt)}
	if issued.Access, err = s.sign(access, key.Secret); err == nil && !refresh.ID.IsZero() {
		issued.Refresh, err = s.sign(refresh, key.Secret)
	}
	return issued, err
}

// insertAccess stores access tokens without refresh tokens; apierr.NotFound is the
// error of one whose account's password was changed since its request began.
func (s *Service) insertAccess(ctx context.Context, tokens []store.Token) []error {
	return s.insert(ctx, tokens, (*store.Tx).InsertAccess)
}

// insertRefreshed stores access tokens of refresh tokens; apierr.NotFound is the
// error of one whose refresh token is gone.
func (s *Service) insertRefreshed(ctx context.Context, tokens []store.Token) []error {
	return s.insert(ctx, tokens, (*store.Tx).InsertRefreshed)
}

func (s *Service) insert(ctx context.Context, tokens []store.Token,
	insert func(*store.Tx, context.Context, []store.Token) *[]store.Inserted) []error {
	var inserted *[]store.Inserted
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		inserted = insert(tx, ctx, tokens)
		return nil
	})
	if err != nil {
		return all(len(tokens), err)
	}
	errs := make([]error, len(tokens))
	for i, t := range tokens {
		if !slices.Contains(*inserted, store.Inserted{TenantID: t.TenantID, ID: t.ID}) {
			errs[i] = apierr.NotFound
		}
	}
	return errs
}
