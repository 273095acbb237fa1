package directoryview

import (
	"context"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

// CreateAccount creates an account in the resource of the path and answers 201. Where the body
// has a social login (providerData), it answers with the account of the provider's user:
// 201 for a new account, 200 otherwise.
func (v Views) CreateAccount(
	create func(context.Context, id.Ref, directoryapi.CreateAccount) (directoryapi.Account, error),
	provide func(context.Context, id.Ref, directoryapi.SocialLogin) (directoryapi.ProviderAccountResult, error),
) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		in, social, err := v.readNewAccount(c, at)
		if err != nil {
			return err
		}
		made := directoryapi.ProviderAccountResult{IsNew: true}
		if social != nil {
			made, err = provide(c.UserContext(), at, *social)
		} else {
			made.Account, err = create(c.UserContext(), at, in)
		}
		if err != nil {
			return err
		}
		view := v.Account(made.Account)
		if made.IsNew {
			return rest.Created(c, view.Self(), view)
		}
		c.Set(fiber.HeaderLocation, view.Self())
		return rest.OK(c, view)
	}
}

// readNewAccount parses the body and the query that create an account. Unknown members of the body are
// ignored, because some integrations post all fields of their form. social is the social
// login, if the body has one; else it is nil.
func (v Views) readNewAccount(
	c *fiber.Ctx, at id.Ref,
) (in directoryapi.CreateAccount, social *directoryapi.SocialLogin, err error) {
	var body struct {
		directoryapi.NewAccount
		ProviderData field.Nullable[providerData] `json:"providerData"`
		AccountStore field.Link                   `json:"accountStore"`
	}
	if err := rest.LenientBody(c, &body); err != nil {
		return in, nil, err
	}
	if body.AccountStore.Given() {
		if named, ok := v.Base.Parse(body.AccountStore.Value.Href); !ok || named.ID != at.ID {
			return in, nil, apierr.Reference.Because("accountStore can only name the resource of the path, not %q",
				body.AccountStore.Value.Href)
		}
	}
	in = directoryapi.CreateAccount{Account: body.NewAccount}
	if body.ProviderData.Given() && !body.ProviderData.Value.isLink {
		if social, err = body.ProviderData.Value.login(); err != nil {
			return in, nil, err
		}
		social.CustomData = body.CustomData
	}
	if err := readOptions(c, &in); err != nil {
		return in, nil, err
	}
	return in, social, nil
}

// readOptions reads the options of the query. Their names are read in any letter case, and an empty one
// is apierr.ParameterEmpty, because an option that is overlooked sends mails to all whom an import
// brings.
func readOptions(c *fiber.Ctx, in *directoryapi.CreateAccount) (err error) {
	const workflow, format = "registrationWorkflowEnabled", "passwordFormat"
	for _, option := range []string{workflow, format} {
		values := rest.Option(c, option)
		switch {
		case slices.ContainsFunc(values, func(value string) bool { return value != values[0] }):
			return apierr.ParameterRepeated.Because("the query parameter %q has several values; send one", option)
		case option == workflow && len(values) > 0 && values[0] == "":
			return apierr.ParameterEmpty.Because("the query parameter %q needs a value, true or false", option)
		}
	}
	if in.Workflow, err = rest.Flag(c, workflow, true); err != nil {
		return err
	}
	if formats := rest.Option(c, format); len(formats) > 0 {
		if !strings.EqualFold(formats[0], "mcf") {
			return apierr.QueryUnsupported.Because("passwordFormat is mcf or absent, not %q", formats[0]).
				Saying("The imported password designates an algorithm that is an unsupported value.")
		}
		in.HashedPassword = true
	}
	return nil
}
