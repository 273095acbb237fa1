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
	// dialTimeout is less than checkTimeout: a server that cannot be reached is not
	// a slow one.
	dialTimeout = 3 * time.Second
	// searchTimeout bounds one page of a search.
	searchTimeout = 60 * time.Second
	// maxIdle bounds the connections that are kept for later.
	maxIdle = 64
)

// server is the directory server by one configuration.
type server struct {
	settings Settings
	cfg      Config
	tls      *tls.Config
	searches chan *ldap.Conn // idle connections of the agent's user
	binds    chan *ldap.Conn // idle connections on which users are bound
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

// close ends the idle connections.
func (s *server) close() {
	for _, pool := range []chan *ldap.Conn{s.searches, s.binds} {
		for len(pool) > 0 {
			_ = (<-pool).Close()
		}
	}
}

// address is the host and port of the configuration.
func (s *server) address() string {
	return net.JoinHostPort(s.settings.DirectoryHost, strconv.Itoa(s.settings.DirectoryPort))
}

// dial connects to a directory server and secures the connection.
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

// bindAs is the bind of a user at a login (check.go), on a connection that is used for nothing else.
func (s *server) bindAs(ctx context.Context, dn, password string) error {
	ctx, span := telemetry.Span(ctx, "ldap.Bind")
	defer span.End()
	conn := take(s.binds)
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
		err = answered(err)
		if isBroken(err) {
			_ = conn.Close()
			if conn = nil; !fresh && ctx.Err() == nil {
				continue
			}
			return err
		}
		put(s.binds, conn)
		if result == nil {
			return err
		}
		policy, ok := ldap.FindControl(result.Controls, ldap.ControlTypeBeheraPasswordPolicy).(*ldap.ControlBeheraPasswordPolicy)
		switch {
		case ok && err != nil:
			return policyError(policy.Error, err)
		case ok && policy.Error == ldap.BeheraChangeAfterReset:
			return policyError(policy.Error, errors.New("the password must be changed"))
		}
		return err
	}
}

// bound connects to a directory server as the user of the agent.
func (s *server) bound(ctx context.Context, address string) (*ldap.Conn, error) {
	conn, err := s.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	// Bind refuses an empty password, with which a server would let anybody in.
	if err := conn.Bind(s.settings.AgentUserDN, s.settings.AgentUserDNPassword.Reveal()); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("log in to the directory server as %s: %w", s.settings.AgentUserDN, err)
	}
	return conn, nil
}

// take returns an idle connection, or nil.
func take(pool chan *ldap.Conn) *ldap.Conn {
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

// put keeps a connection for later.
func put(pool chan *ldap.Conn, conn *ldap.Conn) {
	if conn.IsClosing() {
		return
	}
	select {
	case pool <- conn:
	default:
		_ = conn.Close()
	}
}

// search runs one search on a connection of the agent's user. A connection that
// turns out to be broken is replaced once.
func (s *server) search(ctx context.Context, request *ldap.SearchRequest) (*ldap.SearchResult, error) {
	conn := take(s.searches)
	for fresh := conn == nil; ; fresh = true {
		var err error
		if conn == nil {
			if conn, err = s.bound(ctx, s.address()); err != nil {
				return nil, err
			}
		}
		setTimeout(ctx, conn, searchTimeout)
		result, err := conn.Search(request)
		if err = answered(err); isBroken(err) {
			_ = conn.Close()
			if conn = nil; !fresh && ctx.Err() == nil {
				continue
			}
			return nil, err
		}
		put(s.searches, conn)
		return result, err
	}
}

// errBroken is a connection that ended in the place of an answer.
var errBroken = errors.New("the connection to the directory server broke")

// answered marks an error of a request that is no answer of the server: go-ldap
// returns what it read last, such as the end of the connection, as plain text.
func answered(err error) error {
	if err == nil || errors.As(err, new(*ldap.Error)) {
		return err
	}
	return errors.Join(errBroken, err)
}

// isBroken reports whether an error ends its connection.
func isBroken(err error) bool {
	return err != nil && (ldap.IsErrorWithCode(err, ldap.ErrorNetwork) || ldap.IsErrorWithCode(err, ldap.LDAPResultUnavailable) ||
		ldap.IsErrorWithCode(err, ldap.LDAPResultOther) || errors.As(err, new(net.Error)) ||
		errors.Is(err, errBroken))
}

// probe reports whether the directory server answers.
func (s *server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*dialTimeout)
	defer cancel()
	_, err := s.search(ctx, ldap.NewSearchRequest("", ldap.ScopeBaseObject, ldap.NeverDerefAliases, 1, 5, false,
		"(objectClass=*)", []string{"1.1"}, nil))
	return err
}

// mayFollow reports whether a referral may lead to an address: that of the
// configuration or one that is listed.
func (s *server) mayFollow(address string) bool {
	if strings.EqualFold(address, s.address()) {
		return true
	}
	return slices.ContainsFunc(s.cfg.ReferralHosts, func(listed string) bool { return strings.EqualFold(listed, address) })
}
