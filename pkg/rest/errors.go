package rest

import (
	"errors"
	"log/slog"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
)

// Fail answers a request with an error.
func Fail(c *fiber.Ctx, base href.Base, err error) error {
	refusal := logAndSetStatus(c, err)
	c.Set(fiber.HeaderContentType, MIME)
	requestID := caller.From(c.UserContext()).RequestID
	if requestID == "" { // the caller could not be read
		requestID = utils.UUIDv4()
	}
	return c.Send(refusal.Body(base.Host()+"/errors/"+strconv.Itoa(refusal.Code), requestID))
}

// refuse finds the error of the catalogue for err, sets the status and the headers
// that belong to it, and logs it when it is a fault of this product. It is the only
// function that does either.
func logAndSetStatus(c *fiber.Ctx, err error) *apierr.Error {
	refusal := catalogueError(c, err)
	// An Unavailable that wraps nothing is intentional, such as load shedding; it is not
	// logged.
	_, deliberate := err.(*apierr.Error) //nolint:errorlint // what is wrapped is a fault
	if refusal.Status >= 500 && !(deliberate && refusal.Status == apierr.Unavailable.Status) {
		slog.ErrorContext(c.UserContext(), "request failed", "method", c.Method(), "route", Route(c), "status", refusal.Status, "error",
			err.Error())
	}
	if refusal.RetryAfter > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(int((refusal.RetryAfter+time.Second-1)/time.Second)))
	}
	if refusal.Allow != "" {
		c.Set(fiber.HeaderAllow, refusal.Allow)
	}
	if refusal.Location != "" {
		c.Set(fiber.HeaderLocation, refusal.Location)
	}
	c.Locals(codeKey{}, refusal.Code)
	c.Status(refusal.Status)
	return refusal
}

// refusalOf finds the error of the catalogue for an error of a handler or of
// Fiber.
func catalogueError(c *fiber.Ctx, err error) *apierr.Error {
	var own *fiber.Error
	if !errors.As(err, &own) {
		refusal := apierr.From(err)
		if errors.Is(refusal, apierr.NotFound) && refusal.Reason == "" {
			return resourceNotFound(c, "id")
		}
		return refusal
	}
	switch own.Code {
	case fiber.StatusNotFound:
		return apierr.UnknownPath
	case fiber.StatusMethodNotAllowed:
		refusal := *apierr.MethodNotAllowed.Because("%s is not offered on this path; use a method of the header Allow", c.Method())
		refusal.Allow = c.GetRespHeader(fiber.HeaderAllow)
		return &refusal
	case fiber.StatusRequestEntityTooLarge:
		return apierr.TooLarge.Because("the body is larger than %d bytes", MaxBody)
	case fiber.StatusRequestHeaderFieldsTooLarge, fiber.StatusRequestURITooLong:
		return apierr.TooLarge.Because("the URL or a header is too long")
	}
	if own.Code < 500 {
		return apierr.BadRequest.Because("%s", own.Message)
	}
	return apierr.Internal
}
