package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
)

// resetView is the representation of a password reset token
// (docs/interface/accounts.md#password-reset).
type resetView struct {
	Href    string    `json:"href"`
	Email   string    `json:"email"`
	Account href.Link `json:"account"`
}

func (v views) reset(application id.ID, r directoryapi.PasswordReset) resetView {
	return resetView{
		Href:  v.Base.To("applications", application, "passwordResetTokens", r.Token.Reveal()),
		Email: r.Account.Email, Account: v.Base.Link("accounts", r.Account.ID),
	}
}

// createPasswordReset answers 200, not 201 (docs/interface/accounts.md#password-reset).
func createPasswordReset(svc *application.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[application.NewPasswordReset, resetView](c)
		if err != nil {
			return err
		}
		made, err := svc.CreatePasswordReset(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		view := v.reset(at.ID, made)
		return rest.Updated(c, view.Href, view)
	}
}

// getPasswordReset returns the password reset of a token, which stays valid.
func getPasswordReset(svc *application.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		found, err := svc.PasswordReset(c.UserContext(), at, secure.Secret(c.Params("token")))
		if err != nil {
			return err
		}
		return rest.OK(c, v.reset(at.ID, found))
	}
}

// consumePasswordReset sets the new password by a token, which is valid once.
func consumePasswordReset(svc *application.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[application.NewPassword, resetView](c)
		if err != nil {
			return err
		}
		used, err := svc.ConsumePasswordReset(c.UserContext(), at, secure.Secret(c.Params("token")), in)
		if err != nil {
			return err
		}
		view := v.reset(at.ID, used)
		return rest.Updated(c, view.Href, view)
	}
}
