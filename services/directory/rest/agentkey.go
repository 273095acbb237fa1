package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/agent"
	"github.com/doorward/doorward/services/directory/store"
)

type agentKeyView struct {
	rest.Head
	ID     string    `json:"id"`
	Name   *string   `json:"name"`
	Secret string    `json:"secret,omitempty"` // only in the answer to its creation
	Agent  href.Link `json:"agent"`
}

func (v views) agentKey(k store.AgentKey) agentKeyView {
	return agentKeyView{
		Head: rest.NewHead(v.Base.To("agents", k.AgentID, "keys", k.ID), k.CreatedAt, k.CreatedAt),
		ID:   k.ID, Name: k.Name, Secret: k.Secret.Reveal(), Agent: v.Base.Link("agents", k.AgentID),
	}
}

// createAgentKey creates a key. The answer has its secret, and must not be cached.
func createAgentKey(svc *agent.Service, v views) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		var in agent.NewAgentKey
		if err := rest.OptionalBody[agentKeyView](c, &in); err != nil {
			return err
		}
		k, err := svc.CreateAgentKey(c.UserContext(), at, in)
		if err != nil {
			return err
		}
		view := v.agentKey(k)
		if err := rest.Created(c, view.Self(), view); err != nil {
			return err
		}
		c.Set(fiber.HeaderCacheControl, "no-store")
		return nil
	}
}

func deleteAgentKey(svc *agent.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		return rest.Deleted(c, svc.DeleteAgentKey(c.UserContext(), at, c.Params("key")))
	}
}
