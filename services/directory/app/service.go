package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agent"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/operator"
	"github.com/doorward/doorward/services/directory/provider"
	"github.com/doorward/doorward/services/directory/store"
)

// The parts of the rules have the names by which Service embeds them.
type (
	// Core has the rules of tenants, directories, groups, accounts and logins.
	Core = directory.Service
	// Providers has the rules of social and SAML providers.
	Providers = provider.Service
	// Agents has the rules of directory agents and what they mirror.
	Agents = agent.Service
	// Operators has what the operators of the deployment decide.
	Operators = operator.Service
)

// Service is the directory service with all its rules. Its parts implement the contract together.
type Service struct {
	*Core
	*Providers
	*Agents
	*Operators
}

var _ directoryapi.Contract = (*Service)(nil)

// Sealed are the columns whose values are sealed under the master key.
var Sealed = slices.Concat(directory.Sealed, provider.Sealed, agent.Sealed)

// Rules is what the deployment decides of the rules.
type Rules struct {
	directory.Config
	// Providers fetches the users of logins from the providers of directories.
	Providers    *connect.Client
	AgentArchive string // file with the program of the agent; empty for none
}

// New makes the service of its parts.
func New(s *store.Store, passwords *secure.Passwords, ring *secure.Keyring, base href.Base, now func() time.Time,
	cfg Rules) *Service {
	cfg.Alias = cmp.Or(cfg.Alias, alias.Neutral)
	agents := agent.New(s, ring, now, cfg.Alias, cfg.AgentArchive)
	cfg.CheckByAgent = agents.CheckPassword
	core := directory.New(s, passwords, ring, base, now, cfg.Config)
	return &Service{core, provider.New(core, s, ring, base, cfg.Providers, now), agents, operator.New(s, now)}
}

// Purger is the worker that purges (retention, cleanup) until ctx ends.
func (s *Service) Purger(ctx context.Context) error {
	return purge.Every(directory.PurgeInterval, "purge of deleted and expired rows failed, retrying", s.Purge)(ctx)
}

// Purge deletes what nobody reads any more.
func (s *Service) Purge(ctx context.Context) error {
	return errors.Join(s.EndGraces(ctx), s.Core.Purge(ctx), s.Providers.Purge(ctx), s.Agents.Purge(ctx))
}
