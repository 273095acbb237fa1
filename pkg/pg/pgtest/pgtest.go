// Package pgtest makes a database for each test on a real PostgreSQL server, which it starts itself (no
// testcontainers, no Docker).
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
//	db := pgtest.Open(t, store.Config)
//
// A test binary starts one private server when its first test asks for a
// database, runs the migrations once in a template database, and copies the template for every test.
// If TEST_DATABASE_URL is set, that server is used instead; its role must be allowed to create
// databases. server.go starts and stops the server (package private).
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// stepTimeout bounds every single step, so that a test fails instead of hanging.
const stepTimeout = time.Minute

// Migrate migrates the empty database at the url to the schema of the test. It must close its
// connections before it returns.
type Migrate func(ctx context.Context, url string) error

// New returns the address of a database for this test only, which is dropped when the test ends. The
// migrations run once for all tests that pass the same function, so that migrate must not be a
// closure with values of the test. With nil the database is empty.
func New(t testing.TB, migrate Migrate) string {
	t.Helper()
	return create(t, fmt.Sprint(reflect.ValueOf(migrate).Pointer()), migrate)
}

// create copies the template database of a key; migrate makes the template.
func create(t testing.TB, key string, migrate Migrate) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	s, err := ensureServer(ctx)
	if err != nil {
		t.Fatalf("start PostgreSQL for tests: %v", err)
	}
	template, err := s.template(ctx, key, migrate)
	if err != nil {
		t.Fatalf("migrate the template database: %v", err)
	}
	name := newName()
	if err := s.exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+template+s.strategy); err != nil {
		t.Fatalf("create a database for the test: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		defer cancel()
		if err := s.exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	return s.url(name)
}

// Config is the configuration of the database of a service, as its store has it.
type Config = func(url secure.Secret) pg.Config

// Open opens a database of New with the migrations of a configuration. The migrations run once for
// all tests that pass the same function, so that config must not be a closure.
func Open(t testing.TB, config Config) *pg.DB {
	t.Helper()
	return OpenAll(t, config)[0]
}

// OpenAll opens one database of New with the schemas of several services, as standalone has them, and
// returns the pool of each.
func OpenAll(t testing.TB, configs ...Config) (dbs []*pg.DB) {
	t.Helper()
	var key strings.Builder
	for _, config := range configs {
		fmt.Fprintln(&key, reflect.ValueOf(config).Pointer())
	}
	url := create(t, key.String(), func(ctx context.Context, url string) error {
		for _, config := range configs {
			db, err := pg.Open(ctx, config(secure.Secret(url)))
			if err != nil {
				return err
			}
			db.Close()
		}
		return nil
	})
	dbs = make([]*pg.DB, len(configs))
	var group errgroup.Group // most of the time goes into starting connections
	for i, config := range configs {
		group.Go(func() (err error) {
			dbs[i], err = open(t, config(secure.Secret(url)))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return dbs
}

// open connects to a database that has the tables of the configuration.
func open(t testing.TB, config pg.Config) (*pg.DB, error) {
	tenants := &tenantTracer{known: map[string]bool{}}
	config.Tracer = tenants
	db, err := pg.OpenWithoutMigrating(t.Context(), config)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		db.Close()
		tenants.report(t)
	})
	tables, err := pg.Values[string](t.Context(), db,
		`SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attname = 'tenant_id'`)
	tenants.setTables(tables)
	return db, err
}

// URL returns the address of a database of Open.
func URL(db *pg.DB) string { return db.Config().ConnString() }

// CutConnections closes all connections to the database of the test, also in the middle of a statement,
// as a crash of PostgreSQL would. New connections are accepted.
func CutConnections(t testing.TB, url string) {
	t.Helper()
	administer(t, func(ctx context.Context, s *server) error { return s.terminateConnections(ctx, nameIn(t, url)) })
}

// Outage makes the database of the test unreachable and closes its connections, until end is called.
// Other tests are not affected.
func Outage(t testing.TB, url string) (end func()) {
	t.Helper()
	name := nameIn(t, url)
	administer(t, func(ctx context.Context, s *server) error {
		if err := s.exec(ctx, `ALTER DATABASE `+name+` ALLOW_CONNECTIONS false`); err != nil {
			return err
		}
		return s.terminateConnections(ctx, name)
	})
	return func() {
		t.Helper()
		administer(t, func(ctx context.Context, s *server) error {
			return s.exec(ctx, `ALTER DATABASE `+name+` ALLOW_CONNECTIONS true`)
		})
	}
}

func administer(t testing.TB, do func(context.Context, *server) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	s, err := ensureServer(ctx)
	if err == nil {
		err = do(ctx, s)
	}
	if err != nil {
		t.Fatalf("administer the test's database: %v", err)
	}
}

func nameIn(t testing.TB, url string) string {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(config.Database, prefix) {
		t.Fatalf("%s is not a database of this package", config.Database)
	}
	return config.Database
}

// prefix is the prefix of the databases of this package, which it may drop. The rest of a name is
// random, because test binaries share the server of TEST_DATABASE_URL.
const prefix = "doorward_test_"

func newName() string { return prefix + strings.ToLower(rand.Text()[:16]) }

// template returns the name of the template database of a key, and makes it at the first call.
func (s *server) template(ctx context.Context, key string, migrate Migrate) (string, error) {
	if migrate == nil {
		return "template1", nil
	}
	s.templating.Lock()
	defer s.templating.Unlock()
	if name, made := s.templates[key]; made {
		return name, nil
	}
	name := newName()
	if err := s.exec(ctx, `CREATE DATABASE `+name); err != nil {
		return "", err
	}
	if err := migrate(ctx, s.url(name)); err != nil {
		return "", err
	}
	// A template can be copied only while it has no connections.
	if err := s.exec(ctx, `ALTER DATABASE `+name+` ALLOW_CONNECTIONS false`); err != nil {
		return "", err
	}
	if err := s.terminateConnections(ctx, name); err != nil {
		return "", fmt.Errorf("close the template: %w", err)
	}
	s.templates[key] = name
	return name, nil
}
