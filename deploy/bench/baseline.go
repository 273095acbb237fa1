package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// baselineCommand is the first argument that makes this program the baseline: bare
// handlers that do nothing but the work of one part of the product (reference, control).
// It is a process of its own, with its own PostgreSQL, so that it shares the processors
// with the generator in the same way as the product does.
const baselineCommand = "baseline"

// startBaseline runs this program as the baseline. Its table of accounts has as many
// rows as there are accounts.
func (r *run) startBaseline(ctx context.Context) error {
	authority, err := harness.NewAuthority(r.dir)
	if err != nil {
		return err
	}
	cert, key, certErr := authority.Issue(r.dir, "127.0.0.1")
	address := harness.FreeAddress()
	self, selfErr := os.Executable()
	client, clientErr := e2e.NewClient(e2e.Key{BaseURL: "https://" + address, CAFile: authority.CAFile})
	if err := errors.Join(certErr, selfErr, clientErr); err != nil {
		return err
	}
	s := newSystem("", client, nil)
	for n := range r.accounts {
		s.accounts = append(s.accounts, strconv.Itoa(n+1)) // of its table
	}
	daemon := harness.NewDaemon("baseline", filepath.Join(r.dir, "baseline.log"), func(context.Context) error {
		return connect(s.tls, "").send(http.StatusOK, e2e.Get(s.host+"/bare"))
	}, self, baselineCommand, filepath.Join(r.dir, "baseline"), strconv.Itoa(r.accounts), address, cert, key)
	daemon.Setenv("DOORWARD_POSTGRES_BIN=" + os.Getenv("DOORWARD_POSTGRES_BIN"))
	r.atEnd(daemon.Stop)
	err = daemon.Start(ctx)
	s.processes, r.baseline = []int{daemon.PID()}, s
	return err
}

//go:embed baseline.sql
var baselineSchema string

// bareHandlers are what the baseline answers with. tenant stands for all ids that
// many rows share.
type bareHandlers struct {
	db     *pgxpool.Pool
	tenant id.ID
	stored string        // a password hash with the product's cost
	hashes chan struct{} // one for each processor
	keys   map[string]secure.SigningKey
}

// serveBaseline serves until ctx ends, with the arguments of startBaseline.
func serveBaseline(ctx context.Context, dir, rows, address, cert, key string) (err error) {
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: os.Getenv("DOORWARD_POSTGRES_BIN"), Durable: true})
	if err != nil {
		return fmt.Errorf("start the baseline's PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	b := bareHandlers{tenant: id.New(time.Now()), stored: pwhash.Hash(pwhash.DefaultCost, []byte(e2e.Password)),
		hashes: make(chan struct{}, runtime.NumCPU()), keys: map[string]secure.SigningKey{}}
	for _, algorithm := range []string{secure.ES256, secure.RS256} {
		if b.keys[algorithm], err = secure.NewSigningKey(algorithm, algorithm); err != nil {
			return err
		}
	}
	config, err := pgxpool.ParseConfig(server.URL(private.Database))
	if err == nil {
		config.MaxConns, config.AfterConnect = 8, pg.RegisterID // as the product's services
		b.db, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		return fmt.Errorf("open the baseline's database: %w", err)
	}
	defer b.db.Close()
	// startBaseline hands a number over
	if _, err := b.db.Exec(ctx, "SET bench.rows = "+rows+";"+baselineSchema); err != nil {
		return fmt.Errorf("make the baseline's tables: %w", err)
	}
	app := b.app()
	ended := make(chan error, 1)
	go func() { ended <- app.ListenTLS(address, cert, key) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return app.ShutdownWithTimeout(5 * time.Second)
	}
}

func (b *bareHandlers) app() *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, Immutable: true})
	constant := account{ID: "account1", Email: "jo1@example.test", GivenName: "Jo", Surname: "Doe", Status: "ENABLED",
		CreatedAt: time.Now()}
	app.Get("/bare", func(c *fiber.Ctx) error { return c.JSON(constant.view()) })
	app.Get("/row/:n", b.read(func(c *fiber.Ctx, a account) error { return c.JSON(a.view()) }))
	app.Get("/follow/:n", b.read(func(c *fiber.Ctx, a account) error {
		return c.Redirect(c.BaseURL() + "/row/" + strings.TrimPrefix(a.ID, "account"))
	}))
	app.Post("/insert", b.insert)
	app.Post("/pair", b.pair)
	app.Get("/sign/:algorithm", b.sign)
	app.Get("/hash", func(c *fiber.Ctx) error {
		b.hashes <- struct{}{}
		defer func() { <-b.hashes }()
		_, _, err := pwhash.Compare(b.stored, []byte(e2e.Password))
		return err
	})
	return app
}

// sign answers with a JWT that has the claims of an access token.
func (b *bareHandlers) sign(c *fiber.Ctx) error {
	now, tenant := time.Now().Unix(), b.tenant.String()
	text, err := b.keys[c.Params("algorithm")].Sign(map[string]any{"typ": "at+jwt"}, secure.Claims{
		"iss": "https://localhost:8443/oidc/" + tenant, "sub": tenant, "aud": "https://localhost:8443/oidc/" + tenant,
		"client_id": tenant, "iat": now, "exp": now + 3600, "jti": tenant, "scope": openIDScopes, "auth_time": now,
		"acr": "urn:doorward:acr:password", "amr": []string{"pwd"},
	})
	if err != nil {
		return err
	}
	return c.SendString(text.Reveal())
}

// account is a row, and with href and links of the size of the product's answer.
type account struct {
	ID, Email, GivenName, Surname, Status string
	CreatedAt, ModifiedAt                 time.Time
}

func (a account) view() fiber.Map {
	href := "https://localhost:8443/v1/accounts/" + a.ID
	view := fiber.Map{
		"href": href, "username": a.Email, "email": a.Email, "givenName": a.GivenName, "middleName": nil,
		"surname":  a.Surname,
		"fullName": a.GivenName + " " + a.Surname, "status": a.Status, "emailVerificationStatus": "UNVERIFIED",
		"emailVerificationToken": nil,
		"createdAt":              a.CreatedAt, "modifiedAt": a.ModifiedAt, "passwordModifiedAt": a.ModifiedAt,
	}
	for _, link := range []string{"customData", "providerData", "directory", "tenant", "groups", "groupMemberships", "applications",
		"apiKeys", "accessTokens", "refreshTokens", "linkedAccounts", "accountLinks", "factors", "phones", "challenges"} {
		view[link] = fiber.Map{"href": href + "/" + link}
	}
	return view
}

func (b *bareHandlers) read(answer func(*fiber.Ctx, account) error) fiber.Handler {
	const query = `SELECT id, email, given_name, surname, status, created_at, modified_at FROM account WHERE id = $1`
	return func(c *fiber.Ctx) error {
		rows, _ := b.db.Query(c.UserContext(), query, "account"+c.Params("n")) // its error comes with the row
		a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[account])
		if err != nil {
			return err
		}
		return answer(c, a)
	}
}

func (b *bareHandlers) insert(c *fiber.Ctx) error {
	var in struct {
		account
		Password string
	}
	if err := json.Unmarshal(c.Body(), &in); err != nil {
		return fiber.ErrBadRequest
	}
	now := time.Now()
	own := id.New(now)
	in.ID, in.Status, in.CreatedAt, in.ModifiedAt = own.String(), "ENABLED", now, now
	email, givenName, surname := strings.ToLower(in.Email), strings.ToLower(in.GivenName), strings.ToLower(in.Surname)
	const statement = `
		INSERT INTO imported (tenant_id, id, directory_id, username, username_folded, email, email_folded, given_name, given_name_folded,
			surname, surname_folded, full_name_folded, search, status, email_verification_status, password_hash,
			password_modified_at, created_at, modified_at)
		VALUES ($1, $2, $1, $3, $4, $3, $4, $5, $6, $7, $8, $9, $10, 'ENABLED', 'UNVERIFIED', $11, $12, $12, $12)`
	if _, err := b.db.Exec(c.UserContext(), statement, b.tenant, own, in.Email, email, in.GivenName, givenName,
		in.Surname, surname, givenName+" "+surname, email+"\n"+givenName+"\n"+surname, in.Password, now); err != nil {
		return err
	}
	return c.Status(fiber.StatusCreated).JSON(in.view())
}

func (b *bareHandlers) pair(c *fiber.Ctx) error {
	if c.FormValue("grant_type") == "" {
		return fiber.ErrBadRequest
	}
	ctx, now := c.UserContext(), time.Now()
	access, refresh, holder := id.New(now), id.New(now), id.New(now)
	err := pgx.BeginFunc(ctx, b.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `INSERT INTO refresh_token (tenant_id, id, application_id, account_id, key_id, issued_at, expires_at)
			VALUES ($1, $2, $1, $3, 'KEY', $4, $5)`, b.tenant, refresh, holder, now, now.Add(time.Hour)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `INSERT INTO access_token (tenant_id, id, application_id, account_id, key_id, refresh_id, issued_at, expires_at)
			VALUES ($1, $2, $1, $3, 'KEY', $4, $5, $6)`, b.tenant, access, holder, refresh, now, now.Add(time.Hour))
		return err
	})
	if err != nil {
		return err
	}
	return c.JSON(fiber.Map{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600})
}
