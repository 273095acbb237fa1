package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/oauth"
)

func (h *handlers) policy(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	policy, err := h.svc.Policy(c.UserContext(), tenant, application)
	if err != nil {
		return err
	}
	return rest.OK(c, h.policyView(policy))
}

func (h *handlers) updatePolicy(c *fiber.Ctx) error {
	tenant, application, err := at(c)
	if err != nil {
		return err
	}
	var in oauth.PolicyChange
	if err := rest.Body[policyView](c, &in); err != nil {
		return err
	}
	policy, err := h.svc.UpdatePolicy(c.UserContext(), tenant, application, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("oAuthPolicies", application), h.policyView(policy))
}
