package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/pkg/secure"
)

func (c *clientCall) registration(f *fiber.Ctx) error {
	m, err := c.model(f)
	if err != nil {
		return err
	}
	v := registrationModelView{loginModelView: loginModelView{AccountStores: c.stores(m.Directories)}}
	givenName, surname := false, false
	if r := m.Rules; r != nil {
		givenName, surname = r.GivenNameRequired, r.SurnameRequired
		v.PasswordPolicy = &strengthView{r.MinLength, r.MaxLength, r.MinLowerCase, r.MinUpperCase, r.MinNumeric, r.MinSymbol, r.MinDiacritic}
	}
	v.Form.Fields = []formField{
		{"givenName", "First Name", "First Name", givenName, "text"}, {"surname", "Last Name", "Last Name", surname, "text"},
		{"email", "Email", "Email", true, "email"}, {"password", "Password", "Password", true, "password"},
	}
	return f.JSON(v)
}

// registrationFields are what a registration may send, with their labels.
var registrationFields = map[string]string{
	"email": "Email", "password": "Password", "givenName": "First Name", "middleName": "Middle Name", "surname": "Last Name",
	"username": "Username", "customData": "", "organizationNameKey": "",
}

func (c *clientCall) register(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	for name := range in {
		if _, known := registrationFields[name]; !known {
			return apierr.UnknownProperty.Saying("%s is not a field of a registration.", name)
		}
	}
	m, err := c.Model(f.UserContext(), in.place())
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
		if strings.TrimSpace(in.text(name)) == "" {
			return apierr.Required.Saying("%s is required.", registrationFields[name])
		}
	}
	at := in.place()
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

func (h *handlers) head(kind string, at interface{ String() string }, created, modified time.Time) rest.Head {
	return rest.NewHead(h.base.Path(kind, at.String()), created, modified)
}

func (h *handlers) account(a directoryapi.Account) directoryview.AccountAttributes {
	return directoryview.Attributes(h.base, a)
}

// logIn answers POST /login, which also sets the cookies.
func (c *clientCall) logIn(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	if data := in["providerData"]; data != nil {
		login, err := directoryview.ReadProviderData(data)
		if err != nil {
			return err
		}
		account, tokens, err := c.LogInAtProvider(f.UserContext(), *login)
		return c.answerLogin(f, account, tokens, err)
	}
	login, password := in.text("login"), in.text("password")
	if login == "" {
		login = in.text("username")
	}
	if login == "" || password == "" {
		return apierr.Required.Saying("Username or Email and Password are required.")
	}
	account, tokens, err := c.LogIn(f.UserContext(), login, secure.Secret(password), in.place())
	return c.answerLogin(f, account, tokens, err)
}

// answerLogin sets the cookies of a login and answers with its account, or with what
// the login demands.
func (c *clientCall) answerLogin(f *fiber.Ctx, account directoryapi.Account, tokens oauthapi.ClientTokens, err error) error {
	if refusal := apierr.From(err); err != nil && refusal.Fields["action"] != nil {
		f.Status(http.StatusBadRequest)
		return f.JSON(refusal.Fields)
	}
	if err != nil {
		return err
	}
	c.setTokens(f, tokens)
	return f.JSON(fiber.Map{"account": c.account(account)})
}

func (c *clientCall) setTokens(f *fiber.Ctx, tokens oauthapi.ClientTokens) {
	if !c.trusted {
		return
	}
	c.setCookie(f, accessCookie, tokens.Access, tokens.AccessExpiresAt)
	if tokens.Refresh != "" {
		c.setCookie(f, refreshCookie, tokens.Refresh, tokens.RefreshExpiresAt)
	}
}

func (c *clientCall) setCookie(f *fiber.Ctx, name string, token secure.Secret, expires time.Time) {
	f.Cookie(&fiber.Cookie{
		Name: name, Value: token.Reveal(), Path: "/", Expires: expires, MaxAge: max(1, int(time.Until(expires)/time.Second)),
		HTTPOnly: true, Secure: true, SameSite: c.sameSite(),
	})
}

// sameSite lets pages of other sites send the cookies where the origin of one has
// asked for them (docs/interface/client-api.md#cookies).
func (c *clientCall) sameSite() string {
	if c.crossed {
		return fiber.CookieSameSiteNoneMode
	}
	return fiber.CookieSameSiteLaxMode
}

// clearCookies says in both ways that the cookies have ended. Fiber leaves a Max-Age
// of zero out.
func (c *clientCall) clearCookies(f *fiber.Ctx) {
	if !c.trusted {
		return
	}
	sameSite := http.SameSiteLaxMode
	if c.crossed {
		sameSite = http.SameSiteNoneMode
	}
	for _, name := range []string{accessCookie, refreshCookie} {
		ended := http.Cookie{
			Name: name, Path: "/", Expires: time.Unix(1, 0), MaxAge: -1, HttpOnly: true, Secure: true, SameSite: sameSite,
		}
		f.Response().Header.Add(fiber.HeaderSetCookie, ended.String())
	}
}

// form reads the fields of a token endpoint. Client credentials may stand in the
// Authorization header.
func (c *clientCall) form(f *fiber.Ctx) (map[string]secure.Secret, error) {
	if kind, _, _ := strings.Cut(f.Get(fiber.HeaderContentType), ";"); !strings.EqualFold(strings.TrimSpace(kind), fiber.MIMEApplicationForm) {
		return nil, apierr.Format.Because("send the body as Content-Type: %s", fiber.MIMEApplicationForm)
	}
	in, err := readInput(f)
	if err != nil {
		return nil, err
	}
	form := map[string]secure.Secret{}
	for name := range in {
		form[name] = secure.Secret(in.text(name))
	}
	if basic := credential(f, "Basic"); basic != "" && form["grant_type"] == "client_credentials" {
		decoded, err := base64.StdEncoding.DecodeString(basic)
		if err != nil {
			decoded, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(basic, "="))
		}
		key, secret, found := bytes.Cut(decoded, []byte(":"))
		if err != nil || !found {
			return nil, apierr.Unauthorized.Because("the Authorization header is not Basic with an API key").With("error", "invalid_client")
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

func (c *clientCall) token(f *fiber.Ctx) error {
	form, err := c.form(f)
	if err != nil {
		return err
	}
	tokens, err := c.Token(f.UserContext(), form)
	if err != nil {
		return err
	}
	c.setTokens(f, tokens)
	return f.JSON(tokenView{tokens.Access.Reveal(), tokens.Refresh.Reveal(), "Bearer", tokens.ExpiresIn})
}

func (c *clientCall) revoke(f *fiber.Ctx) error {
	form, err := c.form(f)
	if err != nil {
		return err
	}
	if err := c.Revoke(f.UserContext(), form); err != nil {
		return err
	}
	c.clearCookies(f)
	return empty(f, nil)
}

// logout revokes the tokens of a request. A page of an origin that is not allowed may
// send the cookies of its visitor along, and does not end their login.
func (c *clientCall) logout(f *fiber.Ctx) error {
	tokens := []string{bearer(f)}
	if c.trusted {
		tokens = append(tokens, f.Cookies(refreshCookie), f.Cookies(accessCookie))
	}
	for _, token := range tokens {
		if token == "" {
			continue
		}
		err := c.Revoke(f.UserContext(), map[string]secure.Secret{"token": secure.Secret(token)})
		if refusal := apierr.From(err); err != nil && refusal.Status >= http.StatusInternalServerError {
			return err
		}
	}
	c.clearCookies(f)
	return empty(f, nil)
}

// empty answers 200 without a body, or with err.
func empty(f *fiber.Ctx, err error) error {
	f.Status(http.StatusOK)
	return err
}

func bearer(f *fiber.Ctx) string { return credential(f, "Bearer") }

// credential is what the header Authorization has of a scheme, whose name may be in any
// letter case (RFC 9110, section 11.1), or "".
func credential(f *fiber.Ctx, scheme string) string {
	sent, value, _ := strings.Cut(f.Get(fiber.HeaderAuthorization), " ")
	if !strings.EqualFold(sent, scheme) {
		return ""
	}
	return value
}

// oneLogin is the login of a body, which may call it email.
func oneLogin(in input) (string, error) {
	login, email := strings.TrimSpace(in.text("login")), strings.TrimSpace(in.text("email"))
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

// forgot answers 200 for every body that can be read. Without a login, or with two
// that differ, it asks for the empty one, which no account has.
func (c *clientCall) forgot(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	login, _ := oneLogin(in)
	return empty(f, c.Forgot(f.UserContext(), login, in.place()))
}

// spToken is the token of a mailed link, from the body or the query.
func spToken(f *fiber.Ctx, in input) (secure.Secret, error) {
	token := in.text("sptoken")
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
	return empty(f, c.CheckReset(f.UserContext(), token))
}

func (c *clientCall) change(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	token, err := spToken(f, in)
	if err != nil {
		return err
	}
	password := in.text("password")
	if password == "" {
		return apierr.Required.Saying("Password is required.")
	}
	return empty(f, c.ChangePassword(f.UserContext(), token, secure.Secret(password)))
}

func (c *clientCall) verify(f *fiber.Ctx) error {
	token, err := spToken(f, nil)
	if err != nil {
		return err
	}
	if f.Method() == fiber.MethodHead {
		return empty(f, nil) // a scanner that looks at the link must not use it
	}
	return empty(f, c.Verify(f.UserContext(), token))
}

func (c *clientCall) sendVerification(f *fiber.Ctx) error {
	in, err := readInput(f)
	if err != nil {
		return err
	}
	login, err := oneLogin(in)
	if err != nil {
		return err
	}
	return empty(f, c.SendVerification(f.UserContext(), login, in.place()))
}

// me shows the account of an access token. Where cookies are the credential, an
// access token that is missing or no longer valid is renewed by the refresh token.
func (c *clientCall) me(f *fiber.Ctx) error {
	token, byCookie := bearer(f), false
	if token == "" {
		token, byCookie = f.Cookies(accessCookie), true
	}
	valid, err := c.Validate(f.UserContext(), secure.Secret(token))
	if refresh := f.Cookies(refreshCookie); err != nil && byCookie && refresh != "" && apierr.From(err).Status < 500 {
		var tokens oauthapi.ClientTokens
		tokens, err = c.Token(f.UserContext(), map[string]secure.Secret{"grant_type": "refresh_token", "refresh_token": secure.Secret(refresh)})
		if err == nil {
			c.setTokens(f, tokens)
			valid, err = c.Validate(f.UserContext(), tokens.Access)
		}
	}
	if refusal := apierr.From(err); err != nil && refusal.Status < 500 && !errors.Is(err, apierr.TooMany) {
		if f.Cookies(accessCookie) != "" || f.Cookies(refreshCookie) != "" {
			c.clearCookies(f)
		}
		f.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="`+strings.NewReplacer(`"`, "'", `\`, "").Replace(c.Application.Name)+`"`)
		f.Status(http.StatusUnauthorized)
		return nil
	}
	if err != nil {
		return err
	}
	profile, err := c.Me(f.UserContext(), valid.Account)
	if err != nil {
		return err
	}
	return f.JSON(fiber.Map{"account": c.profile(profile)})
}

type factorInput struct {
	Type  string `json:"type"`
	Phone struct {
		Number string `json:"number"`
	} `json:"phone"`
	AccountName *string       `json:"accountName"`
	Issuer      *string       `json:"issuer"`
	State       secure.Secret `json:"state"`
	Code        string        `json:"code"`
	Factor      string        `json:"factor"`
}

func readFactor(f *fiber.Ctx) (in factorInput, err error) {
	members, err := readInput(f)
	if err != nil {
		return in, err
	}
	body, err := json.Marshal(members)
	if err == nil && json.Unmarshal(body, &in) != nil {
		err = apierr.WrongType.Because("a member of the body has the wrong type")
	}
	return in, err
}

func (c *clientCall) enrollFactor(f *fiber.Ctx) error {
	in, err := readFactor(f)
	if err != nil {
		return err
	}
	made, err := c.EnrollFactor(f.UserContext(), mfaapi.EnrollFactor{
		State: in.State, Type: in.Type, Number: in.Phone.Number, AccountName: in.AccountName, Issuer: in.Issuer,
		Challenge: strings.EqualFold(f.Query("challenge"), "true"),
	}, secure.Secret(bearer(f)))
	if err != nil {
		return err
	}
	out := fiber.Map{"state": made.State.Reveal()}
	if made.Secret != "" {
		out["secret"], out["keyUri"], out["base64QRImage"] = made.Secret.Reveal(), made.KeyURI.Reveal(), made.QRImage.Reveal()
	}
	return f.JSON(out)
}

func (c *clientCall) challengeFactor(f *fiber.Ctx) error {
	in, err := readFactor(f)
	if err != nil {
		return err
	}
	asked := mfaapi.ChallengeFactor{State: in.State, Code: in.Code}
	if ref, ok := c.base.Parse(in.Factor); ok && ref.Kind == "factors" {
		asked.Factor = ref.ID
	}
	challenged, err := c.ChallengeFactor(f.UserContext(), asked, secure.Secret(bearer(f)))
	if err != nil {
		return err
	}
	return f.JSON(fiber.Map{"state": challenged.State.Reveal(), "status": challenged.Status})
}
