package rest

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/id"
)

const (
	mimeSAMLMetadata = "application/samlmetadata+xml"
	mimeCertificate  = "application/pkix-cert"
)

// SAMLMetadata answers 200 with the SAML metadata of the path: in XML, which describe
// returns, unless the client prefers JSON
// (docs/interface/directories.md#service-provider-metadata).
func SAMLMetadata[T, View any](
	read func(context.Context, id.Ref) (T, error), view func(T) View, describe func(T) ([]byte, error),
) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := Ref(c)
		if err != nil {
			return err
		}
		resource, err := read(c.UserContext(), at)
		if err != nil {
			return err
		}
		c.Vary(fiber.HeaderAccept)
		kind := negotiate(c, mimeSAMLMetadata, fiber.MIMEApplicationXML, fiber.MIMEApplicationJSON)
		switch kind {
		case fiber.MIMEApplicationJSON:
			return OK(c, view(resource))
		case "":
			kind = mimeSAMLMetadata
		}
		body, err := describe(resource)
		if err != nil {
			return err
		}
		return respondDocument(c, kind, body)
	}
}

// Certificate answers 200 with the certificate of the path, in PEM.
func Certificate(read func(context.Context, id.Ref) (string, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := Ref(c)
		if err != nil {
			return err
		}
		certificate, err := read(c.UserContext(), at)
		if err != nil {
			return err
		}
		return respondDocument(c, mimeCertificate, []byte(certificate))
	}
}

// respondDocument answers 200 with a body of another content type than JSON.
func respondDocument(c *fiber.Ctx, kind string, body []byte) error {
	c.Set(fiber.HeaderContentType, kind)
	c.Set(fiber.HeaderCacheControl, "no-cache")
	return c.Send(body)
}
