package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agentconfig"
	"github.com/doorward/doorward/services/directory/store"
)

// agentSilence is the time without a call after which an agent counts as offline
// (docs/interface/connectors.md#agents).
const agentSilence = 2 * time.Minute

// onlineSince returns the time since which an agent must have called to count as online.
func (s *Service) onlineSince() time.Time { return s.now().Add(-agentSilence) }

// Agent returns an agent, or apierr.NotFound.
func (s *Service) Agent(ctx context.Context, at id.Ref) (store.Agent, error) {
	return s.store.Agent(ctx, at.Tenant, at.ID, s.onlineSince())
}

// TenantAgents returns a page of the agents of a tenant.
func (s *Service) TenantAgents(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.Agent], error) {
	if err := directory.CheckTenant(tenant); err != nil {
		return list.Page[store.Agent]{}, err
	}
	parent, err := s.store.Tenant(ctx, tenant.Tenant)
	if err != nil {
		return list.Page[store.Agent]{}, err
	}
	return s.store.ListAgents(ctx, tenant.Tenant, s.onlineSince(),
		query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt))
}

// UpdateAgent changes the members of the configuration that the body names. The status of the
// agent stays. confirmAbsent lets its next complete sync, within an hour, pass the brake
// (absence.go).
func (s *Service) UpdateAgent(ctx context.Context, at id.Ref, in agentconfig.Agent) (store.Agent, error) {
	var a store.Agent
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockAgent(ctx, at.Tenant, at.ID, s.onlineSince()); err != nil {
			return err
		}
		if err := agentconfig.Apply(&a, s.ring, in.Config, false); err != nil {
			return err
		}
		if in.ConfirmAbsent.Present {
			a.AbsenceConfirmedUntil = nil
		}
		if in.ConfirmAbsent.Or(false) {
			until := s.now().Add(confirmationLifetime)
			a.AbsenceConfirmedUntil = &until
		}
		a.ModifiedAt = s.now()
		return tx.UpdateAgent(ctx, a)
	})
	return a, err
}

// AgentConfiguration returns an agent with the password of its LDAP bind (bind DN), for the agent
// itself.
func (s *Service) AgentConfiguration(ctx context.Context, at id.Ref) (store.Agent, secure.Secret, error) {
	a, err := s.Agent(ctx, at)
	if err != nil {
		return a, "", err
	}
	password, err := s.ring.Open(a.PasswordSealed, agentconfig.PasswordPurpose(a.ID))
	return a, password, err
}

// AgentDownload returns the ZIP archive of the agent's program, or apierr.NotFound where the
// deployment has none.
func (s *Service) AgentDownload(ctx context.Context, at id.Ref) ([]byte, error) {
	if _, err := s.Agent(ctx, at); err != nil {
		return nil, err
	}
	if s.archive == "" {
		return nil, apierr.NotFound.Because("this deployment has no archive of the agent; set DOORWARD_AGENT_ARCHIVE")
	}
	archive, err := os.ReadFile(s.archive)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, apierr.NotFound.Because(
			"this deployment has no archive of the agent; its DOORWARD_AGENT_ARCHIVE is no file")
	}
	return archive, err
}

// Ping is the status that an agent reports (heartbeat).
type Ping struct {
	Status  field.Text `json:"status"`
	Message field.Text `json:"message"`
}

// Ping records the status that an agent reports: online, or an error until its next call without
// one. The message of an error goes to the log.
func (s *Service) Ping(ctx context.Context, at id.Ref, in Ping) (store.Agent, error) {
	if !in.Status.Present {
		return store.Agent{}, apierr.Required.Because("status is required: %s or %s", store.Online, store.Failed)
	}
	status, err := field.Enum(in.Status, "status", "", store.Online, store.Failed)
	if err != nil {
		return store.Agent{}, err
	}
	message, err := field.Optional(in.Message, "message", agentconfig.MaxText)
	if err != nil {
		return store.Agent{}, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.SetAgentStatus(ctx, at.Tenant, at.ID, status, s.now()) })
	if err != nil {
		return store.Agent{}, err
	}
	if status == store.Failed && message != nil {
		slog.WarnContext(ctx, "a directory agent reports an error", "agent", at.ID.String(), "message", *message)
	}
	return s.Agent(ctx, at)
}
