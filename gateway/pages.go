package gateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
)

var (
	//go:embed pages/page.html
	pageHTML string
	//go:embed pages/page.css
	pageCSS string

	pageTemplates = template.Must(template.New("").Parse(pageHTML))
)

// pagePolicy is the Content-Security-Policy of the pages: it allows their own style sheet only.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageCSS))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// page is the handler of a route of the gateway itself.
type page func(*Gateway, *requestContext) error

// ownPages are the handlers of the routes of the gateway itself, by path, without those of
// openapi.go.
func ownPages() map[string]page {
	return map[string]page{"/": (*Gateway).startPage, "/errors": (*Gateway).errorsPage,
		"/errors/:code": (*Gateway).errorPage, issuerRoute: (*Gateway).redirectToBase}
}

// startPage shows how to begin, to clients on this machine and on private networks. Other clients
// get a short page.
func (g *Gateway) startPage(rc *requestContext) error {
	if !g.onPrivateNetwork(rc) {
		return g.html(rc, "public", g.cfg.Common.Alias.Product(), g.cfg.SignUp)
	}
	type link struct{ Name, Path string }
	var links []link
	for _, l := range []link{{"Reference", "/docs"}, {"Mailbox", "/_mailbox"}, {"Errors", "/errors"}} {
		if g.router.match([]byte(l.Path)) != nil {
			links = append(links, l)
		}
	}
	if g.cfg.SignUp {
		links = append([]link{{"Sign up", "/register"}}, links...)
	}
	return g.html(rc, "start", "It works",
		map[string]any{"Base": g.cfg.Common.Base.String(), "Links": links, "Data": g.cfg.Data})
}

// errorPage explains one error of the catalogue.
func (g *Gateway) errorPage(rc *requestContext) error {
	code := string(rc.target[bytes.LastIndexByte(rc.target[:rc.pathLength], '/')+1 : rc.pathLength])
	number, err := strconv.Atoi(code)
	e, found := apierr.Find(number)
	if err != nil || !found || strconv.Itoa(number) != code {
		return apierr.NotFound.Because("no error has this code; %s/errors lists all", g.cfg.Common.Base.Host())
	}
	if wantsJSON(rc) {
		return g.json(rc, e)
	}
	return g.html(rc, "error", "Error "+code+": "+strings.TrimSuffix(e.Meaning, "."), e)
}

// errorsPage lists the catalogue in the order of the codes.
func (g *Gateway) errorsPage(rc *requestContext) error {
	all := slices.SortedFunc(slices.Values(apierr.Catalogue()), func(a, b apierr.Entry) int { return a.Code - b.Code })
	if wantsJSON(rc) {
		return g.json(rc, map[string]any{"errors": all})
	}
	return g.html(rc, "errors", "Errors", map[string]any{"Errors": all})
}

// failurePage renders the error that the answer has as JSON as an HTML page, with the reason of the
// error also where programs get a text that they compare in its place.
func (g *Gateway) failurePage(c *fiber.Ctx, reason string) error {
	var e struct {
		Status, Code                         int
		Message, DeveloperMessage, RequestID string
	}
	if err := json.Unmarshal(c.Response().Body(), &e); err != nil {
		return err
	}
	e.DeveloperMessage = cmp.Or(reason, e.DeveloperMessage)
	return g.html(&requestContext{Ctx: c}, "failure", http.StatusText(e.Status), e)
}

// wantsPage reports whether the client is a browser that prefers HTML to JSON, outside of the
// management API.
func wantsPage(c *fiber.Ctx) bool {
	return (c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead) &&
		!requestpath.IsManagement(c.Request().URI().Path()) &&
		c.Accepts(fiber.MIMEApplicationJSON, fiber.MIMETextHTML) == fiber.MIMETextHTML
}

// wantsJSON reports whether a client prefers JSON to a page.
func wantsJSON(rc *requestContext) bool {
	return rc.Accepts(fiber.MIMETextHTML, fiber.MIMEApplicationJSON) == fiber.MIMEApplicationJSON
}

func (g *Gateway) json(rc *requestContext, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	rc.Vary(fiber.HeaderAccept)
	rc.Set(fiber.HeaderContentType, rest.MIME)
	return rc.Send(body)
}

// html writes an HTML page with the content of a template of pages/page.html.
func (g *Gateway) html(rc *requestContext, name, title string, data any) error {
	var content, out bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&content, name, data); err != nil {
		return err
	}
	err := pageTemplates.ExecuteTemplate(&out, "page", map[string]any{
		"Product": g.cfg.Common.Alias.Product(), "Title": title, "Style": template.CSS(pageCSS),
		"Content": template.HTML(content.String()), //nolint:gosec // a template's output
	})
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		fiber.HeaderContentType: fiber.MIMETextHTMLCharsetUTF8, fiber.HeaderContentSecurityPolicy: pagePolicy,
		fiber.HeaderXContentTypeOptions: "nosniff",
		fiber.HeaderReferrerPolicy:      "no-referrer", fiber.HeaderCacheControl: "no-cache",
	} {
		rc.Set(name, value)
	}
	rc.Vary(fiber.HeaderAccept)
	g.setHSTS(rc)
	return rc.Send(out.Bytes())
}

// hsts returns the value of Strict-Transport-Security (HSTS). It is empty for localhost, whose
// other ports may serve plain HTTP, because the header holds for all ports of a host; and for an IP
// address, to which the header does not apply (RFC 6797, section 8.1).
func hsts(base href.Base) string {
	address, err := url.Parse(base.String())
	if err != nil {
		return ""
	}
	host := address.Hostname()
	if net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return ""
	}
	return "max-age=31536000"
}

// setHSTS sets the header Strict-Transport-Security of an answer outside /v1.
func (g *Gateway) setHSTS(rc *requestContext) {
	if g.hsts != "" && !rc.managementAPI {
		rc.Set(fiber.HeaderStrictTransportSecurity, g.hsts)
	}
}
