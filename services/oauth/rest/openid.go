package rest

import (
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/signing"
)

// mountOpenID adds the endpoints of the OpenID providers. The gateway sends their requests without a tenant: that of
// the application is found by the rules.
func (h *handlers) mountOpenID(app *fiber.App) {
	const discovery, metadata, keys = "/oidc/:id/.well-known/openid-configuration",
		"/.well-known/oauth-authorization-server/oidc/:id",
		"/oidc/:id/jwks"
	for _, path := range []string{discovery, metadata, keys} {
		app.Use(path, anyOrigin)
	}
	app.Get(discovery, h.discovery)
	app.Get(metadata, h.discovery)
	app.Get(keys, h.keySet)

	calls := app.Group("/oidc/:id", rest.OAuthErrors(h.base), noStore, h.cors, h.challenge)
	calls.Post("/token", h.openIDTokens)
	calls.Post("/par", h.pushRequest)
	calls.Post("/device_authorization", h.authorizeDevice)
	calls.Post("/introspect", h.introspect)
	calls.Post("/revoke", h.revokeOpenIDToken)
	calls.Post("/register", registered(fiber.StatusCreated, h.svc.RegisterClient))
	calls.Get("/register/:client", registered(fiber.StatusOK, h.svc.RegisteredClient))
	calls.Put("/register/:client", registered(fiber.StatusOK, h.svc.UpdateRegisteredClient))
	calls.Delete("/register/:client", h.deleteRegistration)
	calls.Get("/userinfo", h.userInfo)
	calls.Post("/userinfo", h.userInfo)
}

// anyOrigin lets pages of every origin read a public document.
func anyOrigin(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAccessControlAllowOrigin, "*")
	if c.Method() == fiber.MethodOptions {
		return rest.NoContent(c)
	}
	return c.Next()
}

// cors lets pages of the origins of the provider's clients call it, without cookies.
func (h *handlers) cors(c *fiber.Ctx) error {
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" || strings.HasSuffix(c.Path(), "/introspect") || strings.Contains(c.Path(), "/register") {
		return c.Next()
	}
	application, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	allowed, err := h.svc.AllowsOrigin(c.UserContext(), application, origin)
	if err != nil {
		return err
	}
	c.Vary(fiber.HeaderOrigin)
	if allowed {
		c.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		c.Set(fiber.HeaderAccessControlExposeHeaders, "DPoP-Nonce, WWW-Authenticate")
	}
	if c.Method() != fiber.MethodOptions {
		return c.Next()
	}
	if allowed {
		c.Set(fiber.HeaderAccessControlAllowMethods, "GET, POST")
		c.Set(fiber.HeaderAccessControlAllowHeaders, "Authorization, Content-Type, DPoP")
		c.Set(fiber.HeaderAccessControlMaxAge, "600")
	}
	return rest.NoContent(c)
}

// cacheable answers with a document that caches may keep for the caching time of the keys.
func cacheable(c *fiber.Ctx, document any) error {
	if err := rest.OK(c, document); err != nil {
		return err
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age="+strconv.Itoa(int(signing.KeySetMaxAge.Seconds())))
	return nil
}

func (h *handlers) discovery(c *fiber.Ctx) error {
	application, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	document, err := h.svc.Discovery(c.UserContext(), application)
	if err != nil {
		return err
	}
	return cacheable(c, document)
}

func (h *handlers) keySet(c *fiber.Ctx) error {
	application, err := rest.ID(c, "id")
	if err != nil {
		return err
	}
	set, err := h.svc.Keys(c.UserContext(), application)
	if err != nil {
		return err
	}
	return cacheable(c, set)
}

// call reads a request of a client: its form, its credentials and its proofs of possession.
func call(c *fiber.Ctx) (in openid.Call, err error) {
	if in.Application, err = rest.ID(c, "id"); err != nil {
		return in, err
	}
	in.Authenticated = func(client id.Ref) { c.Set(caller.ClientHeader, caller.FormatClient(client)) }
	path := c.Path()
	in.Method, in.Endpoint = c.Method(), path[strings.LastIndexByte(path, '/'):]
	in.Proofs = rest.Proofs(c)
	if in.Form, err = clientForm(c); err != nil {
		return in, err
	}
	authorization := c.Request().Header.PeekAll(fiber.HeaderAuthorization)
	if len(authorization) == 0 {
		return in, nil
	}
	scheme, text, _ := strings.Cut(string(authorization[0]), " ")
	in.Scheme = strings.ToLower(scheme)
	switch text = strings.TrimSpace(text); {
	case len(authorization) > 1:
		return in, invalidRequest(apierr.BadRequest.Because("there is more than one header Authorization"))
	case in.Scheme == "basic":
		in.Basic, err = basicCredentials(text)
	case in.Scheme == "bearer" || in.Scheme == "dpop":
		in.Bearer = secure.Secret(text)
	}
	return in, err
}

// clientForm reads the form in the body; a request without a body has none.
func clientForm(c *fiber.Ctx) (openid.Form, error) {
	if len(c.Body()) == 0 {
		return openid.Form{}, nil
	}
	form, err := bodyForm(c)
	return openid.Form(form), err
}

// basicCredentials reads the credentials of HTTP Basic authentication, whose parts are form-encoded (RFC 6749, section
// 2.3.1).
func basicCredentials(encoded string) (*openid.BasicCredentials, error) {
	wrong := apierr.Unauthorized.Because("the header Authorization needs the Base64 of client_id:client_secret").
		With("error", "invalid_client")
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, wrong
	}
	name, secret, ok := strings.Cut(string(plain), ":")
	clientID, err := url.QueryUnescape(name)
	if !ok || err != nil {
		return nil, wrong
	}
	if secret, err = url.QueryUnescape(secret); err != nil {
		return nil, wrong
	}
	return &openid.BasicCredentials{ID: clientID, Secret: secure.Secret(secret)}, nil
}

// challenge is the middleware that adds to an answer what its error asks of a client: an authentication, or a nonce
// for the next proof.
func (h *handlers) challenge(c *fiber.Ctx) error {
	err := c.Next()
	if err == nil {
		return nil
	}
	code, _ := apierr.From(err).Fields["error"].(string)
	switch code {
	case "invalid_token":
		if c.GetRespHeader(fiber.HeaderWWWAuthenticate) == "" { // UserInfo has one of its own
			c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="invalid_token"`)
		}
	case "invalid_client":
		c.Set(fiber.HeaderWWWAuthenticate, `Basic realm="OpenID provider", charset="UTF-8"`)
	case "use_dpop_nonce":
		c.Set("DPoP-Nonce", h.svc.Nonce())
	}
	return err
}

func (h *handlers) openIDTokens(c *fiber.Ctx) error {
	in, err := call(c)
	if err != nil {
		return err
	}
	issued, err := h.svc.OpenID.Token(c.UserContext(), in)
	if err != nil {
		return err
	}
	return c.JSON(issued)
}

func (h *handlers) pushRequest(c *fiber.Ctx) error {
	in, err := call(c)
	if err != nil {
		return err
	}
	pushed, err := h.svc.Push(c.UserContext(), in)
	if err != nil {
		return err
	}
	return c.Status(fiber.StatusCreated).JSON(pushed)
}

func (h *handlers) authorizeDevice(c *fiber.Ctx) error {
	in, err := call(c)
	if err != nil {
		return err
	}
	device, err := h.svc.AuthorizeDevice(c.UserContext(), in)
	if err != nil {
		return err
	}
	return c.JSON(device)
}

func (h *handlers) introspect(c *fiber.Ctx) error {
	in, err := call(c)
	if err != nil {
		return err
	}
	if accepted := "application/" + openid.TypeIntrospection; strings.Contains(c.Get(fiber.HeaderAccept), accepted) {
		signed, err := h.svc.SignedIntrospection(c.UserContext(), in)
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, accepted)
		return c.SendString(signed.Reveal())
	}
	found, err := h.svc.Introspect(c.UserContext(), in)
	if err != nil {
		return err
	}
	return c.JSON(found)
}

func (h *handlers) revokeOpenIDToken(c *fiber.Ctx) error {
	in, err := call(c)
	if err != nil {
		return err
	}
	return h.svc.OpenID.Revoke(c.UserContext(), in)
}

// userInfo answers with the claims of an account. The token may be a field of a form too (RFC 6750, section 2.2); its
// errors stand in WWW-Authenticate (section 3).
func (h *handlers) userInfo(c *fiber.Ctx) error {
	in, err := call(c)
	if err == nil && in.Bearer == "" {
		in.Bearer, in.Scheme = in.Form["access_token"], "bearer"
	} else if err == nil && in.Form["access_token"] != "" {
		err = invalidRequest(apierr.BadRequest.Because("the access token is sent in two ways"))
	}
	var info openid.UserInfo
	if err == nil {
		info, err = h.svc.UserInfo(c.UserContext(), in)
	}
	if err != nil {
		refusal := apierr.From(err)
		code, _ := refusal.Fields["error"].(string)
		if refusal.Status == fiber.StatusBadRequest && strings.Contains(code, "dpop") {
			err = apierr.Unauthorized.Because("%s", refusal.Reason).With("error", code)
		}
		if code != "" {
			c.Set(fiber.HeaderWWWAuthenticate, `Bearer error="`+code+`", DPoP error="`+code+`", algs="ES256 PS256 EdDSA"`)
		}
		return err
	}
	if info.Signed != "" {
		c.Set(fiber.HeaderContentType, "application/jwt")
		return c.SendString(info.Signed.Reveal())
	}
	return c.JSON(info.Claims)
}
