package directoryview

import (
	"bytes"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
)

// ReadNewAccount reads a request that creates an account, by a directory or by
// an application. social is the login at a provider in its place, if the body has
// one. The caller fills in the tenant and the directory.
func ReadNewAccount(c *fiber.Ctx) (in directoryapi.CreateAccount, social *directoryapi.SocialLogin, err error) {
	var body struct {
		directoryapi.NewAccount
		ProviderData field.Of[providerData] `json:"providerData"`
	}
	if err := rest.Body[AccountView](c, &body); err != nil {
		return in, nil, err
	}
	in = directoryapi.CreateAccount{Account: body.NewAccount, Workflow: true}
	if body.ProviderData.Given() && !body.ProviderData.Value.isLink {
		if social, err = body.ProviderData.Value.login(); err != nil {
			return in, nil, err
		}
	}
	if err := given(c, "registrationWorkflowEnabled", "passwordFormat"); err != nil {
		return in, nil, err
	}
	switch workflow := c.Query("registrationWorkflowEnabled"); {
	case workflow == "" || strings.EqualFold(workflow, "true"):
	case strings.EqualFold(workflow, "false"):
		in.Workflow = false
	default:
		return in, nil, apierr.ParameterInvalid.Because("registrationWorkflowEnabled is true or false, not %q", workflow)
	}
	if c.Context().QueryArgs().Has("passwordFormat") {
		if format := c.Query("passwordFormat"); !strings.EqualFold(format, "mcf") {
			return in, nil, apierr.QueryUnsupported.Because("passwordFormat is mcf or absent, not %q", format)
		}
		in.HashedPassword = true
	}
	return in, social, nil
}

// given refuses the options of a query that have several values. One that is repeated
// with the same value counts once (docs/interface/search.md#filters).
func given(c *fiber.Ctx, options ...string) error {
	for _, option := range options {
		values := c.Context().QueryArgs().PeekMulti(option)
		if slices.ContainsFunc(values, func(value []byte) bool { return !bytes.Equal(value, values[0]) }) {
			return apierr.ParameterRepeated.Because("the query parameter %q has several values; send one", option)
		}
	}
	return nil
}

// Provided answers a login at a provider with its account: 201 for a new one, 200
// otherwise.
func Provided(c *fiber.Ctx, base href.Base, out directoryapi.ProvidedAccount) error {
	view := Account(base, out.Account)
	if out.IsNew {
		return rest.Created(c, view.Self(), view)
	}
	c.Set(fiber.HeaderLocation, view.Self())
	return rest.OK(c, view)
}
