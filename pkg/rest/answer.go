package rest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"mime"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
)

// MIME is the content type of every JSON answer.
const MIME = "application/json;charset=UTF-8"

// Body reads a JSON body into the members of in. View is the type that renders
// the resource: its other members are read-only and ignored when they are sent
// back, and a member that neither has is refused (docs/interface/conventions.md#resources).
func Body[View any](c *fiber.Ctx, in any) error {
	if err := checkContentType(c, fiber.MIMEApplicationJSON); err != nil {
		return err
	}
	var view View
	return field.Decode(c.Request().Body(), in, view)
}

// OptionalBody is Body for a request that may come without one.
func OptionalBody[View any](c *fiber.Ctx, in any) error {
	if len(bytes.TrimSpace(c.Request().Body())) == 0 {
		return nil
	}
	return Body[View](c, in)
}

// wantType checks the content type of a body and that it is UTF-8.
func checkContentType(c *fiber.Ctx, want string) error {
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != want {
		return apierr.ContentType.Because("send the body as Content-Type: %s", want)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "utf8") {
		return apierr.Encoding.Because("the charset %q is not supported; send UTF-8", charset)
	}
	return nil
}

// ID reads the id in a path. A text that is no id names no resource: 404.
func ID(c *fiber.Ctx, name string) (id.ID, error) {
	v, err := id.Parse(c.Params(name))
	if err != nil || v.IsZero() {
		return id.ID{}, resourceNotFound(c, name)
	}
	return v, nil
}

// OK answers 200 with a resource and its validator, or 304 to a client that
// holds it already (RFC 9110, section 13; docs/interface/limits.md#conditional-get).
func OK(c *fiber.Ctx, view any) error {
	if err := render(c, view); err != nil {
		return err
	}
	return respondOK(c)
}

// ok answers 200 with the body that is written already, or 304.
func respondOK(c *fiber.Ctx) error {
	tag := entityTag(c.Response().Body())
	c.Set(fiber.HeaderETag, tag)
	if known := c.Get(fiber.HeaderIfNoneMatch); known != "" && matchesEntityTag(known, tag) {
		c.Set(fiber.HeaderCacheControl, "no-cache")
		c.Status(fiber.StatusNotModified)
		c.Response().ResetBody()
		return nil
	}
	return setJSONHeaders(c, fiber.StatusOK)
}

// validator is the weak entity tag of a representation. It is made from the
// representation itself, so that it changes with all that a client can see.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// matches compares the entity tags of an If-None-Match weakly (RFC 9110,
// section 13.1.2).
func matchesEntityTag(known, tag string) bool {
	for candidate := range strings.SplitSeq(known, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}

// Updated answers 200 with a resource and its address.
func Updated(c *fiber.Ctx, href string, view any) error {
	c.Set(fiber.HeaderLocation, href)
	return respond(c, fiber.StatusOK, view)
}

// Created answers 201 with a resource and its address.
func Created(c *fiber.Ctx, href string, view any) error {
	c.Set(fiber.HeaderLocation, href)
	return respond(c, fiber.StatusCreated, view)
}

// NoContent answers 204.
func NoContent(c *fiber.Ctx) error { return c.SendStatus(fiber.StatusNoContent) }

// Redirect answers 302 without a body. The query of the request goes along.
func Redirect(c *fiber.Ctx, href string) error {
	if query := c.Request().URI().QueryString(); len(query) > 0 {
		href += "?" + string(query)
	}
	c.Set(fiber.HeaderLocation, href)
	c.Status(fiber.StatusFound)
	return nil
}

func respond(c *fiber.Ctx, status int, view any) error {
	if err := render(c, view); err != nil {
		return err
	}
	return setJSONHeaders(c, status)
}

// render writes a view into the answer's own buffer.
func render(c *fiber.Ctx, view any) error {
	response := c.Response()
	response.ResetBody()
	encoder := json.NewEncoder(response.BodyWriter())
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(view)
	response.SetBody(bytes.TrimRight(response.Body(), "\n"))
	return err
}

// head writes what stands before a JSON body.
func setJSONHeaders(c *fiber.Ctx, status int) error {
	c.Status(status)
	c.Set(fiber.HeaderContentType, MIME)
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return nil
}
