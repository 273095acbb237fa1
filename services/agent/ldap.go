package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-ldap/ldap/v3"

	"github.com/doorward/doorward/pkg/telemetry"
)

const (
	// dialTimeout is less than checkTimeout, so that the reason of a failed check tells an unreachable server from a
	// slow one.
	dialTimeout = 3 * time.Second
	// searchTimeout bounds one page of a search.
	searchTimeout = 60 * time.Second
	// maxIdle bounds the idle connections of each pool.
	maxIdle = 64
)

// server is the LDAP client of the directory server, for one configuration.
type server struct {
	settings Settings
	cfg      Config
	tls      *tls.Config
	searches chan *ldap.Conn // pool of idle connections, bound as the agent's user
	binds    chan *ldap.Conn // pool of idle connections for the binds of users
}

// errReferral is a referral that is not followed.
var errReferral = errors.New("the directory server refers to another")

func newServer(cfg Config, s Settings) (*server, error) {
	pool, err := roots(cfg.LDAPCA, "DOORWARD_AGENT_LDAP_CA")
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"auto", "ldaps", "starttls"}, cfg.LDAPTLS) {
		return nil, fmt.Errorf("DOORWARD_AGENT_LDAP_TLS is %q: use auto, ldaps or starttls", cfg.LDAPTLS)
	}
	for _, filter := range []string{s.accountFilter(), s.groupFilter()} {
		if _, err := ldap.CompileFilter(filter); err != nil {
			return nil, fmt.Errorf("the filter %s of the configuration cannot be read: %w", filter, err)
		}
	}
	return &server{
		settings: s, cfg: cfg, tls: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		searches: make(chan *ldap.Conn, maxIdle), binds: make(chan *ldap.Conn, maxIdle),
	}, nil
}

// close closes the idle connections.
func (s *server) close() {
	for _, pool := range []chan *ldap.Conn{s.searches, s.binds} {
		for len(pool) > 0 {
			_ = (<-pool).Close()
		}
	}
}

// address is the host and port of the directory server.
func (s *server) address() string {
	return net.JoinHostPort(s.settings.DirectoryHost, strconv.Itoa(s.settings.DirectoryPort))
}

// dial connects to a directory server, with TLS (LDAPS or StartTLS) as configured.
func (s *server) dial(ctx context.Context, address string) (*ldap.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	mode := s.cfg.LDAPTLS
	switch {
	case mode == "auto" && !s.settings.SSLRequired:
		mode = "plain"
	case mode == "auto" && (port == "389" || port == "3268"):
		mode = "starttls"
	case mode == "auto":
		mode = "ldaps"
	}
	config := s.tls.Clone()
	config.ServerName = host
	tcp, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the directory server %s: %w", address, err)
	}
	if mode == "ldaps" {
		secured := tls.Client(tcp, config)
		handshake, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		if err := secured.HandshakeContext(handshake); err != nil {
			_ = tcp.Close()
			return nil, fmt.Errorf("secure the connection to the directory server %s: %w", address, err)
		}
		tcp = secured
	}
	conn := ldap.NewConn(tcp, mode == "ldaps")
	conn.Start()
	setTimeout(ctx, conn, searchTimeout)
	if mode == "starttls" {
		if err := conn.StartTLS(config); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("secure the connection to the directory server %s: %w", address, err)
		}
	}
	return conn, nil
}

// setTimeout bounds the next request of a connection.
func setTimeout(ctx context.Context, conn *ldap.Conn, most time.Duration) {
	if deadline, ok := ctx.Deadline(); ok {
		most = max(min(most, time.Until(deadline)), time.Millisecond)
	}
	conn.SetTimeout(most)
}

// bindAs is the LDAP bind of a user at a login (check.go), on a connection that is used for binds
// only. The password policy control tells why the server refuses a login.
func (s *server) bindAs(ctx context.Context, dn, password string) error {
	ctx, span := telemetry.Span(ctx, "ldap.Bind")
	defer span.End()
	conn := takeConn(s.binds)
	for fresh := conn == nil; ; fresh = true {
		var err error
		if conn == nil {
			if conn, err = s.dial(ctx, s.address()); err != nil {
				return err
			}
		}
		setTimeout(ctx, conn, checkTimeout)
		request := ldap.NewSimpleBindRequest(dn, password, nil)
		if !s.settings.isAD() {
			request.Controls = []ldap.Control{ldap.NewControlBeheraPasswordPolicy()}
		}
		result, err := conn.SimpleBind(request)
		err = markConnectionError(err)
		if isBroken(err) {
			_ = conn.Close()
			if conn = nil; !fresh && ctx.Err() == nil {
				continue
			}
			return err
		}
		putConn(s.binds, conn)
		if result == nil {
			return err
		}
		policy, ok := ldap.FindControl(result.Controls,
			ldap.ControlTypeBeheraPasswordPolicy).(*ldap.ControlBeheraPasswordPolicy)
		switch {
		case ok && err != nil:
			return passwordPolicyError(policy.Error, err)
		case ok && policy.Error == ldap.BeheraChangeAfterReset:
			return passwordPolicyError(policy.Error, errors.New("the password must be changed"))
		}
		return err
	}
}

// dialAsAgent connects to a directory server and binds as the user of the agent (bind DN).
func (s *server) dialAsAgent(ctx context.Context, address string) (*ldap.Conn, error) {
	conn, err := s.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	// conn.Bind refuses an empty password, with which any bind would succeed (unauthenticated bind).
	if err := conn.Bind(s.settings.AgentUserDN, s.settings.AgentUserDNPassword.Reveal()); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in to the directory server as %s: %w", s.settings.AgentUserDN, err)
	}
	return conn, nil
}

// takeConn takes an idle connection from a pool; nil where there is none.
func takeConn(pool chan *ldap.Conn) *ldap.Conn {
	for {
		select {
		case conn := <-pool:
			if !conn.IsClosing() {
				return conn
			}
		default:
			return nil
		}
	}
}

// putConn puts a connection back into a pool, or closes it where the pool is full.
func putConn(pool chan *ldap.Conn, conn *ldap.Conn) {
	if conn.IsClosing() {
		return
	}
	select {
	case pool <- conn:
	default:
		_ = conn.Close()
	}
}

// search runs one search on a connection of the agent's user. A broken connection is replaced
// once.
func (s *server) search(ctx context.Context, request *ldap.SearchRequest) (*ldap.SearchResult, error) {
	conn := takeConn(s.searches)
	for fresh := conn == nil; ; fresh = true {
		var err error
		if conn == nil {
			if conn, err = s.dialAsAgent(ctx, s.address()); err != nil {
				return nil, err
			}
		}
		setTimeout(ctx, conn, searchTimeout)
		result, err := conn.Search(request)
		if err = markConnectionError(err); isBroken(err) {
			_ = conn.Close()
			if conn = nil; !fresh && ctx.Err() == nil {
				continue
			}
			return nil, err
		}
		putConn(s.searches, conn)
		return result, err
	}
}

// errBroken is a connection that broke before the answer.
var errBroken = errors.New("the connection to the directory server broke")

// markConnectionError adds errBroken to an error that is no answer of the server: go-ldap returns
// the end of a connection as plain text.
func markConnectionError(err error) error {
	if err == nil || errors.As(err, new(*ldap.Error)) {
		return err
	}
	return errors.Join(errBroken, err)
}

// isBroken reports whether the connection cannot be used after an error.
func isBroken(err error) bool {
	return err != nil && (ldap.IsErrorWithCode(err, ldap.ErrorNetwork) ||
		ldap.IsErrorWithCode(err, ldap.LDAPResultUnavailable) ||
		ldap.IsErrorWithCode(err, ldap.LDAPResultOther) || errors.As(err, new(net.Error)) ||
		errors.Is(err, errBroken))
}

// probe reads the root of the directory server, to report whether it answers.
func (s *server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	_, err := s.search(ctx, ldap.NewSearchRequest("", ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 5, false,
		"(objectClass=*)", []string{"1.1"}, nil))
	return err
}

// isReferralAllowed reports whether a referral to an address may be followed: to the configured
// server, or to one of DOORWARD_AGENT_REFERRAL_HOSTS.
func (s *server) isReferralAllowed(address string) bool {
	if strings.EqualFold(address, s.address()) {
		return true
	}
	return slices.ContainsFunc(s.cfg.ReferralHosts, func(listed string) bool {
		return strings.EqualFold(listed, address)
	})
}
