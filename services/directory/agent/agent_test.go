package agent_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/directorytest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func now() time.Time { return time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC) }

// world is the service with a tenant.
type world struct {
	*app.Service
	db     *pg.DB
	tenant id.ID
}

func newWorld(t *testing.T) world {
	t.Helper()
	d := directorytest.New(t, pgtest.Open(t, directorytest.Config), "https://localhost:8443/v1", now)
	return world{d.Rules, d.DB, d.NewTenant().Tenant.ID}
}

// agent makes a directory with an agent.
func (w world) agent(t *testing.T) id.Ref {
	t.Helper()
	return directorytest.NewAgent(t, w.Service, w.tenant)
}
