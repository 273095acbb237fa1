package rest

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
)

// accountAttributes are those that accounts are searched and sorted by
// (docs/interface/search.md#searchable-attributes). The directory service, which
// holds the accounts, knows their columns.
var accountAttributes = list.Spec{
	"username":   {},
	"email":      {},
	"givenName":  {},
	"middleName": {},
	"surname":    {},
	"status": {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified,
		directoryapi.Locked}},
	"createdAt":          {Kind: list.Time},
	"modifiedAt":         {Kind: list.Time},
	"passwordModifiedAt": {Kind: list.Time},

	"fullName":                {NoFind: true},
	"emailVerificationStatus": {Kind: list.Enum, NoFind: true},
}

func (v views) account(a directoryapi.Account) directoryview.AccountView {
	return directoryview.Account(v.base, a)
}

// createAccount makes an account through an application or an organization, or
// finds or makes that of a login at a provider.
func createAccount(create func(context.Context, id.Ref, directoryapi.CreateAccount) (directoryapi.Account, error),
	provide func(context.Context, id.Ref, directoryapi.SocialLogin) (directoryapi.ProvidedAccount, error), v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		through, err := rest.Ref(c)
		if err != nil {
			return err
		}
		in, social, err := directoryview.ReadNewAccount(c)
		if err != nil {
			return err
		}
		if social != nil {
			out, err := provide(c.UserContext(), through, *social)
			if err != nil {
				return err
			}
			return directoryview.Provided(c, v.base, out)
		}
		a, err := create(c.UserContext(), through, in)
		if err != nil {
			return err
		}
		made := v.account(a)
		return rest.Created(c, made.Self(), made)
	}
}
