package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// The cookies by which a browser keeps its session and the logins that it has begun
// (docs/interface/id-site.md#cookies). The prefix __Host- makes browsers refuse them from any other
// host, also from a subdomain, and with any path but / (session fixation, login CSRF). They have
// SameSite=Lax: a browser sends them with the redirect of a provider or of an application, and not
// with requests that pages of other sites make.
const (
	sessionCookie   = "__Host-sso"           // the session of single sign-on (SSO)
	hostedCookie    = "__Host-sso.rq."       // a login that has begun at /sso, with a random suffix
	authorizeCookie = "__Host-authorize.rq." // a login at a provider that the Client API has begun
	signOnCookie    = "__Host-saml.rq."      // a login that a SAML service provider has requested
)

const (
	// loginCookieTTL is how long a login that has begun may take.
	loginCookieTTL = 30 * time.Minute
	// maxLoginCookies bounds the logins of one kind that a browser has begun and not ended.
	maxLoginCookies = 10
	// loginCookieSuffix is the length of the random suffix.
	loginCookieSuffix = 12
)

// sentCookie is a cookie of a request.
type sentCookie struct{ name, value string }

// readCookies returns the cookies of a request in the order in which the browser has sent them,
// which is that of their age. A name that occurs twice is left out, and is among repeated: the
// page of another host has planted one of the two, and nobody can tell which.
func readCookies(c *fiber.Ctx) (sent []sentCookie, repeated []string) {
	count := map[string]int{}
	for name, value := range c.Request().Header.Cookies() {
		sent = append(sent, sentCookie{string(name), string(value)})
		count[string(name)]++
	}
	sent = slices.DeleteFunc(sent, func(each sentCookie) bool { return count[each.name] > 1 })
	for name, times := range count {
		if times > 1 {
			repeated = append(repeated, name)
		}
	}
	return sent, repeated
}

// readCookie returns the value of a cookie of this host, or "". A cookie that occurs twice is
// cleared.
func readCookie(c *fiber.Ctx, name string) secure.Secret {
	sent, repeated := readCookies(c)
	if slices.Contains(repeated, name) {
		clearCookie(c, name)
	}
	for _, each := range sent {
		if each.name == name {
			return secure.Secret(each.value)
		}
	}
	return ""
}

// readLoginCookies returns the values of the cookies of one kind of login, the newest ones. A cookie
// that occurs twice is cleared.
func readLoginCookies(c *fiber.Ctx, kind string) idsite.BrowserTokens {
	sent, repeated := readCookies(c)
	for _, name := range repeated {
		if strings.HasPrefix(name, kind) {
			clearCookie(c, name)
		}
	}
	var tokens idsite.BrowserTokens
	for _, each := range ofKind(sent, kind) {
		tokens = append(tokens, secure.Secret(each.value))
	}
	return tokens[max(0, len(tokens)-maxLoginCookies):]
}

// ofKind returns the cookies of one kind of login.
func ofKind(sent []sentCookie, kind string) (found []sentCookie) {
	for _, each := range sent {
		if strings.HasPrefix(each.name, kind) {
			found = append(found, each)
		}
	}
	return found
}

// setLoginCookie binds a login that has begun to the browser. Each login has a cookie of its own, so
// that two tabs do not disturb each other. The oldest cookies go where the browser would have more
// than maxLoginCookies.
func setLoginCookie(c *fiber.Ctx, kind string, token secure.Secret) {
	sent, _ := readCookies(c)
	former := ofKind(sent, kind)
	for _, oldest := range former[:max(0, len(former)+1-maxLoginCookies)] {
		clearCookie(c, oldest.name)
	}
	setCookie(c, kind+secure.Token(loginCookieSuffix).Reveal(), token, loginCookieTTL)
}

// setCookie sets a cookie of this host; a life of zero is until the browser is closed.
func setCookie(c *fiber.Ctx, name string, value secure.Secret, life time.Duration) {
	addCookie(c, http.Cookie{
		Name: name, Value: value.Reveal(), Path: "/", MaxAge: int(life / time.Second), SameSite: http.SameSiteLaxMode,
	})
}

// clearCookie deletes a cookie of this host.
func clearCookie(c *fiber.Ctx, name string) {
	addCookie(c, http.Cookie{Name: name, Path: "/", Expires: time.Unix(1, 0), MaxAge: -1, SameSite: http.SameSiteLaxMode})
}

// addCookie adds a cookie that only https sends (Secure) and that no script can read (HttpOnly). It
// does not use fiber.Cookie, which omits a Max-Age of zero.
func addCookie(c *fiber.Ctx, cookie http.Cookie) {
	cookie.Secure, cookie.HttpOnly = true, true
	c.Response().Header.Add(fiber.HeaderSetCookie, cookie.String())
}
