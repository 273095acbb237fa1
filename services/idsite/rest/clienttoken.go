package rest

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
)

// readTokenForm reads the form of the token endpoint. The credentials of the grant client_credentials
// may be in the header Authorization, as Basic.
func (c *clientCall) readTokenForm(f *fiber.Ctx) (map[string]secure.Secret, error) {
	kind, _, _ := strings.Cut(f.Get(fiber.HeaderContentType), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), fiber.MIMEApplicationForm) {
		return nil, apierr.Format.Because("send the body as Content-Type: %s", fiber.MIMEApplicationForm)
	}
	in, err := readInput(f)
	if err != nil {
		return nil, err
	}
	form := map[string]secure.Secret{}
	for name := range in {
		form[name] = secure.Secret(in.stringMember(name))
	}
	if basic := authorizationCredential(f, "Basic"); basic != "" && form["grant_type"] == "client_credentials" {
		decoded, err := base64.StdEncoding.DecodeString(basic)
		if err != nil {
			decoded, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(basic, "="))
		}
		key, secret, found := bytes.Cut(decoded, []byte(":"))
		if err != nil || !found {
			return nil, apierr.Unauthorized.Because("the Authorization header is not Basic with an API key").With("error",
				"invalid_client")
		}
		form["client_id"], form["client_secret"] = secure.Secret(key), secure.Secret(secret)
	}
	return form, nil
}

type tokenView struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token,omitempty"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int    `json:"expires_in"`
}

// token answers POST /oauth/token: it issues tokens, and sets the cookies.
func (c *clientCall) token(f *fiber.Ctx) error {
	form, err := c.readTokenForm(f)
	if err != nil {
		return err
	}
	tokens, err := c.Token(f.UserContext(), form)
	if err != nil {
		return err
	}
	c.setTokenCookies(f, tokens)
	return f.JSON(tokenView{tokens.Access.Reveal(), tokens.Refresh.Reveal(), "Bearer", tokens.ExpiresIn})
}

// revoke answers POST /oauth/revoke: it revokes a token and deletes the cookies.
func (c *clientCall) revoke(f *fiber.Ctx) error {
	form, err := c.readTokenForm(f)
	if err != nil {
		return err
	}
	if err := c.Revoke(f.UserContext(), form); err != nil {
		return err
	}
	c.clearTokenCookies(f)
	return sendEmpty(f, nil)
}
