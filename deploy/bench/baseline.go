package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/secure/pwhash"
)

// baselineCommand is the first argument that makes this program the baseline:
// handlers that do nothing but the work of one part of the product. It is a
// process of its own, with its own PostgreSQL, so that it shares the processors
// with the generator in the same way as the product does.
const baselineCommand = "baseline"

//go:embed baseline.sql
var baselineSchema string

// bareHandlers are what the baseline answers with. tenant stands for all ids that
// many rows share.
type bareHandlers struct {
	db     *pgxpool.Pool
	tenant id.ID
	stored string // a password hash with the product's cost
}

// baselineHello is the baseline's first line of output, once it serves.
type baselineHello struct {
	Address     string `json:"address"`
	Certificate []byte `json:"certificate"` // DER
	PostgreSQL  string `json:"postgresql"`  // version
}

// serveBaseline serves until its standard input ends, as it does when the
// process that started it ends.
func serveBaseline(ctx context.Context, dir, rows string, in io.Reader, out io.Writer) (err error) {
	count, err := strconv.Atoi(rows)
	if err != nil {
		return fmt.Errorf("read the number of rows: %w", err)
	}
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: os.Getenv("DOORWARD_POSTGRES_BIN"), Durable: true})
	if err != nil {
		return fmt.Errorf("start the baseline's PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	config, err := pgxpool.ParseConfig(server.URL(private.Database))
	if err != nil {
		return fmt.Errorf("open the baseline's database: %w", err)
	}
	config.MaxConns = 8 // as the product's services have
	b := bareHandlers{tenant: id.New(time.Now()), stored: pwhash.Hash(pwhash.DefaultCost, []byte(e2e.Password))}
	config.AfterConnect = pg.RegisterID
	if b.db, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return fmt.Errorf("open the baseline's database: %w", err)
	}
	defer b.db.Close()
	if _, err := b.db.Exec(ctx, fmt.Sprintf("SET bench.rows = %d;", count)+baselineSchema); err != nil {
		return fmt.Errorf("make the baseline's tables: %w", err)
	}
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	hello := baselineHello{Address: listener.Addr().String(), Certificate: certificate.Certificate[0]}
	if err := b.db.QueryRow(ctx, "SELECT current_setting('server_version')").Scan(&hello.PostgreSQL); err != nil {
		return fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	if err := json.NewEncoder(out).Encode(hello); err != nil {
		return fmt.Errorf("write the address: %w", err)
	}
	app := b.app()
	ended := make(chan error, 1)
	go func() {
		ended <- app.Listener(tls.NewListener(listener, &tls.Config{
			Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		}))
	}()
	parentEnded := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, in) // nothing is ever sent
		close(parentEnded)
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	case <-parentEnded:
	}
	return app.ShutdownWithTimeout(5 * time.Second)
}

// selfSigned makes a certificate of the kind that standalone's gateway has.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

func (b *bareHandlers) app() *fiber.App {
	app := fiber.New(fiber.Config{DisableStartupMessage: true, Immutable: true})
	constant := account{ID: "account1", Email: "jo1@example.test", GivenName: "Jo", Surname: "Doe", Status: "ENABLED", CreatedAt: time.Now()}
	app.Get("/bare", func(c *fiber.Ctx) error { return c.JSON(constant.view()) })
	app.Get("/row/:n", func(c *fiber.Ctx) error {
		a, err := b.read(c)
		if err != nil {
			return err
		}
		return c.JSON(a.view())
	})
	app.Get("/follow/:n", func(c *fiber.Ctx) error {
		a, err := b.read(c)
		if err != nil {
			return err
		}
		return c.Redirect(c.BaseURL() + "/row/" + strings.TrimPrefix(a.ID, "account"))
	})
	app.Post("/insert", b.insert)
	app.Post("/pair", b.pair)
	app.Get("/hash/:millis", b.hash)
	return app
}

// account is a row, and with href and links of the size of the product's answer.
type account struct {
	ID, Email, GivenName, Surname, Status string
	CreatedAt, ModifiedAt                 time.Time
}

func (a account) view() fiber.Map {
	href := "https://localhost:8443/v1/accounts/" + a.ID
	view := fiber.Map{
		"href": href, "username": a.Email, "email": a.Email, "givenName": a.GivenName, "middleName": nil, "surname": a.Surname,
		"fullName": a.GivenName + " " + a.Surname, "status": a.Status, "emailVerificationStatus": "UNVERIFIED", "emailVerificationToken": nil,
		"createdAt": a.CreatedAt, "modifiedAt": a.ModifiedAt, "passwordModifiedAt": a.ModifiedAt,
	}
	for _, link := range []string{"customData", "providerData", "directory", "tenant", "groups", "groupMemberships", "applications",
		"apiKeys", "accessTokens", "refreshTokens", "linkedAccounts", "accountLinks", "factors", "phones", "challenges"} {
		view[link] = fiber.Map{"href": href + "/" + link}
	}
	return view
}

func (b *bareHandlers) read(c *fiber.Ctx) (account, error) {
	const query = `SELECT id, email, given_name, surname, status, created_at, modified_at FROM account WHERE id = $1`
	rows, err := b.db.Query(c.UserContext(), query, "account"+c.Params("n"))
	if err != nil {
		return account{}, err
	}
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[account])
}

func (b *bareHandlers) insert(c *fiber.Ctx) error {
	var in struct{ Email, Password, GivenName, Surname string }
	if err := json.Unmarshal(c.Body(), &in); err != nil {
		return fiber.ErrBadRequest
	}
	now := time.Now()
	own := id.New(now)
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
	a := account{own.String(), in.Email, in.GivenName, in.Surname, "ENABLED", now, now}
	return c.Status(fiber.StatusCreated).JSON(a.view())
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

// hash compares passwords on all processors for a time and returns how many.
func (b *bareHandlers) hash(c *fiber.Ctx) error {
	length, err := strconv.Atoi(c.Params("millis"))
	if err != nil || length < 1 || length > 60_000 {
		return fiber.ErrBadRequest
	}
	var done atomic.Int64
	var workers sync.WaitGroup
	began := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for time.Since(began) < time.Duration(length)*time.Millisecond {
				if match, _, err := pwhash.Compare(b.stored, []byte(e2e.Password)); err != nil || !match {
					return
				}
				done.Add(1)
			}
		})
	}
	workers.Wait()
	return c.JSON(hashed{done.Load(), time.Since(began)})
}

type hashed struct {
	Count int64
	Took  time.Duration
}

// baseline is the running process, as the generator sees it.
type baseline struct {
	baselineHello
	url    string
	rows   int
	tls    *tls.Config
	stdin  io.Closer
	daemon *exec.Cmd
	ended  chan error
}

// startBaseline runs this program once more, with a database in the folder, and
// returns when it serves.
func startBaseline(ctx context.Context, dir string, rows int) (*baseline, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	daemon := exec.Command(self, baselineCommand, dir, strconv.Itoa(rows))
	daemon.Stderr = os.Stderr
	daemon.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for this process; the baseline ends with its input
	stdin, err := daemon.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	stdout, err := daemon.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	if err := daemon.Start(); err != nil {
		return nil, fmt.Errorf("start the baseline: %w", err)
	}
	b := &baseline{rows: rows, stdin: stdin, daemon: daemon, ended: make(chan error, 1)}
	hello := make(chan error, 1)
	go func() {
		out := bufio.NewReader(stdout)
		hello <- json.NewDecoder(out).Decode(&b.baselineHello)
		_, _ = io.Copy(io.Discard, out) // nothing follows
		b.ended <- daemon.Wait()
	}()
	select {
	case err = <-hello:
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(2 * time.Minute):
		err = errors.New("it was not ready within two minutes")
	}
	var certificate *x509.Certificate
	if err == nil {
		certificate, err = x509.ParseCertificate(b.Certificate)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the baseline: %w", err), b.stop())
	}
	b.url = "https://" + b.Address
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	b.tls = &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	return b, nil
}

// stop ends the baseline's input, and kills it where that is not enough.
func (b *baseline) stop() error {
	_ = b.stdin.Close()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(20 * time.Second):
		_ = b.daemon.Process.Kill() // it may have ended just now
		return errors.Join(errors.New("the baseline did not end within 20 s and was killed"), <-b.ended)
	}
}

func (b *baseline) subject(name string) subject {
	for _, o := range bareOperations {
		if o.name == name {
			return subject{name, b.daemon.Process.Pid, func() (func(uint64) error, func()) {
				c := connect(b.tls, "")
				return func(n uint64) error { return o.do(b, c, n) }, c.close
			}}
		}
	}
	panic("no baseline " + name)
}

// hashes compares passwords on all processors for a time.
func (b *baseline) hashes(length time.Duration) (*outcome, error) {
	c := connect(b.tls, "")
	defer c.close()
	before, err := readUsage(b.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	if err := c.send(get(b.url + "/hash/" + strconv.FormatInt(length.Milliseconds(), 10))); err != nil {
		return nil, fmt.Errorf("measure the bare password hash: %w", err)
	}
	after, err := readUsage(b.daemon.Process.Pid)
	if err != nil {
		return nil, err
	}
	var found hashed
	if err := json.Unmarshal(c.response.Body(), &found); err != nil {
		return nil, fmt.Errorf("measure the bare password hash: %w", err)
	}
	o := newOutcome(found.Took)
	o.usage = after.minus(before)
	for range found.Count {
		record(o.latencies, found.Took*time.Duration(runtime.GOMAXPROCS(0))/time.Duration(found.Count))
	}
	return o, nil
}
