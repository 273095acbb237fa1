package rest

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/secure"
)

// The cookies of the Client API with the access token and the refresh token. Against CSRF a request
// can set, clear or revoke them only where cors (clientapi.go) has set mayUseCookies.
const (
	accessCookie  = "access_token"
	refreshCookie = "refresh_token"
)

// tokenCookie returns the cookie of a token, without a value: for the address of this Client API
// alone, so that two applications on one host do not disturb each other. For the page of another site
// it has SameSite=None and, because browsers drop such a cookie without it, Partitioned (CHIPS;
// docs/interface/client-api.md#cookies).
func (c *clientCall) tokenCookie(name string) http.Cookie {
	cookie := http.Cookie{Name: name, Path: "/", SameSite: http.SameSiteLaxMode}
	if own, err := url.Parse(c.baseURL); err == nil && own.Path != "" {
		cookie.Path = own.Path
	}
	if c.crossSite {
		cookie.SameSite, cookie.Partitioned = http.SameSiteNoneMode, true
	}
	return cookie
}

// setTokenCookies sets the cookies of new tokens, unless the request is of a site that may not use
// cookies (CSRF).
func (c *clientCall) setTokenCookies(f *fiber.Ctx, tokens oauthapi.ClientTokens) {
	if !c.mayUseCookies {
		return
	}
	c.setTokenCookie(f, accessCookie, tokens.Access, tokens.AccessExpiresAt)
	if tokens.Refresh != "" {
		c.setTokenCookie(f, refreshCookie, tokens.Refresh, tokens.RefreshExpiresAt)
	}
}

// setTokenCookie sets the cookie of a token, which lives as long as the token.
func (c *clientCall) setTokenCookie(f *fiber.Ctx, name string, token secure.Secret, expires time.Time) {
	cookie := c.tokenCookie(name)
	cookie.Value, cookie.Expires, cookie.MaxAge = token.Reveal(), expires, max(1, int(time.Until(expires)/time.Second))
	addCookie(f, cookie)
}

// clearTokenCookies deletes the cookies, by Expires and by Max-Age.
func (c *clientCall) clearTokenCookies(f *fiber.Ctx) {
	if !c.mayUseCookies {
		return
	}
	for _, name := range []string{accessCookie, refreshCookie} {
		cookie := c.tokenCookie(name)
		cookie.Expires, cookie.MaxAge = time.Unix(1, 0), -1
		addCookie(f, cookie)
	}
}

// readTokenCookies returns the tokens of the cookies, each or "". Where one occurs twice, both tokens
// are "" and the cookies are cleared: the page of another host has planted one of the two, and nobody
// can tell which. The token of another application, whose Client API is on the same host, is "" too,
// and stays.
func (c *clientCall) readTokenCookies(f *fiber.Ctx) (access, refresh string) {
	sent, repeated := readCookies(f)
	if slices.Contains(repeated, accessCookie) || slices.Contains(repeated, refreshCookie) {
		c.clearTokenCookies(f)
		return "", ""
	}
	for _, each := range sent {
		switch {
		case each.name == accessCookie && !c.isOfAnotherApplication(each.value):
			access = each.value
		case each.name == refreshCookie && !c.isOfAnotherApplication(each.value):
			refresh = each.value
		}
	}
	return access, refresh
}

// isOfAnotherApplication reports whether a token says that another application has issued it. Its
// signature is not verified here: a token that lies about that is only ignored.
func (c *clientCall) isOfAnotherApplication(token string) bool {
	claims, err := secure.UnverifiedClaims(secure.Secret(token))
	if err != nil {
		return false
	}
	issuer, _ := claims["iss"].(string)
	_, application, found := strings.Cut(issuer, "/applications/")
	return found && application != c.Application.ID.String()
}
