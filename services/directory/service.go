// Package directory keeps tenants, directories and accounts, and decides who
// may log in. Its rules are methods of Service, one file per noun or workflow;
// its SQL is under store, its HTTP under rest, and its wiring under app.
package directory

import (
	"cmp"
	"context"
	"net/mail"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/connect"
	"github.com/doorward/doorward/services/directory/store"
)

// Service is the directory service.
type Service struct {
	store        *store.Store
	passwords    *secure.Passwords
	ring         *secure.Keyring
	base         href.Base
	providers    *connect.Client
	now          func() time.Time
	cfg          Config
	keyPairs     *cache.Cache[id.ID, saml.KeyPair] // of SAML directories, by certificate id
	checks       *pendingChecks                    // password checks by LDAP agents, agentcheck.go
	syncReceived chan struct{}                     // wakes SyncWorker
}

// Config is what the deployment decides.
type Config struct {
	VerificationTTL time.Duration // lifetime of an email verification token
	Sender          mail.Address  // sender of mails, unless a template names another
	Alias           alias.Alias   // empty means alias.Neutral
	// Providers fetches the users of logins from the providers of directories.
	Providers    *connect.Client
	AgentArchive string // file with the program of the agent; empty for none
}

// New makes the service.
func New(s *store.Store, passwords *secure.Passwords, ring *secure.Keyring, base href.Base, now func() time.Time, cfg Config) *Service {
	svc := &Service{store: s, passwords: passwords, ring: ring, base: base, now: now, cfg: cfg,
		checks: newPendingChecks(), providers: cfg.Providers, syncReceived: make(chan struct{}, 1)}
	if svc.providers == nil {
		svc.providers = connect.New(outbound.Guard{}, nil, now)
	}
	svc.keyPairs = cache.New(cache.Config[id.ID, saml.KeyPair]{
		Name: "directory.keyPairs", Size: maxKeyPairs, MaxAge: keyPairMaxAge, Now: now,
	})
	syncsHeldTotal.Add(context.Background(), 0) // so that an alert sees the first increment
	s.OnNotify(store.ChecksChannel, svc.checks.notifyCheck)
	s.OnNotify(store.ResultsChannel, svc.checks.notifyResult)
	return svc
}

var _ directoryapi.Contract = (*Service)(nil)

// CustomData is the customData of tenants, directories, groups and accounts, which are resources
// of their own (docs/interface/custom-data.md#owners).
func (s *Service) CustomData() store.CustomData { return s.store.CustomData(s.now) }

// Alias is the word that names the product on the wire.
func (s *Service) Alias() alias.Alias { return cmp.Or(s.cfg.Alias, alias.Neutral) }
