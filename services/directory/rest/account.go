package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
)

// updateAccount handles the update of an account. It refuses passwordFormat, which only a new
// account can have (docs/interface/accounts.md#password-hashes): the hash would be stored as the
// password itself.
func updateAccount(svc *directory.Service, v views) fiber.Handler {
	update := rest.Update(svc.UpdateAccount, v.Account)
	return func(c *fiber.Ctx) error {
		if c.Context().QueryArgs().Has("passwordFormat") {
			return apierr.QueryUnsupported.Because(
				"passwordFormat is for new accounts; the password of an account is changed in plain text")
		}
		return update(c)
	}
}

// verifyEmail consumes a mailed token and answers with the link of its account.
func verifyEmail(svc *directory.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		a, err := svc.VerifyEmail(c.UserContext(), directoryapi.VerifyEmail{Tenant: rest.Caller(c).Tenant,
			Token: secure.Secret(c.Params("token"))})
		if err != nil {
			return err
		}
		link := href.Link{Href: v.Base.To("accounts", a.ID)}
		return rest.Updated(c, link.Href, link)
	}
}
