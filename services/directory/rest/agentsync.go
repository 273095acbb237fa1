package rest

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/agent"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

// configurationView is the configuration of an agent, with the password of its LDAP bind.
type configurationView struct {
	ProviderID string `json:"providerId"`
	store.AgentConfig
	AgentUserDNPassword string `json:"agentUserDnPassword"`
}

func agentConfiguration(svc *agent.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		a, password, err := svc.AgentConfiguration(c.UserContext(), at)
		if err != nil {
			return err
		}
		return noStore(c, configurationView{a.ProviderID, a.Config, password.Reveal()})
	}
}

// noStore answers 200 with what no cache may store (Cache-Control: no-store).
func noStore(c *fiber.Ctx, view any) error {
	if err := c.JSON(view); err != nil {
		return err
	}
	c.Set(fiber.HeaderContentType, rest.MIME)
	c.Set(fiber.HeaderCacheControl, "no-store")
	return nil
}

type refusalView struct {
	ExternalID *string `json:"externalId"`
	Name       string  `json:"name"`
	Kind       string  `json:"kind"`
	Reason     string  `json:"reason"`
}

func (v views) refusal(r agentstore.Refusal) refusalView {
	view := refusalView{ExternalID: &r.ExternalID, Name: r.Name, Kind: r.Kind, Reason: r.Reason}
	switch r.Kind {
	case agentstore.UnnamedAccount:
		view.ExternalID, view.Kind = nil, agentstore.AccountEntry
	case agentstore.UnnamedGroup:
		view.ExternalID, view.Kind = nil, agentstore.GroupEntry
	case agentstore.GroupEntry:
		external, isID := strings.CutPrefix(r.ExternalID, "id:")
		if view.ExternalID = &external; !isID {
			view.ExternalID = nil
		}
	}
	return view
}

// agentDownload answers with the ZIP archive of the agent's program, where the deployment has it.
func agentDownload(svc *agent.Service) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := rest.Ref(c)
		if err != nil {
			return err
		}
		file, err := svc.AgentDownload(c.UserContext(), at)
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, "application/zip")
		c.Set(fiber.HeaderContentDisposition, `attachment; filename="doorward-agent.zip"`)
		return c.Send(file)
	}
}
