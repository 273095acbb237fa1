package rest

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// redirectHeaderSuffix is the name, after that of the product, of the response header with the
// address to which the page redirects its browser.
const redirectHeaderSuffix = "-SSO-Redirect-Location"

type pageAPIKey struct{}

// mountPageAPI adds the session-token API of the hosted pages: what they call with a session token.
// The gateway forwards requests to paths of the management API here, below /session, if their
// Authorization is Bearer.
func (h *handlers) mountPageAPI(app *fiber.App) {
	v1 := app.Group("/session/v1")
	get := func(path string, handle fiber.Handler) {
		v1.Options(path, h.preflight(fiber.MethodGet))
		v1.Get(path, h.openPageAPI, handle)
	}
	post := func(path string, handle fiber.Handler) {
		v1.Options(path, h.preflight(fiber.MethodPost))
		v1.Post(path, h.openPageAPI, handle)
	}
	get("/:kind<regex(^(applications|directories|groups|organizations)$)>/:id", onPage(h.pageModel))
	get("/applications/:id/saml/sso/idpRedirect", onPage(h.pageBeginSAML))
	post("/applications/:id/loginAttempts", onPage(h.pageLogin))
	post("/applications/:id/loginAttempts/cancel", onPage(h.pageCancel))
	post("/:kind<regex(^(applications|directories|groups|organizations)$)>/:id/accounts", onPage(h.pageRegister))
	post("/applications/:id/passwordResetTokens", onPage(h.pageForgotPassword))
	post("/applications/:id/verificationEmails", onPage(h.pageSendVerification))
	get("/applications/:id/passwordResetTokens/:token", onPage(h.pageCheckReset))
	post("/applications/:id/passwordResetTokens/:token", onPage(h.pageResetPassword))
	post("/accounts/emailVerificationTokens/:token", h.pageVerifyEmail)
	get("/accounts/:id/factors", onPage(h.pageFactors))
	post("/accounts/:id/factors", onPage(h.pageEnrollFactor))
	post("/factors/:id/challenges", onPage(h.pageChallengeFactor))
	post("/challenges/:id", onPage(h.pageAnswerChallenge))
	app.Use("/session", h.openPageAPI, func(*fiber.Ctx) error {
		return apierr.Forbidden.Because("a hosted login may not call this address")
	})
}

// preflight returns the handler of preflight requests (CORS) for a method of a path. They are
// answered for any origin, because they have no session token that leads to a tenant. openPageAPI
// checks the origin of the request itself.
func (h *handlers) preflight(method string) fiber.Handler {
	return func(c *fiber.Ctx) error {
		origin := c.Get(fiber.HeaderOrigin)
		if origin == "" || c.Get(fiber.HeaderAccessControlRequestMethod) != method {
			return c.Next()
		}
		h.allowOrigin(c, origin)
		c.Set(fiber.HeaderAccessControlAllowMethods, "GET, POST, OPTIONS")
		c.Set(fiber.HeaderAccessControlAllowHeaders, "Accept, Authorization, Content-Type")
		c.Set(fiber.HeaderAccessControlMaxAge, "600")
		return c.SendStatus(http.StatusNoContent)
	}
}

// allowOrigin sets the headers by which pages of an origin may read the answer.
func (h *handlers) allowOrigin(c *fiber.Ctx, origin string) {
	c.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	c.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	c.Set(fiber.HeaderAccessControlExposeHeaders, "Authorization, "+h.redirectHeader)
	c.Append(fiber.HeaderVary, fiber.HeaderOrigin)
}

// openPageAPI verifies the session token and the origin. Every answer, also that of an error, has the
// next session token in the header Authorization, or the address to which the page must redirect
// its browser.
func (h *handlers) openPageAPI(c *fiber.Ctx) error {
	c.Set(fiber.HeaderCacheControl, "no-store")
	page, back, err := h.svc.OpenPageAPI(c.UserContext(), secure.Secret(bearer(c)))
	rest.SetTenant(c, page.Tenant())
	if origin := c.Get(fiber.HeaderOrigin); origin != "" {
		if page.AllowsOrigin(origin) {
			h.allowOrigin(c, origin)
		} else if err == nil {
			return apierr.Forbidden.Because("the origin %q is neither that of the ID site nor in its authorizedOriginUris",
				origin)
		}
	}
	if errors.Is(err, apierr.Unauthorized) {
		c.Set(fiber.HeaderWWWAuthenticate, h.challenge)
	}
	if err != nil {
		if back != "" {
			c.Set(h.redirectHeader, back)
		}
		return err
	}
	c.Locals(pageAPIKey{}, page)
	if err = checkPageQuery(c); err == nil {
		err = c.Next()
	}
	if len(c.Response().Header.Peek(h.redirectHeader)) > 0 || errors.Is(err, apierr.SessionTimedOut) ||
		c.Response().StatusCode() == http.StatusAccepted && err == nil {
		return err
	}
	next, failed := page.Token(c.UserContext())
	if failed != nil {
		return errors.Join(err, failed)
	}
	c.Set(fiber.HeaderAuthorization, "Bearer "+next.Reveal())
	return err
}

// checkPageQuery refuses what a session token does not authorize, although an API key does: to expand
// a link other than idSiteModel, and to send another method in the query (_method).
func checkPageQuery(c *fiber.Ctx) error {
	for name, value := range c.Context().QueryArgs().All() {
		switch name, value := string(name), string(value); {
		case name == "_method", name == "expand" && value != "" && value != "idSiteModel":
			return apierr.Forbidden.Because("a hosted login may not send %s=%.50s", name, value)
		}
	}
	return nil
}

func pageAPI(c *fiber.Ctx) *idsite.PageAPI { return c.Locals(pageAPIKey{}).(*idsite.PageAPI) }

type modelView struct {
	Href                string          `json:"href"`
	Name                string          `json:"name"`
	LoginAttempts       href.Link       `json:"loginAttempts"`
	Accounts            href.Link       `json:"accounts"`
	PasswordResetTokens href.Link       `json:"passwordResetTokens"`
	Tenant              href.Link       `json:"tenant"`
	IDSiteModel         idSiteModelView `json:"idSiteModel"`
}

type idSiteModelView struct {
	Href           string         `json:"href"`
	LogoURL        *string        `json:"logoUrl"`
	AccentColor    *string        `json:"accentColor"`
	HomeURL        *string        `json:"homeUrl"` // of the application
	Providers      []providerView `json:"providers"`
	PasswordPolicy *policyView    `json:"passwordPolicy"` // null: nobody can register
}

type providerView struct {
	ProviderID   string    `json:"providerId"`
	ClientID     *string   `json:"clientId"`
	AccountStore storeView `json:"accountStore"`
}

type storeView struct {
	Href string `json:"href"`
	Name string `json:"name"`
}

type policyView struct {
	MinLength          int  `json:"minLength"`
	MaxLength          int  `json:"maxLength"`
	RequireLowerCase   bool `json:"requireLowerCase"`
	RequireUpperCase   bool `json:"requireUpperCase"`
	RequireNumeric     bool `json:"requireNumeric"`
	RequireSymbol      bool `json:"requireSymbol"`
	RequireDiacritical bool `json:"requireDiacritical"`
	RequireGivenName   bool `json:"requireGivenName"`
	RequireSurname     bool `json:"requireSurname"`
}

func (h *handlers) pageModel(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, _ noBody) error {
	m, err := page.Model(c.UserContext(), c.Params("kind"), at)
	if err != nil {
		return err
	}
	v := modelView{
		Href: m.Href, Name: m.Name, LoginAttempts: h.base.Link("applications", m.Application, "loginAttempts"),
		Accounts:            href.Link{Href: m.Accounts},
		PasswordResetTokens: h.base.Link("applications", m.Application, "passwordResetTokens"),
		Tenant:              h.base.Link("tenants", m.Tenant),
		IDSiteModel: idSiteModelView{
			Href: m.Href + "/idSiteModel", LogoURL: m.LogoURL, AccentColor: m.AccentColor, HomeURL: m.HomeURL,
			Providers: []providerView{},
		},
	}
	for _, d := range m.Directories {
		v.IDSiteModel.Providers = append(v.IDSiteModel.Providers,
			providerView{d.ProviderID, d.ClientID, storeView{h.base.To("directories", d.ID), d.Name}})
	}
	if r := m.Rules; r != nil {
		v.IDSiteModel.PasswordPolicy = &policyView{
			MinLength: r.MinLength, MaxLength: r.MaxLength, RequireLowerCase: r.MinLowerCase > 0,
			RequireUpperCase: r.MinUpperCase > 0,
			RequireNumeric:   r.MinNumeric > 0, RequireSymbol: r.MinSymbol > 0, RequireDiacritical: r.MinDiacritic > 0,
			RequireGivenName: r.GivenNameRequired, RequireSurname: r.SurnameRequired,
		}
	}
	return c.JSON(v)
}

// setRedirect sets the header that sends the browser back to the application, if the login has
// ended, and reports whether it has.
func (h *handlers) setRedirect(c *fiber.Ctx, a idsite.PageResult) bool {
	if a.Redirect == "" {
		return false
	}
	c.Set(h.redirectHeader, a.Redirect)
	return true
}

// readJSON reads a JSON body with any content type, because some custom pages send none. An empty
// body, true and null count as an empty object.
func readJSON(c *fiber.Ctx, in any) error {
	body := strings.TrimSpace(string(c.Body()))
	if body == "" || body == "true" || body == "null" {
		body = "{}"
	}
	return field.Decode([]byte(body), in, struct{}{})
}

// onPage returns the handler of a call of a page: it reads the id in the path and, of a POST, the JSON body.
func onPage[In any](handle func(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in In) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.ID(c, "id")
		if err != nil {
			return err
		}
		var in In
		if c.Method() == fiber.MethodPost {
			if err := readJSON(c, &in); err != nil {
				return err
			}
		}
		return handle(c, pageAPI(c), at, in)
	}
}

// noBody is the body of a call without one.
type noBody struct{}

type loginBody struct {
	Type         field.Text                             `json:"type"`
	Value        field.Nullable[secure.Secret]          `json:"value"`
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
	ProviderData field.Nullable[json.RawMessage]        `json:"providerData"`
}

func (h *handlers) pageLogin(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in loginBody) error {
	if in.ProviderData.Given() {
		return h.pageProviderLogin(c, "applications", at, in.ProviderData.Value)
	}
	kind, err := field.Enum(in.Type, "type", "basic", "basic", "provider")
	if err != nil {
		return err
	}
	where, err := directoryapi.ReadStoreName(in.AccountStore, "accountStore")
	if err != nil {
		return err
	}
	if kind == "provider" { // the page requests the address of a directory's provider
		location, err := page.BeginProviderLogin(c.UserContext(), at, where.Href)
		if err != nil {
			return err
		}
		c.Set(h.redirectHeader, location)
		return c.SendStatus(http.StatusNoContent)
	}
	answer, err := page.LogIn(c.UserContext(), at, in.Value.Or("").Reveal(), where)
	return h.answerFirstStep(c, answer, err)
}

// pageCancel ends the login of a user who does not want it.
func (h *handlers) pageCancel(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, _ noBody) error {
	answer, err := page.Cancel(at)
	return h.answerFirstStep(c, answer, err)
}

// answerFirstStep answers a call that has passed the first step of a login.
func (h *handlers) answerFirstStep(c *fiber.Ctx, answer idsite.PageResult, err error) error {
	if err != nil {
		return err
	}
	if h.setRedirect(c, answer) {
		return c.SendStatus(http.StatusNoContent)
	}
	return c.JSON(fiber.Map{"account": h.base.Link("accounts", answer.Account)})
}

// pageProviderLogin logs a user in by the token or code (providerData) that the provider's own script
// has returned to the page.
func (h *handlers) pageProviderLogin(c *fiber.Ctx, kind string, at id.ID, data json.RawMessage) error {
	login, err := directoryview.ReadProviderData(data)
	if err != nil {
		return err
	}
	answer, err := pageAPI(c).LogInWithProviderData(c.UserContext(), kind, at, *login)
	return h.answerFirstStep(c, answer, err)
}

type registerBody struct {
	directoryapi.NewAccount
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
	ProviderData field.Nullable[json.RawMessage]        `json:"providerData"`
}

func (h *handlers) pageRegister(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in registerBody) error {
	if in.ProviderData.Given() {
		return h.pageProviderLogin(c, c.Params("kind"), at, in.ProviderData.Value)
	}
	where, err := directoryapi.ReadStoreName(in.AccountStore, "accountStore")
	if err != nil {
		return err
	}
	answer, err := page.Register(c.UserContext(), c.Params("kind"), at, in.NewAccount, where)
	if err != nil {
		return err
	}
	switch {
	case answer.Pending:
		c.Status(http.StatusAccepted)
		return nil
	case h.setRedirect(c, answer):
		return c.SendStatus(http.StatusNoContent)
	}
	c.Status(http.StatusCreated)
	return c.JSON(fiber.Map{"href": h.base.To("accounts", answer.Account), "email": answer.Created.Email,
		"username": answer.Created.Username, "status": answer.Created.Status})
}

type forgotBody struct {
	Email        field.Text                             `json:"email"`
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"`
}

func (h *handlers) pageForgotPassword(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in forgotBody) error {
	login, err := field.Required(in.Email, "email", 255)
	if err != nil {
		return err
	}
	where, err := directoryapi.ReadStoreName(in.AccountStore, "accountStore")
	if err != nil {
		return err
	}
	if err := page.RequestPasswordReset(c.UserContext(), at, login, where); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

type verificationBody struct {
	Login        field.Text                             `json:"login"`
	AccountStore field.Nullable[directoryapi.StoreName] `json:"accountStore"` // not needed: the account is known
}

func (h *handlers) pageSendVerification(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in verificationBody) error {
	login, err := field.Required(in.Login, "login", 255)
	if err != nil {
		return err
	}
	if err := page.SendVerificationMail(c.UserContext(), at, login); err != nil {
		return err
	}
	return c.JSON(struct{}{})
}

func (h *handlers) pageCheckReset(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, _ noBody) error {
	token := c.Params("token")
	if err := page.CheckReset(c.UserContext(), at, secure.Secret(token)); err != nil {
		return err
	}
	return c.JSON(href.Link{Href: h.base.To("applications", at, "passwordResetTokens", token)})
}

type passwordBody struct {
	Password field.Text `json:"password"`
}

func (h *handlers) pageResetPassword(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in passwordBody) error {
	token, password := c.Params("token"), secure.Secret(in.Password.Or(""))
	if err := page.ResetPassword(c.UserContext(), at, secure.Secret(token), password); err != nil {
		return err
	}
	return c.JSON(href.Link{Href: h.base.To("applications", at, "passwordResetTokens", token)})
}

func (h *handlers) pageVerifyEmail(c *fiber.Ctx) error {
	account, err := pageAPI(c).VerifyEmail(c.UserContext(), pageAPI(c).Tenant(), secure.Secret(c.Params("token")))
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"href": h.base.To("accounts", account.ID), "status": account.Status})
}

type factorView struct {
	Href               string     `json:"href"`
	Type               string     `json:"type"`
	Status             string     `json:"status"`
	VerificationStatus string     `json:"verificationStatus"`
	Account            href.Link  `json:"account"`
	Challenges         href.Link  `json:"challenges"`
	Phone              *phoneView `json:"phone,omitempty"`
	AccountName        *string    `json:"accountName,omitempty"`
	Issuer             *string    `json:"issuer,omitempty"`
	Secret             string     `json:"secret,omitempty"`
	KeyURI             string     `json:"keyUri,omitempty"`
	Base64QRImage      string     `json:"base64QRImage,omitempty"`
}

type phoneView struct {
	Href   string `json:"href"`
	Number string `json:"number"`
}

func (h *handlers) factorView(account id.ID, f mfaapi.AccountFactor) factorView {
	v := factorView{
		Href: h.base.To("factors", f.ID), Type: f.Type, Status: f.Status, VerificationStatus: f.VerificationStatus,
		Account: h.base.Link("accounts", account), Challenges: h.base.Link("factors", f.ID, "challenges"),
		AccountName: f.AccountName,
		Issuer:      f.Issuer,
	}
	if f.Type == mfaapi.SMS {
		v.Type = strings.ToUpper(f.Type)
		v.Phone = &phoneView{h.base.To("phones", f.PhoneID), f.Number}
	}
	return v
}

func (h *handlers) pageFactors(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, _ noBody) error {
	factors, err := page.Factors(c.UserContext(), at)
	if err != nil {
		return err
	}
	items := []factorView{}
	for _, f := range factors {
		items = append(items, h.factorView(at, f))
	}
	return c.JSON(fiber.Map{"href": h.base.To("accounts", at, "factors"), "offset": 0, "limit": 100, "size": len(items),
		"items": items})
}

type factorBody struct {
	Type        field.Text                `json:"type"`
	Phone       field.Nullable[phoneBody] `json:"phone"`
	AccountName field.Text                `json:"accountName"`
	Issuer      field.Text                `json:"issuer"`
}

type phoneBody struct {
	Number string `json:"number"`
}

func (h *handlers) pageEnrollFactor(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in factorBody) error {
	asked := mfaapi.EnrollFactor{Type: in.Type.Or(""), Number: in.Phone.Value.Number}
	for name, to := range map[*field.Text]**string{&in.AccountName: &asked.AccountName, &in.Issuer: &asked.Issuer} {
		if name.Given() {
			*to = &name.Value
		}
	}
	made, err := page.EnrollFactor(c.UserContext(), at, asked)
	if err != nil {
		return err
	}
	v := h.factorView(at, made.Factor)
	v.Secret, v.KeyURI, v.Base64QRImage = made.Secret.Reveal(), made.KeyURI.Reveal(), made.QRImage.Reveal()
	c.Status(http.StatusCreated)
	return c.JSON(v)
}

type codeBody struct {
	Code    field.Text `json:"code"`
	Message field.Text `json:"message"`
}

func (h *handlers) pageChallengeFactor(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in codeBody) error {
	challenged, answer, err := page.Challenge(c.UserContext(), at, in.Code.Or(""))
	return h.answerChallenge(c, http.StatusCreated, challenged, answer, err)
}

func (h *handlers) pageAnswerChallenge(c *fiber.Ctx, page *idsite.PageAPI, at id.ID, in codeBody) error {
	challenged, answer, err := page.AnswerChallenge(c.UserContext(), at, in.Code.Or(""))
	return h.answerChallenge(c, http.StatusOK, challenged, answer, err)
}

func (h *handlers) answerChallenge(c *fiber.Ctx, status int, challenged mfaapi.Challenged, answer idsite.PageResult,
	err error) error {
	if err != nil {
		return err
	}
	h.setRedirect(c, answer)
	c.Status(status)
	return c.JSON(fiber.Map{
		"href": h.base.To("challenges", challenged.ID), "status": challenged.Status,
		"factor": h.base.Link("factors", challenged.Factor), "account": h.base.Link("accounts", challenged.Account),
	})
}
