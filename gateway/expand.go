package gateway

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/gateway/requestpath"
	"github.com/doorward/doorward/pkg/apierr"
)

// The limits of link expansion in one request.
const (
	maxFetches  = 500      // resources that are fetched
	maxFetching = 8        // concurrent fetches
	maxExpanded = 32 << 20 // bytes of the fetched resources
)

// parseExpand is the middleware that parses the query expand= and refuses a name that cannot be
// expanded, before the request is forwarded.
func (g *Gateway) parseExpand(rc *requestContext) (err error) {
	if rc.parameters.expand != "" {
		rc.expansions, err = parseExpansions(rc.parameters.expand, rc.route.expandable)
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
	links := findLinks(body, rc.expansions, rc.route.collection && rc.method == fiber.MethodGet)
	if len(links) == 0 {
		return nil
	}
	found, err := g.fetchAll(rc, links)
	defer found.release()
	if err == nil {
		body, err = replaceLinks(body, links, found)
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
	rc.Response().Header.Set(fiber.HeaderLocation, withQuery(string(location), string(rc.parameters.rawExpand)))
}

// withQuery adds parameters to the query of an address.
func withQuery(address, parameters string) string {
	switch {
	case parameters == "":
		return address
	case strings.Contains(address, "?"):
		return address + "&" + parameters
	}
	return address + "?" + parameters
}

// link is a link of a body that is to be expanded.
type link struct {
	start, end int    // its position in the body
	href, page string // its address, and the query of the page for a collection
}

// url returns the address that is fetched for the link.
func (l link) url() string { return withQuery(l.href, l.page) }

// findLinks finds the links with the given names in a resource, or in each item of a
// collection, in the order of the body.
func findLinks(body []byte, names []expansion, collection bool) (links []link) {
	whole := gjson.Parse(utils.UnsafeString(body)) // not copied: body outlives the links
	find := func(resource gjson.Result, offset int) {
		resource.ForEach(func(name, value gjson.Result) bool {
			at := slices.IndexFunc(names, func(e expansion) bool { return e.name == name.Str })
			if at < 0 {
				return true
			}
			if href := hrefOf(value); href != "" {
				start := offset + value.Index
				links = append(links, link{start, start + len(value.Raw), href, names[at].page})
			}
			return true
		})
	}
	if !collection {
		find(whole, 0)
		return links
	}
	items := whole.Get("items")
	items.ForEach(func(_, item gjson.Result) bool {
		if item.IsObject() {
			find(gjson.Parse(item.Raw), item.Index)
		}
		return true
	})
	return links
}

// hrefOf returns the address of a link: of an object with the member href and no other. It
// returns "" for any other value.
func hrefOf(value gjson.Result) (href string) {
	if !value.IsObject() {
		return ""
	}
	members := 0
	value.ForEach(func(name, to gjson.Result) bool {
		if members++; members == 1 && name.Str == "href" && to.Type == gjson.String {
			href = to.Str
			return true
		}
		href = ""
		return false
	})
	return href
}

// fetchedResources are the answers by URL; nil for a link that is not replaced.
type fetchedResources map[string]*fasthttp.Response

func (f fetchedResources) release() {
	for _, response := range f {
		if response != nil {
			fasthttp.ReleaseResponse(response)
		}
	}
}

// fetchAll fetches each URL once, at most maxFetching at a time.
func (g *Gateway) fetchAll(rc *requestContext, links []link) (fetchedResources, error) {
	found := fetchedResources{}
	for _, l := range links {
		found[l.url()] = nil
	}
	if len(found) > maxFetches {
		return nil, apierr.MalformedQuery.Because("expand names %d resources here, more than %d; ask for fewer items or fewer links",
			len(found), maxFetches)
	}
	type answer struct {
		address  string
		response *fasthttp.Response
	}
	answers := make(chan answer, len(found))
	var size atomic.Int64
	group, ctx := errgroup.WithContext(rc.ctx)
	group.SetLimit(maxFetching)
	for address := range found {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			response, err := g.fetch(ctx, rc, address)
			if response == nil {
				return err
			}
			answers <- answer{address, response}
			if size.Add(int64(len(response.Body()))) > maxExpanded {
				return errExpansionTooLarge
			}
			return nil
		})
	}
	err := group.Wait()
	close(answers)
	for a := range answers {
		found[a.address] = a.response
	}
	return found, err
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
		target = []byte(withQuery(string(target), encryption))
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

var errExpansionTooLarge = apierr.MalformedQuery.Because("the expanded answer is larger than %d bytes; ask for fewer items or fewer links",
	maxExpanded)

// replaceLinks returns the body with the fetched resources in place of their links.
func replaceLinks(body []byte, links []link, found fetchedResources) ([]byte, error) {
	size := len(body)
	for _, l := range links {
		if response := found[l.url()]; response != nil {
			size += len(response.Body())
		}
	}
	if size > len(body)+maxExpanded {
		return nil, errExpansionTooLarge
	}
	out := make([]byte, 0, size)
	from := 0
	for _, l := range links {
		if response := found[l.url()]; response != nil {
			out = append(append(out, body[from:l.start]...), response.Body()...)
			from = l.end
		}
	}
	return append(out, body[from:]...), nil
}
