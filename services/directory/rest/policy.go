package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
)

func (h *handlers) creationPolicy(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	policy, err := h.svc.CreationPolicy(c.UserContext(), in.Tenant, in.ID)
	if err != nil {
		return err
	}
	return rest.OK(c, h.creationPolicyView(policy))
}

func (h *handlers) updateCreationPolicy(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in directory.PolicyChange
	if err := rest.Body[creationPolicyView](c, &in); err != nil {
		return err
	}
	policy, err := h.svc.UpdateCreationPolicy(c.UserContext(), at.Tenant, at.ID, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("accountCreationPolicies", policy.DirectoryID), h.creationPolicyView(policy))
}
