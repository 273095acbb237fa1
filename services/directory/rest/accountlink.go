package rest

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type accountLinkView struct {
	rest.Head
	LeftAccount  href.Link `json:"leftAccount"`
	RightAccount href.Link `json:"rightAccount"`
}

func (v views) accountLink(l store.AccountLink) accountLinkView {
	return accountLinkView{
		Head:        rest.NewHead(v.Base.To("accountLinks", l.ID), l.CreatedAt, l.CreatedAt),
		LeftAccount: v.Base.Link("accounts", l.LeftAccountID), RightAccount: v.Base.Link("accounts", l.RightAccountID),
	}
}

// malformedLinkErrors is a middleware: for a missing or malformed body it answers with the error
// code of account links (docs/interface/account-linking.md#links).
func malformedLinkErrors(next fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if len(c.Body()) == 0 {
			return apierr.LinkMalformed.Because("leftAccount and rightAccount are required")
		}
		err := next(c)
		if errors.Is(err, apierr.Format) || errors.Is(err, apierr.WrongType) {
			return apierr.LinkMalformed.Because("%s", apierr.From(err).Reason)
		}
		return err
	}
}
