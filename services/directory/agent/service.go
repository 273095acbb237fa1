// Package agent has the rules of LDAP and Active Directory: the agent that runs beside a directory server,
// its keys, the syncs that it sends, and the passwords that it checks. What an account and a group are is
// decided in services/directory, on which it builds. The program itself is services/agent.
package agent

import (
	"context"
	"errors"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/agentconfig"
	"github.com/doorward/doorward/services/directory/store"
)

// Service has the rules of agents.
type Service struct {
	store        *store.Store
	agents       agentstore.Store
	ring         *secure.Keyring
	now          func() time.Time
	alias        alias.Alias
	archive      string
	pending      *pendingChecks // check.go
	syncReceived chan struct{}  // wakes SyncWorker
}

// New makes the service. archive is the file with the program of the agent; empty for none.
func New(s *store.Store, ring *secure.Keyring, now func() time.Time, name alias.Alias, archive string) *Service {
	svc := &Service{store: s, agents: agentstore.New(s.DB()), ring: ring, now: now, alias: name, archive: archive,
		pending: newPendingChecks(), syncReceived: make(chan struct{}, 1)}
	syncsHeldTotal.Add(context.Background(), 0) // so that an alert sees the first increment
	s.DB().OnNotify(agentstore.ChecksChannel, svc.pending.notifyCheck)
	s.DB().OnNotify(agentstore.ResultsChannel, svc.pending.notifyResult)
	return svc
}

// Sealed are the columns of agents whose values are sealed under the master key.
var Sealed = []secure.SealedColumn[id.ID]{
	{Table: "agents", Key: "id", Column: "password_sealed", Purpose: agentconfig.PasswordPurpose},
}

// Purge deletes the accounts of mirrors that have been absent for long (absence.go), and password checks
// that their logins did not delete.
func (s *Service) Purge(ctx context.Context) error {
	return errors.Join(s.purgeAbsent(ctx), s.store.Purge(ctx, agentstore.AgingChecks, s.now().Add(-maxCheckAge)))
}
