package gateway

import (
	"cmp"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// overriddenMethod returns the method of a request after _method. Only a POST can stand for
// another method. PUT stands for POST: some clients use it for an update.
func overriddenMethod(method, override string) (string, error) {
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

// methodOverride is the middleware that takes _method (elsewhere X-HTTP-Method-Override) and expand
// out of the query of a path under /v1. Queries of other paths are forwarded unchanged.
func (g *Gateway) methodOverride(rc *requestContext) (err error) {
	if len(rc.query) > 0 {
		rc.target = append(rc.target, '?')
	}
	if !rc.managementAPI {
		rc.target = append(rc.target, rc.query...)
		return nil
	}
	start := len(rc.target)
	if rc.target, rc.parameters, err = splitQuery(rc.target, rc.query); err != nil {
		return err
	}
	if len(rc.target) == start { // no parameter is left
		rc.target = rc.target[:rc.pathLength]
	}
	if rc.method == fiber.MethodHead && rc.route != nil && rc.route.access == publicAccess {
		return nil // forwarded as HEAD: the GET of a public path may consume a one-time token
	}
	rc.method, err = overriddenMethod(rc.method, rc.parameters.method)
	return err
}

// checkMethod is the middleware that refuses unknown paths (404) and methods (405).
func (g *Gateway) checkMethod(rc *requestContext) error {
	if rc.route == nil {
		if !rc.validPath {
			return apierr.NotFound.Because("the path has a backslash, a control character, an escaped slash, a " +
				"broken escape or the segment . or .., which no address has; send addresses and tokens as they were " +
				"returned")
		}
		return apierr.NotFound
	}
	if !rc.route.offers(rc.method) {
		refusal := *apierr.MethodNotAllowed.Because("this path offers %s",
			cmp.Or(rc.route.allow, "no methods; its resources are below it"))
		refusal.Allow = rc.route.allow
		rc.Set(fiber.HeaderAllow, refusal.Allow) // also an empty value (RFC 9110, section 15.5.6)
		return &refusal
	}
	return nil
}
