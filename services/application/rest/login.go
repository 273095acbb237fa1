package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
)

// loginView is the answer to a login attempt.
type loginView struct {
	Account href.Link `json:"account"`
}

// attemptLogin answers with the link of the account that logged in, or, where
// that is asked for, with what the attempt would do.
func attemptLogin(svc *application.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := rest.RefAndBody[application.LoginAttempt, struct{}](c)
		if err != nil {
			return err
		}
		explain, err := rest.Flag(c, "explain", false)
		if err != nil {
			return err
		}
		if explain {
			e, err := svc.Explain(c.UserContext(), at, in)
			if err != nil {
				return err
			}
			return rest.OK(c, v.explanation(e))
		}
		a, err := svc.Attempt(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		link := v.Base.Link("accounts", a.ID)
		return rest.Updated(c, link.Href, loginView{Account: link})
	}
}
