package directory_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/reseal"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/store"
)

// TestAMasterKeyCanBeReplacedAndThenDropped covers every sealed column: none
// keeps a value of the former key.
func TestAMasterKeyCanBeReplacedAndThenDropped(t *testing.T) {
	t.Parallel()
	db := pgtest.Open(t, store.Config)
	first, next := secure.NewMasterKey("k1"), secure.NewMasterKey("k2")
	under := func(master secure.Secret) *app.Service {
		ring, err := secure.ParseKeyring(master)
		if err != nil {
			t.Fatal(err)
		}
		return newService(store.New(db, now), ring, cheap)
	}
	w := world{Service: under(first), db: db, tenant: id.New(now()), directory: id.New(now())}
	w.fill(t, directory.CreationPolicyChange{VerificationEmailStatus: field.Some("ENABLED")})
	reset, err := w.RequestReset(t.Context(), directoryapi.RequestReset{
		Tenant: w.tenant, Stores: []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}},
		Login: w.account.Email,
	})
	if err != nil {
		t.Fatal(err)
	}

	both, err := secure.ParseKeyring(next + "," + first)
	if err != nil {
		t.Fatal(err)
	}
	stop := worktest.Start(t, reseal.Worker(db, both, app.Sealed...))
	works := func() bool {
		later := under(next)
		a, err := later.Account(t.Context(), directoryapi.Ref{Tenant: w.tenant, ID: w.account.ID})
		if err != nil || a.VerificationToken != w.account.VerificationToken {
			return false
		}
		_, err = later.Reset(t.Context(), directoryapi.ResetToken{Tenant: w.tenant, Token: reset.Token})
		return err == nil
	}
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for !works() {
		select {
		case <-deadline.C:
			t.Fatal("the secrets were not sealed again")
		default:
		}
	}
	stop()
	columns, err := pg.Values[string](t.Context(),
		db, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'directory' AND column_name LIKE '%\_sealed' AND table_name IN (SELECT tablename FROM pg_tables)`)
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) != len(app.Sealed) {
		t.Errorf("there are the sealed columns %v; %d of them are sealed again", columns, len(app.Sealed))
	}
}
