package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/journey"
)

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

// clientCall is one request to a Client API.
type clientCall struct {
	*handlers
	*idsite.ClientAPI
	baseURL       string // address of this Client API
	mayUseCookies bool   // set, clear and revoke them: the request is of this site or an allowed origin (CSRF)
	crossSite     bool   // the request has an allowed Origin, which is another site
}

type clientHandler = func(*clientCall, *fiber.Ctx) error

// endpoint is a route of the Client API. isEnabled reports whether the web config enables it; nil
// means that no web config can disable it.
type endpoint struct {
	isEnabled func(*clientCall, context.Context) (bool, error)
	get, post clientHandler
	delete    clientHandler
}

// webConfigFlag returns the isEnabled of an endpoint that a flag of the web config enables.
func webConfigFlag(read func(oauthapi.ClientConfig) bool) func(*clientCall, context.Context) (bool, error) {
	return func(c *clientCall, _ context.Context) (bool, error) { return read(c.Config), nil }
}

var (
	hasOAuth2   = webConfigFlag(func(c oauthapi.ClientConfig) bool { return c.OAuth2 })
	hasLogin    = webConfigFlag(func(c oauthapi.ClientConfig) bool { return c.Login })
	hasMe       = webConfigFlag(func(c oauthapi.ClientConfig) bool { return c.Me })
	hasRegister = webConfigFlag(func(c oauthapi.ClientConfig) bool { return c.Register })
)

// clientEndpoints are the endpoints of the Client API, by their paths.
var clientEndpoints = map[string]endpoint{
	"login": {isEnabled: hasLogin, get: (*clientCall).getLogin, post: (*clientCall).postLogin},
	"register": {isEnabled: hasRegister, get: (*clientCall).getRegistration,
		post: (*clientCall).postRegistration},
	"oauth/token":  {isEnabled: hasOAuth2, post: (*clientCall).token},
	"oauth/revoke": {isEnabled: hasOAuth2, post: (*clientCall).revoke},
	"forgot":       {isEnabled: (*clientCall).ForgotEnabled, post: (*clientCall).forgotPassword},
	"change": {isEnabled: (*clientCall).ChangeEnabled, get: (*clientCall).checkReset,
		post: (*clientCall).changePassword},
	"verify": {isEnabled: (*clientCall).VerifyEnabled, get: (*clientCall).verifyEmail,
		post: (*clientCall).sendVerification},
	"me":                 {isEnabled: hasMe, get: (*clientCall).me},
	"me/sessions":        {isEnabled: hasMe, get: (*clientCall).mySessions, delete: (*clientCall).endMySessions},
	"me/sessions/:id":    {isEnabled: hasMe, delete: (*clientCall).endMySession},
	"me/consents":        {isEnabled: hasMe, get: (*clientCall).myConsents},
	"me/consents/:id":    {isEnabled: hasMe, delete: (*clientCall).endMyConsent},
	"factors":            {isEnabled: hasOAuth2, post: (*clientCall).enrollFactor},
	"challenges":         {isEnabled: hasOAuth2, post: (*clientCall).challengeFactor},
	"authorize":          {get: (*clientCall).authorize},
	"authorize/callback": {get: (*clientCall).authorizeCallback, post: (*clientCall).authorizeCallbackByForm},
	"logout":             {post: (*clientCall).logout},
	"saml/sso":           {get: (*clientCall).samlSignOn, post: (*clientCall).samlSignOnByForm},
}

// clientAPI answers a request to the Client API of an application. Its errors have a form of their
// own (docs/interface/client-api.md#errors).
func (h *handlers) clientAPI(c *fiber.Ctx) error {
	name := strings.Trim(c.Params("*"), "/")
	for _, collection := range []string{"me/sessions/", "me/consents/"} {
		if strings.HasPrefix(name, collection) {
			name = collection + ":id"
		}
	}
	route, known := clientEndpoints[name]
	if known {
		rest.SetRoute(c, "/client/:dnsLabel/"+name)
	}
	err := h.callClient(c, route)
	if err == nil {
		return nil
	}
	if errors.Is(err, apierr.TenantSuspended) && acceptsPage(c) {
		return h.renderLoginError(c, err)
	}
	return rest.FailClient(c, err)
}

// callClient finds the application by its DNS label, checks origin, web config and method, and calls
// the handler of the endpoint.
func (h *handlers) callClient(c *fiber.Ctx, route endpoint) error {
	client, err := h.svc.OpenClientAPI(c.UserContext(), c.Params("dnsLabel"))
	if err != nil {
		return err
	}
	rest.SetTenant(c, client.Application.TenantID)
	call := &clientCall{handlers: h, ClientAPI: client, baseURL: h.base.Host() + "/client/" + client.Application.DNSLabel}
	if c.Get(HostHeader) != "" {
		// Not the header Host, which the client could forge: browsers are redirected to this address
		call.baseURL = client.Origin()
	}
	if preflight, err := call.cors(c); preflight || err != nil {
		return err
	}
	if err := h.svc.Journey.CheckTenant(c.UserContext(), client.Application.TenantID); err != nil {
		return err
	}
	if route.get == nil && route.post == nil && route.delete == nil {
		return apierr.NotFound
	}
	if route.isEnabled != nil {
		on, err := route.isEnabled(call, c.UserContext())
		if err != nil {
			return err
		}
		if !on {
			return apierr.NotFound.Because("the web config of the application has turned this endpoint off")
		}
	}
	handle := map[string]clientHandler{
		fiber.MethodGet: route.get, fiber.MethodHead: route.get, fiber.MethodPost: route.post,
		fiber.MethodDelete: route.delete,
	}[c.Method()]
	if handle == nil {
		refusal := *apierr.MethodNotAllowed.Because("the method is not offered here; the header Allow has those that are")
		var offered []string
		if route.get != nil {
			offered = append(offered, fiber.MethodGet, fiber.MethodHead)
		}
		if route.post != nil {
			offered = append(offered, fiber.MethodPost)
		}
		if route.delete != nil {
			offered = append(offered, fiber.MethodDelete)
		}
		refusal.Allow = strings.Join(append(offered, fiber.MethodOptions), ", ")
		return &refusal
	}
	c.Set(fiber.HeaderCacheControl, "no-store, no-cache")
	c.Set(fiber.HeaderPragma, "no-cache")
	return handle(call, c)
}

// cors answers a preflight request (CORS) and lets pages of allowed origins read the answer. It also
// decides whether the request may use cookies (CSRF): a page of another site whose origin is not in
// authorizedOriginUris may not.
func (c *clientCall) cors(f *fiber.Ctx) (preflight bool, err error) {
	origin := f.Get(fiber.HeaderOrigin)
	preflight = f.Method() == fiber.MethodOptions
	// A browser sends no Origin with the GET of an image or a link, but Sec-Fetch-Site.
	c.mayUseCookies = origin == "" && f.Get("Sec-Fetch-Site") != "cross-site"
	if origin == "" {
		if preflight {
			return true, f.SendStatus(http.StatusNoContent)
		}
		return false, nil
	}
	f.Append(fiber.HeaderVary, fiber.HeaderOrigin)
	own, _ := url.Parse(c.baseURL)
	if !c.AllowsOrigin(origin, own.Scheme+"://"+own.Host) {
		if preflight {
			return true, apierr.Forbidden.Because("the origin %q is not in authorizedOriginUris of the application", origin)
		}
		return false, nil
	}
	c.mayUseCookies, c.crossSite = true, !redirecturi.IsSameSite(origin, c.baseURL)
	f.Set(fiber.HeaderAccessControlAllowOrigin, origin)
	f.Set(fiber.HeaderAccessControlAllowCredentials, "true")
	if preflight {
		methods := "GET, POST, OPTIONS"
		if strings.HasPrefix(strings.Trim(f.Params("*"), "/"), "me/") {
			methods = "GET, POST, DELETE, OPTIONS"
		}
		f.Set(fiber.HeaderAccessControlAllowMethods, methods)
		f.Set(fiber.HeaderAccessControlAllowHeaders,
			"Content-Type, Accept, Authorization, X-Requested-With, "+c.agentHeader())
		if strings.Contains(strings.ToLower(f.Get(fiber.HeaderAccessControlRequestHeaders)), "dpop") {
			f.Append(fiber.HeaderAccessControlAllowHeaders, "DPoP")
		}
		f.Set(fiber.HeaderAccessControlMaxAge, "1800")
		return true, f.SendStatus(http.StatusNoContent)
	}
	return false, nil
}

// agentHeader is the header by which client libraries name themselves. It has two names where the
// deployment has an alias (docs/interface/conventions.md#the-alias).
func (h *handlers) agentHeader() string {
	const neutral = "X-Service-Agent"
	if own := "X-" + h.aliasTitle + "-Agent"; own != neutral {
		return own + ", " + neutral
	}
	return neutral
}

// input are the members of a JSON body, or the fields of a form.
type input map[string]json.RawMessage

// readInput reads the body of a request. A member that is "" or null counts as absent. A form may
// have each field once (RFC 6749, section 3.2).
func readInput(f *fiber.Ctx) (input, error) {
	kind, params, err := mime.ParseMediaType(f.Get(fiber.HeaderContentType))
	if charset := strings.ToLower(params["charset"]); err == nil && charset != "" && charset != "utf-8" && charset != "iso-8859-1" &&
		charset != "us-ascii" {
		return nil, apierr.Encoding.Because("the charset %q is not supported; send UTF-8", charset)
	}
	in := input{}
	if kind == fiber.MIMEApplicationForm {
		if len(f.Body()) > maxForm {
			return nil, apierr.TooLarge.Because("a form may have %d bytes", maxForm)
		}
		values, err := url.ParseQuery(string(f.Body()))
		if err != nil {
			return nil, apierr.Format.Because("the body is not a form of name=value pairs joined by &")
		}
		for name, given := range values {
			if len(given) > 1 {
				return nil, apierr.ParameterRepeated.Saying("The form field %.50s may be given only once.", name)
			}
			text, err := json.Marshal(given[0])
			if err != nil {
				return nil, err
			}
			in[name] = text
		}
	} else if len(strings.TrimSpace(string(f.Body()))) > 0 {
		if err := json.Unmarshal(f.Body(), &in); err != nil || in == nil {
			return nil, apierr.Format.Because("the body must be a JSON object or a form")
		}
	}
	for name, value := range in {
		if text := strings.TrimSpace(string(value)); text == `""` || text == "null" {
			delete(in, name)
		}
	}
	return in, nil
}

// stringMember returns a member that is a string, otherwise "".
func (in input) stringMember(name string) string {
	var text string
	_ = json.Unmarshal(in[name], &text) // a member of another type counts as absent
	return text
}

// accountStore returns the account store that a body names: by accountStore, an href or an object, or
// by organizationNameKey. It returns apierr.WrongType for members of any other type: the request would
// go to another account store than its client means.
func (in input) accountStore() (at directoryapi.StoreName, err error) {
	if key, given := in["organizationNameKey"]; given && json.Unmarshal(key, &at.NameKey) != nil {
		return at, apierr.WrongType.Saying("organizationNameKey must be a string.")
	}
	store, given := in["accountStore"]
	if !given || json.Unmarshal(store, &at.Href) == nil {
		return at, nil
	}
	var named directoryapi.StoreName
	if json.Unmarshal(store, &named) != nil || named == (directoryapi.StoreName{}) {
		return at, apierr.WrongType.Saying(`accountStore must be an href, {"href": "…"} or {"nameKey": "…"}.`)
	}
	at.Href, at.NameKey = named.Href, cmp.Or(at.NameKey, named.NameKey)
	return at, nil
}

type formField struct {
	Name        string `json:"name"`
	Label       string `json:"label"`
	Placeholder string `json:"placeholder"`
	Required    bool   `json:"required"`
	Type        string `json:"type"`
}

type formView struct {
	Fields []formField `json:"fields"`
}

type loginModelView struct {
	Form          formView           `json:"form"`
	AccountStores []accountStoreView `json:"accountStores"`
}

type registrationModelView struct {
	loginModelView
	PasswordPolicy *strengthView `json:"passwordPolicy"`
}

type accountStoreView struct {
	Href         string             `json:"href"`
	Name         string             `json:"name"`
	AuthorizeURI *string            `json:"authorizeUri"`
	Provider     map[string]*string `json:"provider"`
}

type strengthView struct {
	MinLength    int `json:"minLength"`
	MaxLength    int `json:"maxLength"`
	MinLowerCase int `json:"minLowerCase"`
	MinUpperCase int `json:"minUpperCase"`
	MinNumeric   int `json:"minNumeric"`
	MinSymbol    int `json:"minSymbol"`
	MinDiacritic int `json:"minDiacritic"`
}

// accountStoreViews are the directories of social and SAML providers, for the buttons of a form.
func (c *clientCall) accountStoreViews(directories []directoryapi.LoginDirectory) []accountStoreView {
	views := []accountStoreView{}
	for _, d := range directories {
		at := c.base.To("directories", d.ID)
		provider := at + "/provider"
		v := accountStoreView{Href: at, Name: d.Name, AuthorizeURI: c.AuthorizeURI(c.baseURL, d),
			Provider: map[string]*string{"href": &provider, "providerId": &d.ProviderID}}
		if d.ProviderID != "saml" {
			scopes := d.Scope
			if field.Fold(d.ProviderID) == "google" && !slices.Contains(scopes, "openid") {
				scopes = slices.Insert(slices.Clone(scopes), 0, "openid")
			}
			scope := strings.Join(scopes, " ")
			v.Provider["clientId"], v.Provider["scope"] = d.ClientID, &scope
		}
		if field.Fold(d.ProviderID) == "google" {
			v.Provider["hd"], v.Provider["display"], v.Provider["accessType"] = d.HD, d.Display, d.AccessType
		}
		views = append(views, v)
	}
	return views
}

// loginModel returns what a sign-in or registration form shows.
func (c *clientCall) loginModel(f *fiber.Ctx) (journey.Form, error) {
	return c.Form(f.UserContext(), directoryapi.StoreName{NameKey: f.Query("organizationNameKey")})
}

// getLogin answers GET /login with the fields and providers of a sign-in form.
func (c *clientCall) getLogin(f *fiber.Ctx) error {
	m, err := c.loginModel(f)
	if err != nil {
		return err
	}
	return f.JSON(loginModelView{formView{[]formField{
		{"login", "Username or Email", "Username or Email", true, "text"}, {"password", "Password", "Password", true,
			"password"},
	}}, c.accountStoreViews(m.Directories)})
}
