package rest

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// collections are the path segments of the two kinds of token.
var collections = map[store.TokenKind]string{store.Access: "accessTokens", store.Refresh: "refreshTokens"}

// issuedTokensView renders the answer of the token endpoint (RFC 6749, section 5.1). The name
// of one member contains the alias of the deployment.
func (h *handlers) issuedTokensView(issued oauth.IssuedTokens) map[string]any {
	view := map[string]any{
		"access_token": issued.Access.Reveal(),
		"token_type":   "Bearer",
		"expires_in":   int64(issued.ExpiresIn / time.Second),
		h.alias.Spell("service_access_token_href"): h.base.To("accessTokens", issued.AccessTokenID),
	}
	if issued.Refresh != "" {
		view["refresh_token"] = issued.Refresh.Reveal()
	}
	return view
}

type tokenView struct {
	Href        string      `json:"href"`
	CreatedAt   rest.Time   `json:"createdAt"`
	JWT         string      `json:"jwt"`
	ExpandedJWT expandedJWT `json:"expandedJwt"`
	Account     href.Link   `json:"account"`
	Application href.Link   `json:"application"`
	Tenant      href.Link   `json:"tenant"`
}

// expandedJWT is a JWT with its header and claims decoded.
type expandedJWT struct {
	Header    json.RawMessage `json:"header"`
	Claims    json.RawMessage `json:"claims"`
	Signature string          `json:"signature"`
}

func (h *handlers) tokenView(t store.TokenWithJWT) tokenView {
	return tokenView{
		Href: h.base.To(collections[t.Kind], t.ID), CreatedAt: rest.Time(t.IssuedAt), JWT: t.JWT.Reveal(), ExpandedJWT: expandJWT(t.JWT.Reveal()),
		Account: h.base.Link("accounts", t.AccountID), Application: h.base.Link("applications", t.ApplicationID),
		Tenant: h.base.Link("tenants", t.TenantID),
	}
}

// expandJWT decodes a JWT that the OAuth service has just signed.
func expandJWT(jwt string) expandedJWT {
	parts := strings.Split(jwt, ".")
	header, _ := base64.RawURLEncoding.DecodeString(parts[0])
	claims, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return expandedJWT{Header: header, Claims: claims, Signature: parts[2]}
}

type policyView struct {
	rest.Head
	AccessTokenTTL     string    `json:"accessTokenTtl"`
	RefreshTokenTTL    string    `json:"refreshTokenTtl"`
	RevokeTokens       bool      `json:"revokeTokensOnPasswordChange"`
	TokenSigning       string    `json:"tokenSigning"`
	TokenEndpoint      href.Link `json:"tokenEndpoint"`
	RevocationEndpoint href.Link `json:"revocationEndpoint"`
	Application        href.Link `json:"application"`
	Tenant             href.Link `json:"tenant"`
}

func (h *handlers) policyView(p store.Policy) policyView {
	return policyView{
		Head:           rest.NewHead(h.base.To("oAuthPolicies", p.ApplicationID), p.CreatedAt, p.ModifiedAt),
		AccessTokenTTL: p.AccessTokenTTL, RefreshTokenTTL: p.RefreshTokenTTL, RevokeTokens: p.RevokeTokensOnPasswordChange,
		TokenSigning:       p.TokenSigning,
		TokenEndpoint:      h.base.Link("applications", p.ApplicationID, "oauth", "token"),
		RevocationEndpoint: h.base.Link("applications", p.ApplicationID, "oauth", "revoke"),
		Application:        h.base.Link("applications", p.ApplicationID), Tenant: h.base.Link("tenants", p.TenantID),
	}
}

// apiKeyView is the representation of an API key. It has no createdAt and modifiedAt.
type apiKeyView struct {
	Href        string    `json:"href"`
	ID          string    `json:"id"`
	Secret      string    `json:"secret"`
	Status      string    `json:"status"`
	Name        *string   `json:"name"`
	Description *string   `json:"description"`
	Account     href.Link `json:"account"`
	Tenant      href.Link `json:"tenant"`
}

func (h *handlers) apiKeyView(k store.APIKey) apiKeyView {
	return apiKeyView{
		Href: h.base.Path("apiKeys", k.ID), ID: k.ID, Secret: k.Secret.Reveal(), Status: k.Status, Name: k.Name, Description: k.Description,
		Account: h.base.Link("accounts", k.AccountID), Tenant: h.base.Link("tenants", k.TenantID),
	}
}
