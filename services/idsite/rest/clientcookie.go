package rest

import (
	"net/http"
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

// setTokenCookie sets the cookie of a token with its flags: HttpOnly, Secure, SameSite.
func (c *clientCall) setTokenCookie(f *fiber.Ctx, name string, token secure.Secret, expires time.Time) {
	f.Cookie(&fiber.Cookie{
		Name: name, Value: token.Reveal(), Path: "/", Expires: expires, MaxAge: max(1, int(time.Until(expires)/time.Second)),
		HTTPOnly: true, Secure: true, SameSite: c.sameSite(),
	})
}

// sameSite is the SameSite of the cookies: None for a request of an allowed origin, which may be
// another site, otherwise Lax (docs/interface/client-api.md#cookies).
func (c *clientCall) sameSite() string {
	if c.crossOrigin {
		return fiber.CookieSameSiteNoneMode
	}
	return fiber.CookieSameSiteLaxMode
}

// clearTokenCookies deletes the cookies, by Expires and by Max-Age. It does not use fiber.Cookie, which
// omits a Max-Age of zero.
func (c *clientCall) clearTokenCookies(f *fiber.Ctx) {
	if !c.mayUseCookies {
		return
	}
	sameSite := http.SameSiteLaxMode
	if c.crossOrigin {
		sameSite = http.SameSiteNoneMode
	}
	for _, name := range []string{accessCookie, refreshCookie} {
		ended := http.Cookie{
			Name: name, Path: "/", Expires: time.Unix(1, 0), MaxAge: -1, HttpOnly: true, Secure: true, SameSite: sameSite,
		}
		f.Response().Header.Add(fiber.HeaderSetCookie, ended.String())
	}
}
