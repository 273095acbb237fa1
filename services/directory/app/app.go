// Package app wires the directory service: its configuration, database, workers, and HTTP
// application.
package app

import (
	"context"
	"fmt"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/backuprecord"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
	"github.com/doorward/doorward/pkg/service"
	"github.com/doorward/doorward/pkg/tenantpurge"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/directory"
	directoryrest "github.com/doorward/doorward/services/directory/rest"
	"github.com/doorward/doorward/services/directory/store"
)

// Peers are the services that this one calls: none.
type Peers struct{}

// Dial returns no clients: this service calls no other.
func (Config) Dial(*deployment.Peers) Peers { return Peers{} }

// Open wires the service as a part of a process.
func Open(ctx context.Context, p *run.Process, cfg Config, _ Peers) (*service.App[*Service], error) {
	common, err := cfg.Validate()
	if err != nil {
		return nil, err
	}
	cost, err := pwhash.NewCost(cfg.Argon2Memory, cfg.Argon2Time, cfg.Argon2Threads)
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_ARGON2_MEMORY, DOORWARD_ARGON2_TIME and DOORWARD_ARGON2_THREADS: %w", err)
	}
	sender, err := cfg.Sender.Open(common)
	if err != nil {
		return nil, err
	}
	s, err := service.Open(ctx, p, cfg.Config, store.Config(cfg.Database), Sealed)
	if err != nil {
		return nil, err
	}
	providers, err := cfg.providers(s.Now)
	if err != nil {
		return nil, err
	}
	passwords := secure.NewPasswords(cost, cfg.HashWorkers, cfg.HashQueue)
	passwords.PrepareProcess()
	p.OnClose("password hashes", passwords.Close)
	data := store.New(s.DB, s.Now)
	svc := New(data, passwords, s.Keyring, s.Base, s.Now, Rules{
		Config:    directory.Config{VerificationTTL: cfg.VerificationTTL, Sender: sender, Alias: s.Alias},
		Providers: providers, AgentArchive: cfg.AgentArchive,
	})
	s.Relay(data.Outbox(), cfg.Events)
	s.Go("purge", svc.Purger)
	s.Go("purge of deleted tenants", tenantpurge.Worker(s.DB, svc.DeletedTenants))
	s.Go("certificates", svc.WatchSAMLCertificates)
	s.Go("metadata", svc.RefreshSAMLMetadata)
	s.Go("syncs", svc.SyncWorker)
	s.Go("cache invalidation", s.DB.Listen)
	s.Go("age of the backup", backuprecord.Metric(s.DB))
	s.Go("resealer", reseal.Worker(s.DB, s.Keyring, Sealed...))

	directoryapi.Serve(rest.Contract(s.HTTP), svc)
	sizeapi.Serve(rest.Contract(s.HTTP), tenantsize.New(s.DB, s.Now))
	directoryrest.Mount(s.HTTP, svc.Core, svc.Providers, svc.Agents, s.Base)
	return &service.App[*Service]{API: svc, HTTP: s.HTTP}, nil
}
