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

// attemptLogin is the handler of login attempts. It answers with the link of the account that has
// logged in or, with explain=true, with what the attempt would do.
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
			e, err := svc.ExplainLogin(c.UserContext(), at, in)
			if err != nil {
				return err
			}
			return rest.OK(c, v.explanation(e))
		}
		a, err := svc.AttemptLogin(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		link := v.Base.Link("accounts", a.ID)
		return rest.Updated(c, link.Href, loginView{Account: link})
	}
}
