package openid

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth/store"
)

// PreviewRequest is the body that asks for a preview.
type PreviewRequest struct {
	Account  field.Link `json:"account"`
	Scopes   field.List `json:"scopes"`   // absent: all that the client may have
	Resource field.Text `json:"resource"` // absent: the issuer
}

// Preview is what a login of an account would give a client now: the claims, of which nothing is signed or issued.
type Preview struct {
	IDToken     map[string]any `json:"idToken"`
	AccessToken map[string]any `json:"accessToken"`
	UserInfo    map[string]any `json:"userInfo"`
}

// Preview returns the claims that a login of an account would give a client now. An account that may not act through
// the application is apierr.NotMapped.
func (s *Service) Preview(ctx context.Context, client id.Ref, in PreviewRequest) (Preview, error) {
	c, err := s.Client(ctx, client)
	if err != nil {
		return Preview{}, err
	}
	app, err := s.Application.Application(ctx, id.Ref{Tenant: c.TenantID, ID: c.ApplicationID})
	if err != nil {
		return Preview{}, err
	}
	i, err := s.issuerOf(ctx, app)
	if err != nil {
		return Preview{}, err
	}
	if !in.Account.Given() {
		return Preview{}, apierr.Required.Because("account is required: a link to an account")
	}
	ref, ok := s.Base.Parse(in.Account.Value.Href)
	if !ok || ref.Kind != "accounts" {
		return Preview{}, apierr.Reference.Because("account must be a link to an account; it is %q", in.Account.Value.Href)
	}
	login := store.Login{Account: ref.ID, At: s.Now().Truncate(time.Second), ACR: acrValues[0], AMR: []string{"pwd"}}
	account, err := s.account(ctx, i.ref(), login)
	if apierr.IsRefusal(err) {
		return Preview{}, apierr.NotMapped.Because("account may not act through the application: %s", apierr.From(err).Reason)
	}
	if err != nil {
		return Preview{}, err
	}
	r := request{issuer: i, client: c, now: login.At}
	allowed := issue{login: login}
	if allowed.audience, err = i.target(in.Resource.Or("")); err != nil {
		return Preview{}, plain(err)
	}
	asked := in.Scopes.Or(nil)
	if asked == nil {
		asked = slices.DeleteFunc(i.scopeNames(), func(name string) bool { return !i.mayHave(c, name) })
	}
	if allowed.scopes, err = i.allowedScopes(c, strings.Join(asked, " "), allowed.audience, false); err != nil {
		return Preview{}, plain(err)
	}
	if allowed.scopes, err = s.withoutForeignScopes(ctx, i, login.Account, allowed.scopes); err != nil {
		return Preview{}, err
	}
	token, err := s.newToken(ctx, r, allowed)
	if err != nil {
		return Preview{}, err
	}
	out := Preview{IDToken: map[string]any{}, UserInfo: map[string]any{"sub": i.subject(c, account.ID)}}
	if out.AccessToken, err = s.accessClaims(ctx, i, c, token, account); err != nil {
		return Preview{}, err
	}
	if !slices.Contains(allowed.scopes, scopeOpenID) {
		out.UserInfo = map[string]any{}
		return out, nil
	}
	out.IDToken, _, err = s.idClaims(ctx, r, allowed, account)
	return out, errors.Join(err, s.accountClaims(ctx, i, out.UserInfo, account, login, allowed.scopes, nil, inUserInfo))
}

// plain is the error of a standard as one of the management API.
func plain(err error) error {
	if !apierr.IsRefusal(err) {
		return err
	}
	return apierr.Format.Because("%s", apierr.From(err).Reason)
}
