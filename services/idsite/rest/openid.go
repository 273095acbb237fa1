package rest

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite/journey"
	"github.com/doorward/doorward/services/idsite/openid"
	"github.com/doorward/doorward/services/idsite/pages"
)

// mountOpenID adds the endpoints of OpenID providers that browsers call. The others are in services/oauth/rest.
func (h *handlers) mountOpenID(app *fiber.App) {
	for _, path := range []string{"authorize", "authorize/begin", "authorize/resume", "consent", "device", "logout"} {
		app.Head("/oidc/:id/"+path, headOfRedirect)
	}
	provider := app.Group("/oidc/:id")
	provider.Get("/authorize", h.authorize)
	provider.Post("/authorize", h.authorize)
	provider.Get("/authorize/begin", h.onFlow(h.svc.OpenID.Begin))
	provider.Get("/authorize/resume", h.resumeAuthorization)
	provider.Get("/consent", h.showConsent)
	provider.Post("/consent", h.decideConsent)
	provider.Get("/device", h.showDevice)
	provider.Post("/device", h.beginDevice)
	provider.Get("/logout", h.openIDLogout)
	provider.Post("/logout", h.openIDLogout)
}

// browserRequest reads what a browser sends along.
func browserRequest(c *fiber.Ctx) journey.BrowserRequest {
	return journey.BrowserRequest{
		Browsers: readLoginCookies(c, hostedCookie), Session: readCookie(c, sessionCookie), UserAgent: userAgent(c),
	}
}

// userAgent returns the header User-Agent, cut to what a list of sessions shows.
func userAgent(c *fiber.Ctx) string {
	const most = 255
	text := strings.ToValidUTF8(c.Get(fiber.HeaderUserAgent), "")
	text = strings.ReplaceAll(text, "\x00", "")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}

// parametersOf returns the parameters of a request: of its form, or of its query.
func parametersOf(c *fiber.Ctx) (url.Values, error) {
	text := string(c.Request().URI().QueryString())
	if c.Method() == fiber.MethodPost {
		kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
		if err != nil || kind != fiber.MIMEApplicationForm {
			return nil, apierr.BadRequest.Because("the body must be a form: %s", fiber.MIMEApplicationForm)
		}
		text = string(c.Body())
	}
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, apierr.BadRequest.Because("the parameters cannot be read")
	}
	return values, nil
}

// goOn redirects a browser that may have posted a form.
func (h *handlers) goOn(c *fiber.Ctx, to journey.Redirect, err error) error {
	return h.redirect(c, http.StatusSeeOther, to, err)
}

// renderForm shows the page that posts the form of a redirect to a relying party.
func (h *handlers) renderForm(c *fiber.Ctx, to journey.Redirect) error {
	hidden := map[string]string{}
	for name := range to.Form {
		hidden[name] = to.Form.Get(name)
	}
	t := translatorOf(c)
	return h.renderPageWith(c, http.StatusOK, pages.PostPolicy, pages.Page{
		Title: t("post"), Text: t("postText"), Form: &pages.Form{Action: to.Location, Button: t("post"), Hidden: hidden},
	})
}

// authorize is the authorization endpoint.
func (h *handlers) authorize(c *fiber.Ctx) error {
	application, err := rest.ID(c, "id")
	if err != nil {
		return h.renderLoginError(c, err)
	}
	parameters, err := parametersOf(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	to, err := h.svc.OpenID.Authorize(c.UserContext(), application, parameters, c.Method() == fiber.MethodPost,
		browserRequest(c))
	return h.goOn(c, to, err)
}

// onFlow is the handler of an address whose parameter flow names a login in progress.
func (h *handlers) onFlow(rule func(context.Context, id.ID, id.ID, journey.BrowserRequest) (journey.Redirect,
	error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		application, flow, err := flowOf(c)
		if err != nil {
			return h.renderLoginError(c, err)
		}
		to, err := rule(c.UserContext(), application, flow, browserRequest(c))
		return h.goOn(c, to, err)
	}
}

// flowOf returns the application and the login in progress that an address names.
func flowOf(c *fiber.Ctx) (application, flow id.ID, err error) {
	if application, err = rest.ID(c, "id"); err != nil {
		return application, flow, err
	}
	if flow, err = id.Parse(c.Query("flow")); err != nil {
		err = apierr.BadRequest.Because("the parameter flow names no login")
	}
	return application, flow, err
}

// resumeAuthorization goes on after the hosted pages: with the assertion of a login, or without one.
func (h *handlers) resumeAuthorization(c *fiber.Ctx) error {
	if c.Query("jwtResponse") == "" {
		return h.onFlow(h.svc.OpenID.Resume)(c)
	}
	in := browserRequest(c)
	in.Token = secure.Secret(c.Query("jwtResponse"))
	to, err := h.svc.FinishLogin(c.UserContext(), in)
	return h.goOn(c, to, err)
}

// showConsent shows what a client asks for.
func (h *handlers) showConsent(c *fiber.Ctx) error {
	application, flow, err := flowOf(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	asked, err := h.svc.OpenID.Consent(c.UserContext(), application, flow, browserRequest(c))
	if err != nil {
		return h.renderLoginError(c, err)
	}
	t := translatorOf(c)
	page := pages.Page{
		Product: h.svc.OriginOfApplication(asked.Application).Name, Title: t("consentTitle", "client", asked.Client.Name),
		Text: t("consentText", "login", asked.Login), Items: scopeTexts(t, asked.Scopes),
		Form: &pages.Form{Button: t("allow"), ButtonName: "allow", Cancel: t("refuse"),
			Hidden: map[string]string{"secret": asked.Secret.Reveal()}},
	}
	if asked.Client.Host != "" {
		page.Detail = t("consentHost", "host", asked.Client.Host)
	}
	if asked.Device {
		page.Detail = t("consentDevice")
	}
	return h.renderPageWith(c, http.StatusOK, pages.DecisionPolicy, page)
}

// scopeTexts are the lines of a consent page for scopes: the texts of the built-in ones, and the descriptions of
// those of the application.
func scopeTexts(t translator, scopes []oauthapi.ConsentScope) []string {
	lines := []string{}
	for _, scope := range scopes {
		line := cmp.Or(scope.Description, t("scope."+scope.Name), scope.Name)
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		lines = append(lines, t("scope.openid"))
	}
	return lines
}

// decideConsent answers the consent page.
func (h *handlers) decideConsent(c *fiber.Ctx) error {
	form, err := h.readForm(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	allowed := form.Get("allow") != "" && form.Get("cancel") == ""
	return h.onFlow(func(ctx context.Context, application, flow id.ID, in journey.BrowserRequest) (journey.Redirect,
		error) {
		return h.svc.OpenID.Decide(ctx, application, flow, allowed, secure.Secret(form.Get("secret")), in)
	})(c)
}

// showDevice shows the page on which a user types the code of a device, and how that has ended.
func (h *handlers) showDevice(c *fiber.Ctx) error {
	if application, err := rest.ID(c, "id"); err == nil && h.svc.OpenID.IsSuspended(c.UserContext(), application) {
		return h.renderLoginError(c, apierr.TenantSuspended)
	}
	t := translatorOf(c)
	switch done := c.Query("done"); done {
	case "allowed", "denied", "expired":
		return h.renderPage(c, http.StatusOK, pages.Page{Title: t("device." + done), Text: t("device." + done + "Text")})
	}
	return h.renderDeviceForm(c, http.StatusOK, c.Query("user_code"), "")
}

func (h *handlers) renderDeviceForm(c *fiber.Ctx, status int, code, problem string) error {
	if _, err := rest.ID(c, "id"); err != nil {
		return h.renderLoginError(c, err)
	}
	t := translatorOf(c)
	token := setFormCookie(c)
	return h.renderPageWith(c, status, pages.DecisionPolicy, pages.Page{
		Title: t("deviceTitle"), Text: t("deviceText"), Problem: problem,
		Form: &pages.Form{Button: t("post"), Hidden: map[string]string{"csrf": token}, Fields: []pages.Field{
			{Name: "user_code", Label: t("deviceCode"), Type: "text", Autocomplete: "off", Value: code},
		}},
	})
}

// beginDevice logs in the user who has typed the code of a device.
func (h *handlers) beginDevice(c *fiber.Ctx) error {
	form, err := h.readForm(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	t := translatorOf(c)
	if !hasFormCookie(c, form) {
		return h.renderDeviceForm(c, http.StatusForbidden, form.Get("user_code"), t("stale"))
	}
	application, err := rest.ID(c, "id")
	if err != nil {
		return h.renderLoginError(c, err)
	}
	to, err := h.svc.OpenID.BeginDevice(c.UserContext(), application, form.Get("user_code"), browserRequest(c))
	if errors.Is(err, apierr.NotFound) {
		return h.renderDeviceForm(c, http.StatusNotFound, form.Get("user_code"), t("deviceUnknown"))
	}
	if errors.Is(err, apierr.TooMany) {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(apierr.From(err).RetryAfter.Seconds())))
		return h.renderDeviceForm(c, http.StatusTooManyRequests, form.Get("user_code"), t("tooMany"))
	}
	return h.goOn(c, to, err)
}

// openIDLogout is the end session endpoint. The form of a relying party comes without the cookies of the browser: it
// is asked for again by a redirect.
func (h *handlers) openIDLogout(c *fiber.Ctx) error {
	application, err := rest.ID(c, "id")
	if err != nil {
		return h.renderLoginError(c, err)
	}
	parameters, err := parametersOf(c)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	secret := secure.Secret(parameters.Get("secret"))
	parameters.Del("secret")
	parameters.Del("logout")
	isForm := c.Method() == fiber.MethodPost
	if isForm && secret == "" {
		return h.goOn(c, journey.Redirect{Location: "logout?" + parameters.Encode()}, nil)
	}
	if isForm {
		if _, err := h.readForm(c); err != nil {
			return h.renderLoginError(c, err)
		}
	} else {
		secret = ""
	}
	in := browserRequest(c)
	out, err := h.svc.OpenID.Logout(c.UserContext(), application, parameters, secret, in)
	if err != nil {
		return h.renderLoginError(c, err)
	}
	return h.renderLogout(c, out, parameters)
}

func (h *handlers) renderLogout(c *fiber.Ctx, out openid.Logout, parameters url.Values) error {
	t, origin := translatorOf(c), h.svc.OriginOfApplication(out.Application)
	if out.Asks {
		hidden := map[string]string{"secret": out.Secret.Reveal()}
		for name := range parameters {
			hidden[name] = parameters.Get(name)
		}
		return h.renderPageWith(c, http.StatusOK, pages.DecisionPolicy, pages.Page{
			Product: origin.Name, Title: t("logoutTitle"), Text: t("logoutText"),
			Form: &pages.Form{Button: t("logout"), ButtonName: "logout", Hidden: hidden},
		})
	}
	clearCookie(c, sessionCookie)
	if out.Return != "" && len(out.Frames) == 0 {
		return h.goOn(c, journey.Redirect{Location: out.Return}, nil)
	}
	page := pages.Page{Product: origin.Name, Title: t("loggedOutTitle"), Text: t("loggedOutText"), Frames: out.Frames,
		Link: homeLink(t, origin)}
	if out.Return != "" {
		page.Link, page.Refresh = &pages.Link{Text: t("post"), URL: out.Return}, true
	}
	return h.renderPageWith(c, http.StatusOK, pages.FramePolicy(out.Frames), page)
}
