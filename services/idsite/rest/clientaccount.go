package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
)

// getRegistration answers GET /register with the fields of a registration form.
func (c *clientCall) getRegistration(f *fiber.Ctx) error {
	m, err := c.loginModel(f)
	if err != nil {
		return err
	}
	v := registrationModelView{loginModelView: loginModelView{AccountStores: c.accountStoreViews(m.Directories)}}
	givenName, surname := false, false
	if r := m.Rules; r != nil {
		givenName, surname = r.GivenNameRequired, r.SurnameRequired
		v.PasswordPolicy = &strengthView{r.MinLength, r.MaxLength, r.MinLowerCase, r.MinUpperCase, r.MinNumeric, r.MinSymbol,
			r.MinDiacritic}
	}
	v.Form.Fields = []formField{
		{"givenName", "First Name", "First Name", givenName, "text"}, {"surname", "Last Name", "Last Name", surname, "text"},
		{"email", "Email", "Email", true, "email"}, {"password", "Password", "Password", true, "password"},
	}
	return f.JSON(v)
}

// registrationFields are the fields that a registration may have, with their labels.
var registrationFields = map[string]string{
	"email": "Email", "password": "Password", "givenName": "First Name", "middleName": "Middle Name",
	"surname":  "Last Name",
	"username": "Username", "locale": "Language", "customData": "", "organizationNameKey": "",
}

// postRegistration answers POST /register: it registers a user.
func (c *clientCall) postRegistration(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	for name := range in {
		if _, known := registrationFields[name]; !known {
			return apierr.UnknownProperty.Saying("%s is not a field of a registration.", name)
		}
	}
	at, err := in.accountStore()
	if err != nil {
		return err
	}
	m, err := c.Form(f.UserContext(), at)
	if err != nil {
		return err
	}
	required := []string{"email", "password"}
	if m.Rules != nil && m.Rules.GivenNameRequired {
		required = append(required, "givenName")
	}
	if m.Rules != nil && m.Rules.SurnameRequired {
		required = append(required, "surname")
	}
	for _, name := range required {
		if strings.TrimSpace(in.stringMember(name)) == "" {
			return apierr.Required.Saying("%s is required.", registrationFields[name])
		}
	}
	delete(in, "organizationNameKey")
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	var account directoryapi.NewAccount
	if err := field.Decode(body, &account, struct{}{}); err != nil {
		return err
	}
	made, err := c.Register(f.UserContext(), account, at)
	if err != nil {
		return err
	}
	return f.JSON(fiber.Map{"account": c.account(made)})
}

func (h *handlers) resourceHead(kind string, at interface{ String() string }, created, modified time.Time) rest.Head {
	return rest.NewHead(h.base.Path(kind, at.String()), created, modified)
}

func (h *handlers) account(a directoryapi.Account) directoryview.AccountAttributes {
	return directoryview.Attributes(h.base, a)
}

// postLogin answers POST /login: it logs a user in and sets the cookies.
func (c *clientCall) postLogin(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	if data := in["providerData"]; data != nil {
		login, err := directoryview.ReadProviderData(data)
		if err != nil {
			return err
		}
		logged, err := c.LogInWithProviderData(f.UserContext(), *login)
		return c.answerLogin(f, logged, err)
	}
	login, password := in.stringMember("login"), in.stringMember("password")
	if login == "" {
		login = in.stringMember("username")
	}
	if login == "" || password == "" {
		return apierr.Required.Saying("Username or Email and Password are required.")
	}
	at, err := in.accountStore()
	if err != nil {
		return err
	}
	logged, err := c.LogIn(f.UserContext(), login, secure.Secret(password), at)
	return c.answerLogin(f, logged, err)
}

// answerLogin sets the cookies of a login and answers with its account or, where the login needs a
// second factor, with the state for that.
func (c *clientCall) answerLogin(f *fiber.Ctx, logged journey.TokenLogin, err error) error {
	if refusal := apierr.From(err); err != nil && refusal.Fields["action"] != nil {
		f.Status(http.StatusBadRequest)
		return f.JSON(refusal.Fields)
	}
	if err != nil {
		return err
	}
	c.setTokenCookies(f, logged.Tokens)
	return f.JSON(fiber.Map{"account": c.account(logged.Account)})
}

// logout revokes the access and refresh token of a request. It ignores the cookies of a page whose
// origin is not allowed (CSRF).
func (c *clientCall) logout(f *fiber.Ctx) error {
	tokens := []string{bearer(f)}
	if c.mayUseCookies {
		access, refresh := c.readTokenCookies(f)
		tokens = append(tokens, refresh, access)
	}
	for _, token := range tokens {
		if token == "" {
			continue
		}
		err := c.Revoke(f.UserContext(), map[string]secure.Secret{"token": secure.Secret(token)})
		if err != nil && !apierr.IsRefusal(err) {
			return err
		}
	}
	c.clearTokenCookies(f)
	return sendEmpty(f, nil)
}

// sendEmpty answers 200 without a body, or returns err.
func sendEmpty(f *fiber.Ctx, err error) error {
	f.Status(http.StatusOK)
	return err
}

func bearer(f *fiber.Ctx) string { return authorizationCredential(f, "Bearer") }

// presented returns the access token of the header Authorization: a Bearer token or, with its proofs of possession,
// one that is bound to a key (RFC 9449, section 7.1).
func (c *clientCall) presented(f *fiber.Ctx) oauthapi.PresentedToken {
	if bound := authorizationCredential(f, "DPoP"); bound != "" {
		return oauthapi.PresentedToken{Token: secure.Secret(bound), Scheme: "dpop", Method: f.Method(),
			Address: c.baseURL + "/" + f.Params("*"), Proofs: rest.Proofs(f)}
	}
	return oauthapi.PresentedToken{Token: secure.Secret(bearer(f)), Scheme: "bearer"}
}

// authorizationCredential returns the credential in the header Authorization, if its scheme is the
// given one in any letter case (RFC 9110, section 11.1), otherwise "".
func authorizationCredential(f *fiber.Ctx, scheme string) string {
	sent, value, _ := strings.Cut(f.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(sent, scheme) {
		return ""
	}
	return value
}

// loginName returns the member login of a body, or the member email.
func loginName(in input) (string, error) {
	login, email := strings.TrimSpace(in.stringMember("login")), strings.TrimSpace(in.stringMember("email"))
	switch {
	case login == "" && email == "":
		return "", apierr.Required.Saying("Username or Email is required.")
	case login != "" && email != "" && login != email:
		return "", apierr.BadRequest.Saying("login and email differ.")
	case login == "":
		return email, nil
	}
	return login, nil
}

// forgotPassword answers POST /forgot: it sends a password reset mail. It answers 200 for every body
// that can be read (user enumeration). Without a login name, or with two that differ, it looks up
// the empty login name, which no account has.
func (c *clientCall) forgotPassword(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	at, err := in.accountStore()
	if err != nil {
		return err
	}
	login, _ := loginName(in)
	return sendEmpty(f, c.RequestPasswordReset(f.UserContext(), login, at))
}

// spToken returns the token of a mailed link (sptoken), from the body or the query.
func spToken(f *fiber.Ctx, in input) (secure.Secret, error) {
	token := in.stringMember("sptoken")
	if token == "" {
		token = f.Query("sptoken")
	}
	if token == "" {
		return "", apierr.Required.Saying("sptoken is required.")
	}
	return secure.Secret(token), nil
}

func (c *clientCall) checkReset(f *fiber.Ctx) error {
	token, err := spToken(f, nil)
	if err != nil {
		return err
	}
	return sendEmpty(f, c.CheckReset(f.UserContext(), token))
}

func (c *clientCall) changePassword(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	token, err := spToken(f, in)
	if err != nil {
		return err
	}
	password := in.stringMember("password")
	if password == "" {
		return apierr.Required.Saying("Password is required.")
	}
	return sendEmpty(f, c.ChangePassword(f.UserContext(), token, secure.Secret(password)))
}

func (c *clientCall) verifyEmail(f *fiber.Ctx) error {
	token, err := spToken(f, nil)
	if err != nil {
		return err
	}
	if f.Method() == fiber.MethodHead {
		return sendEmpty(f, nil) // a link scanner must not consume the token
	}
	_, err = c.Journey.VerifyEmail(f.UserContext(), c.Application.TenantID, token)
	return sendEmpty(f, err)
}

func (c *clientCall) sendVerification(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	login, err := loginName(in)
	if err != nil {
		return err
	}
	at, err := in.accountStore()
	if err != nil {
		return err
	}
	return sendEmpty(f, c.SendVerification(f.UserContext(), login, at))
}

// me answers GET /me with the account of an access token.
func (c *clientCall) me(f *fiber.Ctx) error {
	return c.withToken(f, func(valid oauthapi.ValidToken) error {
		profile, err := c.Me(f.UserContext(), valid.Account)
		if err != nil {
			return err
		}
		return f.JSON(fiber.Map{"account": c.profile(profile)})
	})
}

// withAccount is withToken for what needs nothing but the account.
func (c *clientCall) withAccount(f *fiber.Ctx, answer func(account id.Ref) error) error {
	return c.withToken(f, func(valid oauthapi.ValidToken) error {
		return answer(id.Ref{Tenant: c.Application.TenantID, ID: valid.Account.ID})
	})
}

// withToken answers a request that has a valid access token. If the tokens come in cookies, an access
// token that is missing or no longer valid is renewed by the refresh token.
func (c *clientCall) withToken(f *fiber.Ctx, answer func(oauthapi.ValidToken) error) error {
	token, byCookie := c.presented(f), false
	access, refresh := c.readTokenCookies(f)
	if f.Method() == fiber.MethodDelete && !c.mayUseCookies {
		access, refresh = "", ""
	}
	if token.Token == "" {
		token, byCookie = oauthapi.PresentedToken{Token: secure.Secret(access)}, true
	}
	valid, err := c.Validate(f.UserContext(), token)
	if byCookie && refresh != "" && apierr.IsRefusal(err) {
		var tokens oauthapi.ClientTokens
		tokens, err = c.Token(f.UserContext(),
			map[string]secure.Secret{"grant_type": "refresh_token", "refresh_token": secure.Secret(refresh)})
		if err == nil {
			c.setTokenCookies(f, tokens)
			valid, err = c.Validate(f.UserContext(), oauthapi.PresentedToken{Token: tokens.Access})
		}
	}
	if apierr.IsRefusal(err) && !errors.Is(err, apierr.TooMany) {
		if access != "" || refresh != "" {
			c.clearTokenCookies(f)
		}
		f.Set(fiber.HeaderWWWAuthenticate,
			`Bearer realm="`+strings.NewReplacer(`"`, "'", `\`, "").Replace(c.Application.Name)+`"`)
		f.Status(http.StatusUnauthorized)
		return nil
	}
	if err != nil {
		return err
	}
	return answer(valid)
}
