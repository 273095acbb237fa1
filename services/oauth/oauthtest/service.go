package oauthtest

import (
	"context"
	"slices"
	"testing"

	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/store"
)

// Configs are the configurations of the databases of NewService, for pgtest.OpenAll.
var Configs = slices.Clip(append(peerConfigs, store.Config))

// Service is the OAuth service as its peers call it, through an Injector.
type Service struct {
	oauthapi.Contract
	fault.Injector

	Rules *oauth.Service // the service itself

	t  testing.TB
	db *pg.DB
}

// NewService starts the service on a database, beside the services of a world.
func NewService(t testing.TB, db *pg.DB, w *World, base href.Base) *Service {
	t.Helper()
	ring, err := secure.ParseKeyring(secure.NewMasterKey("k1"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{t: t, db: db}
	s.Rules = oauth.New(store.New(db, w.clock.Now), w.Peers(), ring, w.clock.Now, oauth.Config{Base: base, Alias: Alias, Suffix: Suffix})
	s.Contract = fault.Inject(&s.Injector, "oauth", oauthapi.Client, oauthapi.Serve, oauthapi.Contract(s.Rules))
	return s
}

// Keys returns the API keys of all tenants, by their ids.
func (s *Service) Keys() map[string]store.APIKey {
	s.t.Helper()
	rows, err := pg.All[struct {
		TenantID id.ID
		ID       string
	}](context.Background(), s.db, `SELECT tenant_id, id FROM api_keys`)
	if err != nil {
		s.t.Fatal(err)
	}
	keys := map[string]store.APIKey{}
	for _, row := range rows {
		if keys[row.ID], err = s.Rules.APIKey(context.Background(), row.TenantID, row.ID); err != nil {
			s.t.Fatal(err)
		}
	}
	return keys
}
