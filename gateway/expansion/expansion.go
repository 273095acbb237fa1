package expansion

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gofiber/fiber/v2/utils"
	"github.com/tidwall/gjson"
	"github.com/valyala/fasthttp"
	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/pkg/apierr"
)

// The limits of link expansion in one request.
const (
	MaxFetches  = 500      // resources that are fetched
	MaxFetching = 8        // concurrent fetches
	MaxExpanded = 32 << 20 // bytes of the fetched resources
)

// WithQuery adds parameters to the query of an address.
func WithQuery(address, parameters string) string {
	switch {
	case parameters == "":
		return address
	case strings.Contains(address, "?"):
		return address + "&" + parameters
	}
	return address + "?" + parameters
}

// Found is a link of a body that is to be expanded.
type Found struct {
	start, end int    // its position in the body
	href, page string // its address, and the query of the page for a collection
}

// url returns the address that is fetched for the link.
func (l Found) url() string { return WithQuery(l.href, l.page) }

// Find finds the links with the given names in a resource, or in each item of a
// collection, in the order of the body.
func Find(body []byte, names []Expansion, collection bool) (links []Found) {
	whole := gjson.Parse(utils.UnsafeString(body)) // not copied: body outlives the links
	find := func(resource gjson.Result, offset int) {
		resource.ForEach(func(name, value gjson.Result) bool {
			at := slices.IndexFunc(names, func(e Expansion) bool { return e.Name == name.Str })
			if at < 0 {
				return true
			}
			if href := hrefOf(value); href != "" {
				start := offset + value.Index
				links = append(links, Found{start, start + len(value.Raw), href, names[at].Page})
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

// Resources are the fetched answers by URL; nil for a link that is not replaced.
type Resources map[string]*fasthttp.Response

// Release returns the answers to their pool.
func (f Resources) Release() {
	for _, response := range f {
		if response != nil {
			fasthttp.ReleaseResponse(response)
		}
	}
}

// Fetch fetches each address once, at most MaxFetching at a time. fetch returns nil for a link that is not replaced.
func Fetch(ctx context.Context, links []Found, fetch func(ctx context.Context, address string) (*fasthttp.Response,
	error)) (Resources, error) {
	found := Resources{}
	for _, l := range links {
		found[l.url()] = nil
	}
	if len(found) > MaxFetches {
		return nil, apierr.MalformedQuery.Because(
			"expand names %d resources here, more than %d; ask for fewer items or fewer links",
			len(found), MaxFetches)
	}
	type answer struct {
		address  string
		response *fasthttp.Response
	}
	answers := make(chan answer, len(found))
	var size atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(MaxFetching)
	for address := range found {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			response, err := fetch(ctx, address)
			if response == nil {
				return err
			}
			answers <- answer{address, response}
			if size.Add(int64(len(response.Body()))) > MaxExpanded {
				return errTooLarge
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

var errTooLarge = apierr.MalformedQuery.Because(
	"the expanded answer is larger than %d bytes; ask for fewer items or fewer links",
	MaxExpanded)

// Replace returns the body with the fetched resources in place of their links.
func Replace(body []byte, links []Found, found Resources) ([]byte, error) {
	size := len(body)
	for _, l := range links {
		if response := found[l.url()]; response != nil {
			size += len(response.Body())
		}
	}
	if size > len(body)+MaxExpanded {
		return nil, errTooLarge
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
