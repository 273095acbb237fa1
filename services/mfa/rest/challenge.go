package rest

import (
	"bytes"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/mfa/store"
)

type challengeView struct {
	rest.Head
	Status  string    `json:"status"`
	Message *string   `json:"message,omitempty"` // of an SMS factor
	Account href.Link `json:"account"`
	Factor  href.Link `json:"factor"`
}

func (v views) challenge(c store.Challenge) challengeView {
	view := challengeView{
		Head:   rest.NewHead(v.base.To("challenges", c.ID), c.CreatedAt, c.ModifiedAt),
		Status: c.Status, Message: c.Message, Account: v.base.Link("accounts", c.AccountID),
		Factor: v.base.Link("factors", c.FactorID),
	}
	if c.HasExpired {
		view.Status = store.Expired
	}
	return view
}

// emptyBody replaces an empty body by an empty object
// (docs/interface/multi-factor.md#challenges).
func emptyBody(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if len(bytes.TrimSpace(c.Body())) == 0 {
			c.Request().Header.SetContentType(fiber.MIMEApplicationJSON)
			c.Request().SetBodyString("{}")
		}
		return next(c)
	}
}
