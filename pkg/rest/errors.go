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

// Fail is the error handler: it answers a request with an error as JSON.
func Fail(c *fiber.Ctx, base href.Base, err error) error {
	refusal := logAndSetStatus(c, err)
	c.Set(fiber.HeaderContentType, MIME)
	requestID := caller.From(c.UserContext()).RequestID
	if requestID == "" { // the caller could not be read
		requestID = utils.UUIDv4()
	}
	return c.Send(refusal.Body(base.Host()+"/errors/"+strconv.Itoa(refusal.Code), requestID))
}

// logAndSetStatus returns the error of the catalogue (pkg/apierr/catalog.go) for err. It sets the
// status and the headers of the error, such as Retry-After, and logs an error with a status of 500
// or more. No other function does either.
func logAndSetStatus(c *fiber.Ctx, err error) *apierr.Error {
	refusal := catalogueError(c, err)
	// An apierr.Unavailable that wraps no other error is intentional, such as load shedding, and
	// is not logged.
	_, deliberate := err.(*apierr.Error) //nolint:errorlint // an error that is wrapped is a failure to log
	if refusal.Status >= 500 && !(deliberate && refusal.Status == apierr.Unavailable.Status) {
		slog.Log(c.UserContext(), logLevel(refusal), "request failed", "method", c.Method(), "route", Route(c),
			"status", refusal.Status,
			"error", err.Error())
	}
	if refusal.RetryAfter > 0 { // the header Retry-After, in seconds
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

// logLevel is the level of the log line of an error with a status of 500 or more. What a program of
// somebody else causes, such as the agent of a customer's directory server, is no failure of this
// deployment.
func logLevel(refusal *apierr.Error) slog.Level {
	if refusal.Status == fiber.StatusBadGateway || refusal.Status == fiber.StatusGatewayTimeout {
		return slog.LevelWarn
	}
	return slog.LevelError
}

// catalogueError returns the error of the catalogue for an error of a handler or of
// Fiber.
func catalogueError(c *fiber.Ctx, err error) *apierr.Error {
	var own *fiber.Error
	if !errors.As(err, &own) {
		return apierr.From(err)
	}
	switch own.Code {
	case fiber.StatusNotFound:
		return apierr.NotFound
	case fiber.StatusMethodNotAllowed:
		refusal := *apierr.MethodNotAllowed.Because("%s is not offered on this path; use a method of the header Allow",
			c.Method())
		refusal.Allow = c.GetRespHeader(fiber.HeaderAllow)
		return &refusal
	case fiber.StatusRequestEntityTooLarge:
		return apierr.TooLarge.Because("the body is larger than %d bytes", MaxBody)
	case fiber.StatusRequestHeaderFieldsTooLarge, fiber.StatusRequestURITooLong:
		return apierr.TooLarge.Because("the URL or a header is too long")
	}
	if own.Code < 500 {
		// The text of the framework shows its buffers.
		return apierr.BadRequest.Because(
			"the request cannot be read: its first line or one of its headers is malformed")
	}
	return apierr.Internal
}
