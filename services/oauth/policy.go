package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// The limits of the lifetimes of a policy (docs/interface/oauth.md#token-contents). Ten years have at most three
// leap days.
const (
	minTTL = time.Second
	maxTTL = 3653 * 24 * time.Hour
)

// PolicyChange is the body that updates an OAuth policy.
type PolicyChange struct {
	AccessTokenTTL  field.Text `json:"accessTokenTtl"`
	RefreshTokenTTL field.Text `json:"refreshTokenTtl"`

	RevokeTokensOnPasswordChange field.Bool `json:"revokeTokensOnPasswordChange"`
	TokenSigning                 field.Text `json:"tokenSigning"`
}

// Policy returns the OAuth policy of an application, or apierr.NotFound for an unknown
// application. A policy that was never changed is the default, as old as the application.
func (s *Service) Policy(ctx context.Context, application id.Ref) (store.Policy, error) {
	app, err := s.peers.Application.Application(ctx, application)
	if err != nil {
		return store.Policy{}, err
	}
	p, err := s.store.Policy(ctx, application.Tenant, application.ID)
	if errors.Is(err, apierr.NotFound) {
		return defaultPolicy(app), nil
	}
	return p, err
}

func defaultPolicy(app applicationapi.Application) store.Policy {
	p := store.DefaultPolicy(app.TenantID, app.ID)
	p.CreatedAt, p.ModifiedAt = app.CreatedAt, app.CreatedAt
	return p
}

// UpdatePolicy changes the members that the body names, for the tokens that are issued
// afterwards. With a refresh token lifetime of zero no refresh tokens are issued.
func (s *Service) UpdatePolicy(ctx context.Context, application id.Ref, in PolicyChange) (store.Policy, error) {
	app, err := s.peers.Application.Application(ctx, application)
	if err != nil {
		return store.Policy{}, err
	}
	var p store.Policy
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockPolicy(ctx, defaultPolicy(app)); err != nil {
			return err
		}
		if err := in.apply(&p); err != nil {
			return err
		}
		p.ModifiedAt = s.now()
		return tx.UpdatePolicy(ctx, p)
	})
	return p, err
}

// apply writes the members of a body into a policy and checks them.
func (in PolicyChange) apply(p *store.Policy) (err error) {
	var errs field.Errors
	if in.AccessTokenTTL.Present {
		p.AccessTokenTTL, err = checkLifetime(in.AccessTokenTTL, "accessTokenTtl", false)
		errs.Add(err)
	}
	if in.RefreshTokenTTL.Present {
		p.RefreshTokenTTL, err = checkLifetime(in.RefreshTokenTTL, "refreshTokenTtl", true)
		errs.Add(err)
	}
	if in.RevokeTokensOnPasswordChange.Null {
		errs.Add(apierr.Required.Because("revokeTokensOnPasswordChange cannot be null"))
	}
	p.RevokeTokensOnPasswordChange = in.RevokeTokensOnPasswordChange.Or(p.RevokeTokensOnPasswordChange)
	errs.Enum(&p.TokenSigning, in.TokenSigning, "tokenSigning", store.TokensByAPIKey, store.TokensBySigningKey)
	return errs.First()
}

// checkLifetime checks a duration of a policy and returns its text unchanged.
func checkLifetime(in field.Text, name string, mayBeZero bool) (string, error) {
	text, err := field.Required(in, name, 255)
	if err != nil {
		return "", err
	}
	ttl, err := field.ParseDuration(text)
	switch {
	case err != nil:
		return "", apierr.Invalid.Because("%s: %s", name, apierr.From(err).Reason)
	case ttl == 0 && mayBeZero:
		return text, nil
	case ttl == 0:
		return "", apierr.Invalid.Because("%s must not be zero", name)
	case ttl < minTTL:
		return "", apierr.BelowMinimum.Because("%s must be at least PT1S", name)
	case ttl > maxTTL:
		return "", apierr.AboveMaximum.Because("%s must be at most P10Y", name)
	}
	return text, nil
}

// tokenLifetimes returns the lifetimes of the tokens of an application, in whole seconds as
// a JWT has them. With a refresh lifetime of zero no refresh token is issued.
func (s *Service) tokenLifetimes(ctx context.Context, tenant, application id.ID) (access, refresh time.Duration, err error) {
	p, err := s.store.CachedPolicy(ctx, tenant, application)
	if err != nil {
		return 0, 0, err
	}
	access, err = field.ParseDuration(p.AccessTokenTTL)
	if err == nil {
		refresh, err = field.ParseDuration(p.RefreshTokenTTL)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the OAuth policy of %s: %w", application, err)
	}
	return access.Truncate(time.Second), refresh.Truncate(time.Second), nil
}
