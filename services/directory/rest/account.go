package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
)

func (v views) account(a directoryapi.Account) directoryview.AccountView {
	return directoryview.Account(v.base, a)
}

// createAccount reads what the body and the query say of a new account.
func createAccount(svc *directory.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		in, social, err := directoryview.ReadNewAccount(c)
		if err != nil {
			return err
		}
		if social != nil {
			out, err := svc.SocialAccount(c.UserContext(), directoryapi.SocialAccount{Tenant: at.Tenant, Directory: at.ID, Login: *social})
			if err != nil {
				return err
			}
			return directoryview.Provided(c, v.base, out)
		}
		in.Tenant, in.Directory = at.Tenant, at.ID
		a, err := svc.NewAccount(c.UserContext(), in)
		if err != nil {
			return err
		}
		return rest.Created(c, v.base.To("accounts", a.ID), v.account(a))
	}
}

// updateAccount refuses a hash in place of a password, which only a new
// account can have (docs/interface/accounts.md#password-hashes): it would become the password.
func updateAccount(svc *directory.Service, v views) fiber.Handler {
	update := rest.Update(svc.UpdateAccount, v.account)
	return func(c *fiber.Ctx) error {
		if c.Context().QueryArgs().Has("passwordFormat") {
			return apierr.QueryUnsupported.Because("passwordFormat is for new accounts; the password of an account is changed in plain text")
		}
		return update(c)
	}
}

// verify consumes a mailed token. The answer is the link of its account.
func verify(svc *directory.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		a, err := svc.VerifyEmail(c.UserContext(), directoryapi.VerifyEmail{Tenant: rest.Caller(c).Tenant,
			Token: secure.Secret(c.Params("token"))})
		if err != nil {
			return err
		}
		link := href.Link{Href: v.base.To("accounts", a.ID)}
		return rest.Updated(c, link.Href, link)
	}
}
