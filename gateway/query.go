package gateway

import (
	"bytes"
	"cmp"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// ownParameters are the parameters of a query that the gateway acts on itself;
// the service does not get them.
type ownParameters struct {
	method string // of _method: the method that a POST stands for
	expand string // of expand, decoded
	raw    []byte // of expand, as sent with its name
}

// splitQuery splits a query into what the gateway acts on and what the service
// gets, which it appends to dst. A parameter that is repeated with the same value
// counts once (docs/interface/search.md#filters).
func splitQuery(dst, query []byte) ([]byte, ownParameters, error) {
	var own ownParameters
	if !bytes.Contains(query, []byte("expand")) && !bytes.Contains(query, []byte("_method")) && bytes.IndexByte(query, '%') < 0 {
		return append(dst, query...), own, nil
	}
	start := len(dst)
	for len(query) > 0 {
		var pair []byte
		pair, query, _ = bytes.Cut(query, []byte{'&'})
		name, value, _ := bytes.Cut(pair, []byte{'='})
		which := ownParameter(name)
		if which < 0 {
			if len(dst) > start {
				dst = append(dst, '&')
			}
			dst = append(dst, pair...)
			continue
		}
		text, err := url.QueryUnescape(string(value))
		if err != nil {
			return dst, own, apierr.MalformedQuery.Because("the value of %s has a broken escape", ownNames[which])
		}
		if text = strings.TrimSpace(text); text == "" {
			return dst, own, apierr.ParameterEmpty.Because("%s needs a value", ownNames[which])
		}
		into := &own.method
		if which == 0 {
			into, own.raw = &own.expand, pair
		}
		if *into != "" && *into != text {
			return dst, own, apierr.ParameterRepeated.Because("%s is repeated with different values", ownNames[which])
		}
		*into = text
	}
	return dst, own, nil
}

var ownNames = [2]string{"expand", "_method"}

// ownParameter returns the index of a parameter's name in ownNames, or -1.
func ownParameter(name []byte) int {
	if bytes.IndexByte(name, '%') >= 0 {
		if plain, err := url.QueryUnescape(string(name)); err == nil {
			name = []byte(plain)
		}
	}
	for i := range ownNames {
		if string(name) == ownNames[i] {
			return i
		}
	}
	return -1
}

// standsFor returns the method that a request means. Only a POST can stand for
// another one, and PUT is how some clients spell an update.
func standsFor(method, override string) (string, error) {
	switch {
	case method == fiber.MethodHead:
		return fiber.MethodGet, nil
	case method != fiber.MethodPost || override == "" || strings.EqualFold(override, fiber.MethodPut):
		return method, nil
	case strings.EqualFold(override, fiber.MethodDelete):
		return fiber.MethodDelete, nil
	}
	return method, apierr.QueryUnsupported.Because("_method can be DELETE or PUT, not %q", override)
}

// methodOverride takes _method and expand out of the query of a path under /v1;
// other queries are the service's.
func (g *Gateway) methodOverride(x *exchange) (err error) {
	if len(x.query) > 0 {
		x.target = append(x.target, '?')
	}
	if !x.managed {
		x.target = append(x.target, x.query...)
		return nil
	}
	with := len(x.target)
	if x.target, x.own, err = splitQuery(x.target, x.query); err != nil {
		return err
	}
	if len(x.target) == with { // nothing is left of the query
		x.target = x.target[:x.path]
	}
	if x.method == fiber.MethodHead && x.route != nil && x.route.access == byNone {
		return nil // the service answers it: the GET may use a token up
	}
	x.method, err = standsFor(x.method, x.own.method)
	return err
}

// checkMethod refuses unknown paths and methods.
func (g *Gateway) checkMethod(x *exchange) error {
	if x.route == nil {
		if !x.canonical {
			return apierr.NotFound.Because("the path has a backslash, a control character, an escaped slash, a broken escape or the segment . or " +
				".., which no address has; send addresses and tokens as they were returned")
		}
		return apierr.UnknownPath
	}
	if !x.route.offers(x.method) {
		refusal := *apierr.MethodNotAllowed.Because("this path offers %s", cmp.Or(x.route.allow, "no methods; its resources are below it"))
		refusal.Allow = x.route.allow
		x.Set(fiber.HeaderAllow, refusal.Allow) // also where it is empty (RFC 9110, section 15.5.6)
		return &refusal
	}
	return nil
}
