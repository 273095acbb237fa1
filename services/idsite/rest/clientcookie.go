package rest

import (
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/secure"
)

func (c *clientCall) setTokenCookies(f *fiber.Ctx, tokens oauthapi.ClientTokens) {
	if !c.mayUseCookies {
		return
	}
	c.setTokenCookie(f, accessCookie, tokens.Access, tokens.AccessExpiresAt)
	if tokens.Refresh != "" {
		c.setTokenCookie(f, refreshCookie, tokens.Refresh, tokens.RefreshExpiresAt)
	}
}

func (c *clientCall) setTokenCookie(f *fiber.Ctx, name string, token secure.Secret, expires time.Time) {
	f.Cookie(&fiber.Cookie{
		Name: name, Value: token.Reveal(), Path: "/", Expires: expires, MaxAge: max(1, int(time.Until(expires)/time.Second)),
		HTTPOnly: true, Secure: true, SameSite: c.sameSite(),
	})
}

// sameSite lets pages of other sites send the cookies where the origin of one has
// asked for them (docs/interface/client-api.md#cookies).
func (c *clientCall) sameSite() string {
	if c.crossOrigin {
		return fiber.CookieSameSiteNoneMode
	}
	return fiber.CookieSameSiteLaxMode
}

// clearTokenCookies says in both ways that the cookies have ended. Fiber leaves a Max-Age
// of zero out.
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

const (
	accessCookie  = "access_token"
	refreshCookie = "refresh_token"
)
