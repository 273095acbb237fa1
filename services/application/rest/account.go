package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
)

// accountAttributes are those that accounts are searched and sorted by
// (resolutions, section 7.2). The directory service, which holds the accounts,
// knows their columns.
var accountAttributes = list.Spec{
	"username":           {},
	"email":              {},
	"givenName":          {},
	"middleName":         {},
	"surname":            {},
	"status":             {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified}},
	"createdAt":          {Kind: list.Time},
	"modifiedAt":         {Kind: list.Time},
	"passwordModifiedAt": {Kind: list.Time},
}

func (h *handlers) applicationAccounts(c *fiber.Ctx) error {
	application, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, accountAttributes)
	if err != nil {
		return err
	}
	page, err := h.svc.ListAccounts(c.UserContext(), application, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("applications", application.ID, "accounts"), page, h.accountView)
}

func (h *handlers) createAccount(c *fiber.Ctx) error {
	application, err := ref(c)
	if err != nil {
		return err
	}
	in, err := directoryapi.ReadNewAccount(c)
	if err != nil {
		return err
	}
	in.Tenant, in.Application = application.Tenant, application.ID
	a, err := h.svc.NewAccount(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.To("accounts", a.ID), h.accountView(a))
}
