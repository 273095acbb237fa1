package openid_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
	"github.com/doorward/doorward/services/oauth/openid"
	"github.com/doorward/doorward/services/oauth/relyingparty"
	"github.com/doorward/doorward/services/oauth/store"
)

// crash is the death of a process between two of its statements: PostgreSQL gets those before it, pipelined ones too,
// and nothing after it.
type crash struct {
	mu     sync.Mutex
	left   int // statements that reach PostgreSQL still
	sent   int
	after  bool // it has happened
	closed []net.Conn
}

var errCrashed = errors.New("the process has crashed")

// dial connects the process to PostgreSQL.
func (c *crash) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.after {
		return nil, errCrashed
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		c.closed = append(c.closed, conn)
	}
	return &crashConn{Conn: conn, crash: c}, err
}

// crashConn is a connection of a process that crashes. It reads what is sent, to find where a statement begins.
type crashConn struct {
	net.Conn
	crash   *crash
	started bool
}

// Write sends messages of the frontend up to the crash. The driver writes whole messages.
func (c *crashConn) Write(b []byte) (int, error) {
	c.crash.mu.Lock()
	defer c.crash.mu.Unlock()
	for at := 0; at < len(b); {
		if c.crash.after {
			return 0, errCrashed
		}
		header := 1 // its kind; the first message of a connection has none
		if !c.started {
			c.started, header = true, 0
		}
		kind, end := b[at], at+header+int(binary.BigEndian.Uint32(b[at+header:]))
		if isStatement := header == 1 && (kind == 'E' || kind == 'Q'); isStatement {
			if c.crash.left == 0 {
				return 0, c.crash.happen()
			}
			c.crash.left--
			c.crash.sent++
		}
		if _, err := c.Conn.Write(b[at:end]); err != nil {
			return 0, err
		}
		at = end
	}
	return len(b), nil
}

func (c *crash) happen() error {
	c.after = true
	for _, conn := range c.closed {
		_ = conn.Close()
	}
	return errCrashed
}

// afterStatements calls the service as a process that crashes after so many statements, and returns when PostgreSQL has
// noticed. It reports whether the call was answered before.
func afterStatements(t *testing.T, d *oauthtest.Deployment, statements int, call func(*oauth.Service) error) bool {
	t.Helper()
	c := &crash{left: statements}
	config := d.DB.Config()
	name := fmt.Sprintf("crash-%s-%d", t.Name(), statements)
	config.ConnConfig.DialFunc, config.ConnConfig.RuntimeParams["application_name"] = c.dial, name
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	process := *d
	process.DB = pg.FromPool(pool)
	process.Store = store.New(process.DB, d.Clock.Now)
	err = call(process.WithMasterKey(t, d.Master))
	c.mu.Lock()
	answered := !c.after
	_ = c.happen()
	c.mu.Unlock()
	pool.Close()
	if answered && err != nil {
		t.Fatalf("the call that does not crash fails with %v", err)
	}
	worktest.Await(t, "the sessions of the process to end", func() bool {
		n, err := pg.Value[int](t.Context(), d.DB, `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = left($1, 63)`, name)
		if err != nil {
			t.Fatal(err)
		}
		return n == 0
	})
	return answered
}

// everyCrash lets a process crash before its first statement, after it, after the second, until it answers.
func everyCrash(t *testing.T, d *oauthtest.Deployment, one func(t *testing.T, crashed func(func(*oauth.Service) error))) {
	t.Helper()
	answered := false
	statements := 0
	for ; !answered && statements < 200 && !t.Failed(); statements++ {
		t.Run(fmt.Sprintf("after %d statements", statements), func(t *testing.T) {
			one(t, func(call func(*oauth.Service) error) { answered = afterStatements(t, d, statements, call) })
		})
	}
	if statements < 8 || !answered {
		t.Errorf("the process has crashed after up to %d statements and answered %t", statements, answered)
	}
}

// living are the rows of the client: its grants, and the tokens that are good.
func (p *party) living() (found struct{ Grants, Refresh, Access int }) {
	p.t.Helper()
	found, err := pg.One[struct{ Grants, Refresh, Access int }](p.t.Context(), p.DB, `SELECT
		(SELECT count(*) FROM openid_grants WHERE tenant_id = $1 AND client_id = $2) AS grants,
		(SELECT count(*) FROM openid_refresh_tokens r JOIN openid_grants g ON g.tenant_id = r.tenant_id AND g.id = r.grant_id
			WHERE r.tenant_id = $1 AND g.client_id = $2) AS refresh,
		(SELECT count(*) FROM openid_access_tokens WHERE tenant_id = $1 AND client_id = $2) AS access`,
		p.TenantID, p.OpenIDClient.ID)
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

// sends is a call of the token endpoint.
func sends(t *testing.T, in openid.Call) func(*oauth.Service) error {
	return func(s *oauth.Service) error {
		_, err := s.OpenID.Token(t.Context(), in)
		return err
	}
}

// givesOrRefuses sends a call again, to a process that lives. Anything but tokens and invalid_grant is a failure.
func (p *party) givesOrRefuses(in openid.Call) (issued openid.Tokens, given bool) {
	p.t.Helper()
	issued, err := p.Service.OpenID.Token(p.t.Context(), in)
	if err != nil && apierr.From(err).Fields["error"] != "invalid_grant" {
		p.t.Errorf("the call is answered with %v when it is repeated", err)
	}
	return issued, err == nil
}

// A process that crashes while it exchanges a code leaves the code unused, or used without a token that lives on once
// the client has sent it again. There is never a second grant.
func TestACrashWhileACodeIsExchanged(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	outcomes := map[bool]int{}
	everyCrash(t, d, func(t *testing.T, crashed func(func(*oauth.Service) error)) {
		p := newParty(t, d, d.Site, relyingparty.Change{})
		in := p.redeem(p.code(nil))
		crashed(sends(t, in))
		if left := p.living(); left.Grants > 1 || left.Refresh != left.Grants || left.Access != left.Grants {
			t.Errorf("the crash leaves %+v: not all of the tokens, or none", left)
		}
		_, given := p.givesOrRefuses(in)
		outcomes[given]++
		if left := p.living(); given && (left.Grants != 1 || left.Refresh != 1 || left.Access != 1) ||
			!given && (left.Grants != 0 || left.Refresh != 0 || left.Access != 0) {
			t.Errorf("the code that is sent again was answered with tokens: %t, and leaves %+v", given, left)
		}
		if _, again := p.givesOrRefuses(in); again || p.living().Access != 0 {
			t.Errorf("a further use is answered with tokens: %t, and leaves %+v", again, p.living())
		}
		p.token(p.redeem(p.code(nil))) // a new login works
	})
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("codes that could be used again, and not: %v, want some of both", outcomes)
	}
}

// A client that lost the answer of a refresh because a process crashed sends its token again: within the grace it goes
// on, later it does or the family ends. There is never a second chain.
func TestACrashWhileATokenIsRefreshed(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	native := relyingparty.Change{ApplicationType: field.Some("native"),
		TokenEndpointAuthMethod: field.Some("client_secret_basic")}
	for name, late := range map[string]time.Duration{"within the grace": 0, "after it": time.Minute} {
		t.Run(name, func(t *testing.T) {
			everyCrash(t, d, func(t *testing.T, crashed func(func(*oauth.Service) error)) {
				p := newParty(t, d, d.Site, native)
				in := p.refresh(p.token(p.redeem(p.code(nil))).RefreshToken)
				crashed(sends(t, in))
				d.Clock.Move(late)
				next, given := p.givesOrRefuses(in)
				if late == 0 && !given {
					t.Fatal("the client does not get another pair")
				}
				if left := p.living(); !given && (left.Grants != 0 || left.Refresh != 0 || left.Access != 0) {
					t.Fatalf("the family has ended and leaves %+v", left)
				}
				if !given {
					return
				}
				d.Clock.Move(time.Minute)
				last := p.token(p.refresh(next.RefreshToken))
				if !p.active(last.RefreshToken) || p.active(next.RefreshToken) || p.living().Grants != 1 {
					t.Errorf("the chain does not go on: %+v", p.living())
				}
			})
		})
	}
}

// A process that crashes while it ends a family, because a used token came back, leaves it to the next use.
func TestACrashWhileAFamilyEnds(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	everyCrash(t, d, func(t *testing.T, crashed func(func(*oauth.Service) error)) {
		p := newParty(t, d, d.Site, relyingparty.Change{})
		stolen := p.refresh(p.token(p.redeem(p.code(nil))).RefreshToken)
		p.token(stolen)
		d.Clock.Move(time.Minute)
		crashed(func(s *oauth.Service) error {
			_, err := s.OpenID.Token(t.Context(), stolen)
			if apierr.From(err).Fields["error"] == "invalid_grant" {
				return nil
			}
			return err
		})
		if _, given := p.givesOrRefuses(stolen); given || p.living().Grants != 0 || p.living().Access != 0 {
			t.Errorf("the used token is answered with tokens: %t, and leaves %+v", given, p.living())
		}
	})
}
