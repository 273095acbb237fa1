package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// baselineCommand is the first argument that makes this program the baseline.
const baselineCommand = "baseline"

// The baseline is as close to nothing as a server can be that does the work of
// one part of the product. It is a process of its own, with a PostgreSQL of its
// own, so that it shares the processors with the generator in the same way as
// the product does.
type baseline struct {
	rows   int
	db     *pgxpool.Pool
	hashes *secure.Passwords
	stored string // the hash of password

	tenant, directory id.ID // of the rows that are inserted
}

// baselineAddress is what the baseline tells its owner once it serves.
type baselineAddress struct {
	Address     string `json:"address"`
	Certificate []byte `json:"certificate"` // DER, to trust
	Postgres    string `json:"postgres"`    // version
}

const baselinePassword = secure.Secret("Changeme1!")

// poolSize is that of the product's services.
const poolSize = 8

// serveBaseline serves until its standard input ends, as it does when its owner
// dies, and leaves nothing behind but the folder, which is the owner's.
func serveBaseline(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	var dir string
	b := baseline{tenant: id.New(time.Now()), directory: id.New(time.Now()), hashes: secure.NewPasswords(pwhash.DefaultCost, runtime.GOMAXPROCS(0), 1)}
	flags := flag.NewFlagSet(baselineCommand, flag.ContinueOnError)
	flags.StringVar(&dir, "dir", "", "folder of the database")
	flags.IntVar(&b.rows, "rows", 1, "rows of the table")
	if err := flags.Parse(args); err != nil {
		return err
	}
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: os.Getenv("DOORWARD_POSTGRES_BIN"), Durable: true})
	if err != nil {
		return fmt.Errorf("start the baseline's PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	if err := b.open(ctx, server.URL(private.Database)); err != nil {
		return err
	}
	defer b.db.Close()
	certificate, err := makeCertificate()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	hello := baselineAddress{Address: listener.Addr().String(), Certificate: certificate.Certificate[0]}
	if err := b.db.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&hello.Postgres); err != nil {
		return fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	if err := json.NewEncoder(out).Encode(hello); err != nil {
		return fmt.Errorf("tell the address: %w", err)
	}
	app := b.app()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Listener(tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}))
	}()
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // nothing is ever sent
		close(orphaned)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-orphaned:
	}
	return app.ShutdownWithTimeout(5 * time.Second)
}

// open makes a table like one of accounts, which it fills, and empty ones to
// insert into.
func (b *baseline) open(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("open the baseline's database: %w", err)
	}
	config.MaxConns = poolSize
	config.AfterConnect = pg.RegisterID
	if b.db, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open the baseline's database: %w", err)
	}
	const table = `
		CREATE TABLE account (
			id text PRIMARY KEY, email text NOT NULL, given_name text NOT NULL, surname text NOT NULL,
			status text NOT NULL, created_at timestamptz NOT NULL, modified_at timestamptz NOT NULL);
		CREATE UNIQUE INDEX ON account (email)`
	if _, err := b.db.Exec(ctx, table+";"+imported+";"+tokens); err != nil {
		return fmt.Errorf("make the baseline's tables: %w", err)
	}
	const rows = `
		INSERT INTO account SELECT 'account' || n, 'jo' || n || '@example.test', 'Jo', 'Doe', 'ENABLED', now(), now()
		FROM generate_series(1, $1) n`
	if _, err := b.db.Exec(ctx, rows, b.rows); err != nil {
		return fmt.Errorf("fill the baseline's table: %w", err)
	}
	if _, err := b.db.Exec(ctx, "VACUUM ANALYZE account"); err != nil {
		return fmt.Errorf("fill the baseline's table: %w", err)
	}
	b.stored, err = b.hashes.Hash(ctx, baselinePassword)
	return err
}

func (b *baseline) app() *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, Immutable: true})
	app.Get("/bare", func(c *fiber.Ctx) error { return c.JSON(bareAccount.view("")) })
	app.Get("/row/:n", b.row)
	app.Get("/follow/:n", b.follow)
	app.Post("/insert", b.insert)
	app.Post("/pair", b.pair)
	app.Get("/hash/:millis", b.hash)
	return app
}

// row reads one row by its primary key.
func (b *baseline) row(c *fiber.Ctx) error {
	account, err := b.read(c)
	if err != nil {
		return err
	}
	return c.JSON(account.view(account.ID))
}

// follow reads one row and redirects to what answers with it.
func (b *baseline) follow(c *fiber.Ctx) error {
	account, err := b.read(c)
	if err != nil {
		return err
	}
	return c.Redirect("/row/" + strings.TrimPrefix(account.ID, "account"))
}

func (b *baseline) read(c *fiber.Ctx) (account, error) {
	const query = `SELECT id, email, given_name, surname, status, created_at, modified_at FROM account WHERE id = $1`
	rows, err := b.db.Query(c.UserContext(), query, "account"+c.Params("n"))
	if err != nil {
		return account{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[account])
}

// hash verifies passwords on all processors for a time and tells how many it
// verified a second.
func (b *baseline) hash(c *fiber.Ctx) error {
	millis, err := strconv.Atoi(c.Params("millis"))
	if err != nil || millis < 1 || millis > 60_000 {
		return fiber.ErrBadRequest
	}
	var (
		ctx     = c.UserContext() // not to be asked for by several at once
		length  = time.Duration(millis) * time.Millisecond
		result  hashRate
		failure error
		mu      sync.Mutex
		workers sync.WaitGroup
	)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			began, done := time.Now(), 0
			for time.Since(began) < length {
				if _, _, err := b.hashes.Verify(ctx, b.stored, baselinePassword); err != nil {
					mu.Lock()
					defer mu.Unlock()
					failure = err
					return
				}
				done++
			}
			mu.Lock()
			defer mu.Unlock()
			result.Count += done
			result.PerSecond += float64(done) / time.Since(began).Seconds()
		})
	}
	workers.Wait()
	if failure != nil {
		return failure
	}
	return c.JSON(result)
}

type hashRate struct {
	Count     int     `json:"count"`
	PerSecond float64 `json:"perSecond"`
}

// account is a row, and view an answer of the size and the shape of an account.
type account struct {
	ID, Email, GivenName, Surname, Status string
	CreatedAt, ModifiedAt                 time.Time
}

var bareAccount = account{Email: "jo@example.test", GivenName: "Jo", Surname: "Doe", Status: "ENABLED", CreatedAt: time.Unix(1, 0), ModifiedAt: time.Unix(1, 0)}

type link struct {
	Href string `json:"href"`
}

type accountView struct {
	Href       string    `json:"href"`
	CreatedAt  time.Time `json:"createdAt"`
	ModifiedAt time.Time `json:"modifiedAt"`
	Username   string    `json:"username"`
	Email      string    `json:"email"`
	GivenName  string    `json:"givenName"`
	MiddleName *string   `json:"middleName"`
	Surname    string    `json:"surname"`
	FullName   string    `json:"fullName"`
	Status     string    `json:"status"`

	CustomData       link `json:"customData"`
	ProviderData     link `json:"providerData"`
	Directory        link `json:"directory"`
	Tenant           link `json:"tenant"`
	Groups           link `json:"groups"`
	GroupMemberships link `json:"groupMemberships"`
	Applications     link `json:"applications"`
	AccessTokens     link `json:"accessTokens"`
	RefreshTokens    link `json:"refreshTokens"`
	APIKeys          link `json:"apiKeys"`
	LinkedAccounts   link `json:"linkedAccounts"`
}

func (a account) view(id string) accountView {
	const base = "https://localhost:8443/v1"
	href := base + "/accounts/" + id
	under := func(name string) link { return link{href + "/" + name} }
	return accountView{
		Href: href, CreatedAt: a.CreatedAt, ModifiedAt: a.ModifiedAt,
		Username: a.Email, Email: a.Email, GivenName: a.GivenName, Surname: a.Surname, FullName: a.GivenName + " " + a.Surname, Status: a.Status,
		CustomData: under("customData"), ProviderData: under("providerData"),
		Directory: link{base + "/directories/1"}, Tenant: link{base + "/tenants/1"},
		Groups: under("groups"), GroupMemberships: under("groupMemberships"), Applications: under("applications"),
		AccessTokens: under("accessTokens"), RefreshTokens: under("refreshTokens"), APIKeys: under("apiKeys"), LinkedAccounts: under("linkedAccounts"),
	}
}
