package rest

import (
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/notification"
)

// maxReceiptSize bounds the body of a receipt, in bytes.
const maxReceiptSize = 64 << 10

// recordSMSReceipt is the webhook of the SMS provider, which reports the delivery of a text
// message. The caller is unauthenticated: only the signature proves who sent the receipt.
func recordSMSReceipt(svc *notification.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		tenant, err := rest.ID(c, "tenant")
		if err != nil {
			return err
		}
		delivery, err := rest.ID(c, "delivery")
		if err != nil {
			return err
		}
		receipt, err := readSMSReceipt(c.Get("X-Twilio-Signature"), string(c.Body()))
		if err != nil {
			return err
		}
		if err := svc.RecordSMSReceipt(c.UserContext(), id.Ref{Tenant: tenant, ID: delivery}, receipt); err != nil {
			return err
		}
		return rest.NoContent(c)
	}
}

// readSMSReceipt reads a receipt from the form of a request.
func readSMSReceipt(signature, body string) (notification.SMSReceipt, error) {
	if len(body) > maxReceiptSize {
		return notification.SMSReceipt{}, apierr.TooLarge.Because("the receipt is larger than %d bytes", maxReceiptSize)
	}
	form, err := url.ParseQuery(body)
	if err != nil {
		return notification.SMSReceipt{}, apierr.BadRequest.Because(
			"the body is not a form of name=value pairs joined by &")
	}
	return notification.SMSReceipt{Signature: signature, Form: form}, nil
}
