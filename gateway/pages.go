package gateway

import (
	"bytes"
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

// pagePolicy is the Content-Security-Policy of the pages: their own style and
// nothing else.
var pagePolicy = func() string {
	sum := sha256.Sum256([]byte(pageCSS))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}()

// page writes the answer of a route whose owner is the gateway.
type page func(*Gateway, *exchange) error

// ownPages are the pages of the routes whose owner is the gateway, by path.
func ownPages() map[string]page {
	return map[string]page{"/": (*Gateway).startPage, "/errors": (*Gateway).errorsPage, "/errors/:code": (*Gateway).errorPage}
}

// startPage shows how to begin, to this machine and to private networks. Others
// read what the address is.
func (g *Gateway) startPage(x *exchange) error {
	if !g.onPrivateNetwork(x) {
		return g.html(x, "public", g.cfg.Common.Alias.Product(), nil)
	}
	type link struct{ Name, Path string }
	var links []link
	for _, l := range []link{{"Reference", "/docs"}, {"Mailbox", "/_mailbox"}, {"Errors", "/errors"}} {
		if g.router.match([]byte(l.Path)) != nil {
			links = append(links, l)
		}
	}
	return g.html(x, "start", "It works", map[string]any{"Base": string(g.cfg.Common.Base), "Links": links, "Data": g.cfg.Data})
}

// errorPage explains one error of the catalogue.
func (g *Gateway) errorPage(x *exchange) error {
	code := string(x.target[bytes.LastIndexByte(x.target[:x.path], '/')+1 : x.path])
	number, err := strconv.Atoi(code)
	e, found := apierr.Find(number)
	if err != nil || !found || strconv.Itoa(number) != code {
		return apierr.NotFound.Because("no error has this code; %s/errors lists all", g.cfg.Common.Base.Host())
	}
	if wantsJSON(x) {
		return g.json(x, e)
	}
	return g.html(x, "error", "Error "+code+": "+strings.TrimSuffix(e.Meaning, "."), e)
}

// errorsPage lists the catalogue in the order of the codes.
func (g *Gateway) errorsPage(x *exchange) error {
	all := slices.SortedFunc(slices.Values(apierr.Catalogue()), func(a, b apierr.Entry) int { return a.Code - b.Code })
	if wantsJSON(x) {
		return g.json(x, map[string]any{"errors": all})
	}
	return g.html(x, "errors", "Errors", map[string]any{"Errors": all})
}

// failurePage shows the error that the answer holds as JSON to a person.
func (g *Gateway) failurePage(c *fiber.Ctx) error {
	var e struct {
		Status, Code                         int
		Message, DeveloperMessage, RequestID string
	}
	if err := json.Unmarshal(c.Response().Body(), &e); err != nil {
		return err
	}
	return g.html(&exchange{Ctx: c}, "failure", http.StatusText(e.Status), e)
}

// wantsPage reports whether a browser asks for a page: for anything but the
// management API, and by name.
func wantsPage(c *fiber.Ctx) bool {
	return (c.Method() == fiber.MethodGet || c.Method() == fiber.MethodHead) && !underV1(c.Request().URI().Path()) &&
		c.Accepts(fiber.MIMEApplicationJSON, fiber.MIMETextHTML) == fiber.MIMETextHTML
}

// wantsJSON reports whether a client prefers JSON to a page.
func wantsJSON(x *exchange) bool {
	return x.Accepts(fiber.MIMETextHTML, fiber.MIMEApplicationJSON) == fiber.MIMEApplicationJSON
}

func (g *Gateway) json(x *exchange, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	x.Vary(fiber.HeaderAccept)
	x.Set(fiber.HeaderContentType, rest.MIME)
	return x.Send(body)
}

// html writes a page around a template of pages/page.html.
func (g *Gateway) html(x *exchange, name, title string, data any) error {
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
		x.Set(name, value)
	}
	x.Vary(fiber.HeaderAccept)
	g.secureTransport(x)
	return x.Send(out.Bytes())
}

// hsts is the value of Strict-Transport-Security, which holds for all ports of a
// host: none for this machine, whose other servers may be without TLS, and for an
// address, which the header does not apply to (RFC 6797, section 8.1).
func hsts(base href.Base) string {
	address, err := url.Parse(string(base))
	if err != nil {
		return ""
	}
	if host := address.Hostname(); net.ParseIP(host) != nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return ""
	}
	return "max-age=31536000"
}

// secureTransport makes browsers use HTTPS alone.
func (g *Gateway) secureTransport(x *exchange) {
	if g.hsts != "" && !x.managed {
		x.Set(fiber.HeaderStrictTransportSecurity, g.hsts)
	}
}
