package oauth

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/store"
)

// Form holds the fields of a request to the token endpoint, each once. Passwords
// are among them.
type Form map[string]secure.Secret

// required gives a field that must have a value.
func (f Form) required(name string) (secure.Secret, error) {
	if f[name] == "" {
		return "", refused(apierr.Required.Because("the form field %s is required", name), "invalid_request")
	}
	return f[name], nil
}

// refused adds the error of RFC 6749, section 5.2, to the refusal of a client's
// request. What is not the client's fault, and an application that does not
// exist, stay as they are.
func refused(err error, code string) error {
	if refusal := apierr.From(err); err != nil && refusal.Status == http.StatusBadRequest {
		return refusal.With("error", code)
	}
	return err
}

// TokenRequest asks for tokens.
type TokenRequest struct {
	Tenant      id.ID
	Application id.ID
	Key         string // id of the API key that signs the tokens: the caller's
	Form        Form
}

// Issued is the answer to a request for tokens.
type Issued struct {
	Access        secure.Secret
	Refresh       secure.Secret // empty: none is given out
	ExpiresIn     time.Duration // of the access token
	AccessTokenID id.ID
}

// grants lists the grant types by their neutral names.
var grants = map[string]func(*Service, context.Context, TokenRequest) (Issued, error){
	"password":                 (*Service).passwordGrant,
	"refresh_token":            (*Service).refreshGrant,
	"client_credentials":       (*Service).clientGrant,
	"service_token":            (*Service).serviceGrant,
	"id_site_token":            (*Service).serviceGrant,
	"service_social":           (*Service).socialGrant,
	"service_factor_challenge": (*Service).factorGrant,
}

// Token answers a request for tokens (resolutions, sections 8.2 and 12.4). It
// returns apierr.NotFound for the application; other refusals carry the member
// error of RFC 6749.
func (s *Service) Token(ctx context.Context, in TokenRequest) (Issued, error) {
	issued, err := s.grant(ctx, in)
	return issued, s.refusal(ctx, in.Tenant, in.Application, err)
}

func (s *Service) grant(ctx context.Context, in TokenRequest) (Issued, error) {
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
	return grant(s, ctx, in)
}

// neutral returns the neutral name of a grant type, in which the deployment's
// alias may stand for the word service (docs/interface/conventions.md#the-alias).
// Names without that word, such as those of RFC 6749, have no alias.
func neutral(grantType, alias string) string {
	if _, standard := grants[grantType]; standard {
		return grantType
	}
	if rest, ok := strings.CutPrefix(grantType, alias+"_"); ok {
		return "service_" + rest
	}
	return grantType
}

// aliased is the inverse of neutral: the name as the clients of the deployment
// know it.
func aliased(grantType, alias string) string {
	if rest, ok := strings.CutPrefix(grantType, "service_"); ok {
		return alias + "_" + rest
	}
	return grantType
}

// holder is the subject of tokens: an account, and the organization that its
// login named, if any.
type holder struct{ account, organization id.ID }

func holderOf(t store.Token) holder { return holder{t.AccountID, t.OrganizationID} }

// newToken makes a token that is not stored yet. Its times are whole seconds,
// because those are what a JWT tells.
func (s *Service) newToken(in TokenRequest, kind store.Kind, who holder, ttl time.Duration) store.Token {
	now := s.now()
	issued := now.Truncate(time.Second)
	return store.Token{
		Kind: kind, TenantID: in.Tenant, ID: id.New(now), ApplicationID: in.Application, AccountID: who.account, KeyID: in.Key,
		IssuedAt: issued, ExpiresAt: issued.Add(ttl), OrganizationID: who.organization,
	}
}

// issue makes an access token for an account and, where it is wanted and the
// policy gives any, a refresh token with it.
func (s *Service) issue(ctx context.Context, in TokenRequest, who holder, withRefresh bool) (Issued, error) {
	accessTTL, refreshTTL, err := s.lifetimes(ctx, in.Tenant, in.Application)
	if err != nil {
		return Issued{}, err
	}
	access := s.newToken(in, store.Access, who, accessTTL)
	var refresh store.Token
	if withRefresh && refreshTTL > 0 {
		refresh = s.newToken(in, store.Refresh, who, refreshTTL)
		access.RefreshID = refresh.ID
	}
	issued, err := s.signPair(ctx, in, access, refresh)
	if err != nil {
		return Issued{}, err
	}
	return issued, s.tx(ctx, func(tx *store.Tx) error { return tx.InsertTokens(ctx, access, refresh) })
}

// signPair signs an access token, and a refresh token unless that is zero, with
// the API key of the caller.
func (s *Service) signPair(ctx context.Context, in TokenRequest, access, refresh store.Token) (Issued, error) {
	key, err := s.signingKey(ctx, in.Tenant, in.Key)
	if errors.Is(err, apierr.NotFound) || (err == nil && key.Status != directoryapi.Enabled) {
		// That happened after the gateway had accepted it.
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
