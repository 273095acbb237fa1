package directoryview

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/rest"
)

// ReadNewAccount reads a request that creates an account, by a directory or by
// an application, or finds that of a social login. The caller fills in the tenant
// and the directory.
func ReadNewAccount(c *fiber.Ctx) (directoryapi.CreateAccount, error) {
	var body struct {
		directoryapi.NewAccount
		ProviderData field.Of[providerData] `json:"providerData"`
	}
	if err := rest.Body[AccountView](c, &body); err != nil {
		return directoryapi.CreateAccount{}, err
	}
	in := directoryapi.CreateAccount{Account: body.NewAccount, Workflow: true}
	if body.ProviderData.Given() && !body.ProviderData.Value.isLink {
		login, err := body.ProviderData.Value.login()
		if err != nil {
			return in, err
		}
		in.Social = login
	}
	switch workflow := c.Query("registrationWorkflowEnabled"); {
	case workflow == "" || strings.EqualFold(workflow, "true"):
	case strings.EqualFold(workflow, "false"):
		in.Workflow = false
	default:
		return in, apierr.ParameterInvalid.Because("registrationWorkflowEnabled is true or false, not %q", workflow)
	}
	if c.Context().QueryArgs().Has("passwordFormat") {
		if format := c.Query("passwordFormat"); !strings.EqualFold(format, "mcf") {
			return in, apierr.QueryUnsupported.Because("passwordFormat is mcf or absent, not %q", format)
		}
		in.HashedPassword = true
	}
	return in, nil
}
