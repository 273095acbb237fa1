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

	"github.com/doorward/doorward/pkg/apierr"
)

// What one request may make of itself by expansion.
const (
	maxFetches  = 500      // resources fetched
	maxFetching = 8        // at a time
	maxExpanded = 32 << 20 // bytes fetched
)

// parseExpand reads the expand query and refuses a name that cannot be expanded,
// before the service does anything.
func (g *Gateway) parseExpand(x *exchange) (err error) {
	if x.own.expand != "" {
		x.expansions, err = parseExpansions(x.own.expand, x.route.expandable)
	}
	return err
}

// expand puts the resources that links name in place of the links. The
// bytes around them stay as the service wrote them.
//
// A link stays a link where it is null, where the field holds something else,
// and where the resource is gone or refused. A service that fails fails the
// request, but not one that has changed something already.
func (g *Gateway) expand(x *exchange) error {
	if len(x.expansions) == 0 {
		return nil
	}
	response := x.Response()
	switch status := response.StatusCode(); {
	case status == fiber.StatusFound:
		g.keepExpand(x)
		return nil
	case status != fiber.StatusOK && status != fiber.StatusCreated || !isJSON(response):
		return nil
	}
	body := response.Body()
	links := findLinks(body, x.expansions, x.route.collection && x.method == fiber.MethodGet)
	if len(links) == 0 {
		return nil
	}
	found, err := g.fetchAll(x.ctx, x.signed, links)
	defer found.release()
	if err == nil {
		body, err = splice(body, links, found)
	}
	if err != nil {
		if x.method != fiber.MethodGet {
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

// keepExpand adds the expand query to the address of a redirect.
func (g *Gateway) keepExpand(x *exchange) {
	location := x.Response().Header.Peek(fiber.HeaderLocation)
	separator := "?"
	if bytes.IndexByte(location, '?') >= 0 {
		separator = "&"
	}
	x.Response().Header.Set(fiber.HeaderLocation, string(location)+separator+string(x.own.raw))
}

// link is a link of a body that is to be expanded: where it stands, and where
// it leads.
type link struct {
	start, end int
	href, page string
}

// address names what is fetched for the link.
func (l link) address() string {
	switch {
	case l.page == "":
		return l.href
	case strings.Contains(l.href, "?"):
		return l.href + "&" + l.page
	}
	return l.href + "?" + l.page
}

// findLinks finds the links with the given names, of a resource or of each
// item of a collection, in the order of the body.
func findLinks(body []byte, names []expansion, collection bool) (links []link) {
	whole := gjson.Parse(utils.UnsafeString(body)) // body outlives the links
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

// hrefOf returns the address of a link: an object with href and nothing else.
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

// fetched are the answers by address; nil for what stays a link.
type fetched map[string]*fasthttp.Response

func (f fetched) release() {
	for _, response := range f {
		if response != nil {
			fasthttp.ReleaseResponse(response)
		}
	}
}

// fetchAll gets each address once, a few at a time.
func (g *Gateway) fetchAll(ctx context.Context, signed string, links []link) (fetched, error) {
	found := fetched{}
	for _, l := range links {
		found[l.address()] = nil
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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxFetching)
	for address := range found {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			response, err := g.fetch(ctx, signed, address)
			if response == nil {
				return err
			}
			answers <- answer{address, response}
			if size.Add(int64(len(response.Body()))) > maxExpanded {
				return errExpanded
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

// fetch gets a resource on behalf of the client, from the table as every
// request. It returns nil for what stays a link.
func (g *Gateway) fetch(ctx context.Context, signed, address string) (*fasthttp.Response, error) {
	local, ours := strings.CutPrefix(address, g.cfg.Common.Base.Host())
	target, valid := origin([]byte(local))
	if !ours || !valid {
		return nil, nil
	}
	path, _, _ := bytes.Cut(target, []byte{'?'})
	r := g.router.match(path)
	if r == nil || r.access != byKey || !r.offers(fiber.MethodGet) {
		return nil, nil
	}
	request, response := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(request)
	request.Header.Set(fiber.HeaderAccept, fiber.MIMEApplicationJSON)
	err := g.send(ctx, r, fiber.MethodGet, target, signed, request, response)
	switch status := response.StatusCode(); {
	case err == nil && status == fiber.StatusOK && isJSON(response) && len(response.Body()) > 0:
		return response, nil
	case err == nil && status == fiber.StatusServiceUnavailable:
		err = apierr.Unavailable.After(time.Second)
	case err == nil && status >= 500:
		err = fmt.Errorf("expand %s: the %s service answered %d", r.pattern, strings.Join(r.owners, " or "), status)
	}
	fasthttp.ReleaseResponse(response)
	return nil, err
}

var errExpanded = apierr.MalformedQuery.Because("the expanded answer is larger than %d bytes; ask for fewer items or fewer links",
	maxExpanded)

// splice returns the body with what was found in place of the links.
func splice(body []byte, links []link, found fetched) ([]byte, error) {
	size := len(body)
	for _, l := range links {
		if response := found[l.address()]; response != nil {
			size += len(response.Body())
		}
	}
	if size > len(body)+maxExpanded {
		return nil, errExpanded
	}
	out := make([]byte, 0, size)
	from := 0
	for _, l := range links {
		if response := found[l.address()]; response != nil {
			out = append(append(out, body[from:l.start]...), response.Body()...)
			from = l.end
		}
	}
	return append(out, body[from:]...), nil
}
