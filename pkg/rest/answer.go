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

// Body decodes the JSON body of a request into in. View is the type of the representation of the
// resource: its other members are read-only and are ignored, and a member that neither type
// has is refused (docs/interface/conventions.md#resources).
func Body[View any](c *fiber.Ctx, in any) error {
	if err := checkContentType(c, fiber.MIMEApplicationJSON); err != nil {
		return err
	}
	var view View
	return field.Decode(c.Request().Body(), in, view)
}

// LenientBody is Body, but a member that in does not have is ignored.
func LenientBody(c *fiber.Ctx, in any) error {
	if err := checkContentType(c, fiber.MIMEApplicationJSON); err != nil {
		return err
	}
	return field.DecodeKnown(c.Request().Body(), in)
}

// OptionalBody is Body for a request that may have no body.
func OptionalBody[View any](c *fiber.Ctx, in any) error {
	if len(bytes.TrimSpace(c.Request().Body())) == 0 {
		return nil
	}
	return Body[View](c, in)
}

// checkContentType returns apierr.ContentType for a body of another content type, and
// apierr.Encoding for a charset other than UTF-8.
func checkContentType(c *fiber.Ctx, want string) error {
	kind, params, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err != nil || kind != want {
		return apierr.ContentType.Because("send the body as Content-Type: %s", want)
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") &&
		!strings.EqualFold(charset, "utf8") {
		return apierr.Encoding.Because("the charset %q is not supported; send UTF-8", charset)
	}
	return nil
}

// ID parses the id in a path. It returns apierr.NotFound for a text that is no id.
func ID(c *fiber.Ctx, name string) (id.ID, error) {
	v, err := id.Parse(c.Params(name))
	if err != nil || v.IsZero() {
		return id.ID{}, apierr.NotFound
	}
	return v, nil
}

// OK answers 200 with a resource and its ETag, or 304 where If-None-Match has that ETag
// (RFC 9110, section 13; docs/interface/limits.md#conditional-get).
func OK(c *fiber.Ctx, view any) error {
	if err := render(c, view); err != nil {
		return err
	}
	return respondOK(c)
}

// respondOK answers 200 with the body that is written already, or 304.
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

// entityTag returns the weak ETag of a representation: a hash of its bytes.
func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// matchesEntityTag compares the entity tags of an If-None-Match weakly (RFC 9110,
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

// Redirect answers 302 without a body. The query of the request is added to the Location.
func Redirect(c *fiber.Ctx, href string) error {
	if query := c.Request().URI().QueryString(); len(query) > 0 {
		href += "?" + string(query)
	}
	c.Set(fiber.HeaderLocation, href)
	c.Status(fiber.StatusFound)
	return nil
}

// respond answers with a status and a resource.
func respond(c *fiber.Ctx, status int, view any) error {
	if err := render(c, view); err != nil {
		return err
	}
	return setJSONHeaders(c, status)
}

// render encodes a view as JSON into the body of the answer.
func render(c *fiber.Ctx, view any) error {
	response := c.Response()
	response.ResetBody()
	encoder := json.NewEncoder(response.BodyWriter())
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(view)
	response.SetBody(bytes.TrimRight(response.Body(), "\n"))
	return err
}

// setJSONHeaders sets the status and the headers of an answer with a JSON body.
func setJSONHeaders(c *fiber.Ctx, status int) error {
	c.Status(status)
	c.Set(fiber.HeaderContentType, MIME)
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return nil
}
