package rest

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/notification"
)

// maxReceipt bounds the body of a receipt.
const maxReceipt = 64 << 10

// receive is the webhook of the provider of text messages, which reports a delivery. The
// caller is unauthenticated: only the signature proves where a receipt comes from.
func receive(svc *notification.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, err := rest.ID(c, "tenant")
		if err != nil {
			return err
		}
		delivery, err := rest.ID(c, "delivery")
		if err != nil {
			return err
		}
		receipt, err := parseReceipt(c.Get("X-Twilio-Signature"), string(c.Body()))
		if err != nil {
			return err
		}
		if err := svc.Receive(c.UserContext(), id.Ref{Tenant: tenant, ID: delivery}, receipt); err != nil {
			return err
		}
		return rest.NoContent(c)
	}
}

// parseReceipt reads the form of a receipt.
func parseReceipt(signature, body string) (notification.Receipt, error) {
	if len(body) > maxReceipt {
		return notification.Receipt{}, apierr.TooLarge.Because("the receipt is larger than %d bytes", maxReceipt)
	}
	form, err := url.ParseQuery(body)
	if err != nil {
		return notification.Receipt{}, apierr.BadRequest.Because("the body is not a form of name=value pairs joined by &")
	}
	return notification.Receipt{Signature: signature, Form: form}, nil
}
