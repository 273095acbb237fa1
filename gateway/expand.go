package gateway

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"

	"github.com/doorward/doorward/gateway/expansion"
	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/apierr"
)

// parseExpand is the middleware that parses the query expand= and refuses a name that cannot be
// expanded, before the request is forwarded.
func (g *Gateway) parseExpand(rc *requestContext) (err error) {
	if rc.parameters.expand != "" {
		rc.expansions, err = expansion.Parse(rc.parameters.expand, rc.route.expandable)
	}
	return err
}

// expand is the middleware of link expansion (embedding): it replaces links of the answer by the
// resources that they name. The other bytes of the answer do not change.
//
// A link is not replaced where it is null, where the member is no link, and where the resource
// does not exist or may not be read. If a service fails, the request fails if it is a GET; after
// another request, which may have changed something, the answer keeps its links.
func (g *Gateway) expand(rc *requestContext) error {
	if len(rc.expansions) == 0 {
		return nil
	}
	response := rc.Response()
	switch status := response.StatusCode(); {
	case status == fiber.StatusFound:
		g.keepExpandQuery(rc)
		return nil
	case status != fiber.StatusOK && status != fiber.StatusCreated || !isJSON(response):
		return nil
	}
	body := response.Body()
	links := expansion.Find(body, rc.expansions, rc.route.collection && rc.method == fiber.MethodGet)
	if len(links) == 0 {
		return nil
	}
	found, err := expansion.Fetch(rc.ctx, links, func(ctx context.Context, address string) (*fasthttp.Response, error) {
		return g.fetch(ctx, rc, address)
	})
	defer found.Release()
	if err == nil {
		body, err = expansion.Replace(body, links, found)
	}
	if err != nil {
		if rc.method != fiber.MethodGet {
			return nil
		}
		response.Reset()
		return err
	}
	response.Header.Del(fiber.HeaderETag)
	response.Header.Set(fiber.HeaderCacheControl, "no-cache")
	response.SetBodyRaw(body)
	return nil
}

// keepExpandQuery adds the query expand= to the Location of a redirect.
func (g *Gateway) keepExpandQuery(rc *requestContext) {
	location := rc.Response().Header.Peek(fiber.HeaderLocation)
	rc.Response().Header.Set(fiber.HeaderLocation,
		expansion.WithQuery(string(location), string(rc.parameters.rawExpand)))
}

// fetch gets a resource on behalf of the client, from the service that owns the path by
// routes.go. It returns nil for a link that is not replaced. The secrets of API keys are encrypted
// where the query of the request demands it; wrong parameters of the encryption are an error.
func (g *Gateway) fetch(ctx context.Context, rc *requestContext, address string) (*fasthttp.Response, error) {
	local, sameHost := strings.CutPrefix(address, g.cfg.Common.Base.Host())
	target, valid := requestpath.OriginForm([]byte(local))
	if !sameHost || !valid {
		return nil, nil
	}
	path, _, _ := bytes.Cut(target, []byte{'?'})
	r := g.router.match(path)
	if r == nil || r.access != keyAccess || !r.offers(fiber.MethodGet) {
		return nil, nil
	}
	var encryption string
	if r.apiKeys {
		encryption = encryptionParameters(rc.query)
		target = []byte(expansion.WithQuery(string(target), encryption))
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	request.Header.Set(fiber.HeaderAccept, fiber.MIMEApplicationJSON)
	err := g.callService(ctx, r, fiber.MethodGet, target, rc.signedCaller, request, response)
	switch status := response.StatusCode(); {
	case err == nil && status == fiber.StatusOK && isJSON(response) && len(response.Body()) > 0:
		return response, nil
	case err == nil && status == fiber.StatusBadRequest && len(encryption) > 0:
		refusal := gjson.ParseBytes(response.Body())
		err = &apierr.Error{Status: status, Code: int(refusal.Get("code").Int()), Message: refusal.Get("message").Str,
			Reason: refusal.Get("developerMessage").Str}
	case err == nil && status == fiber.StatusServiceUnavailable:
		err = apierr.Unavailable.WithRetryAfter(time.Second)
	case err == nil && status >= 500:
		err = fmt.Errorf("expand %s: the %s service answered %d", r.pattern, strings.Join(r.services, " or "), status)
	}
	fasthttp.ReleaseResponse(response)
	return nil, err
}
