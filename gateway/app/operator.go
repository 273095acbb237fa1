package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/gofiber/fiber/v2"
	"go.opentelemetry.io/otel/attribute"

	"github.com/doorward/doorward/gateway/operator"
	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/certificate"
	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// Operator is the listener of operators (docs/operations.md#interface-of-operators).
type Operator struct {
	Listen string        `env:"DOORWARD_OPERATOR_LISTEN"`
	Keys   secure.Secret `env:"DOORWARD_OPERATOR_KEYS"`
	TLS    operatorTLS
}

// Help has the help texts that are longer than a line.
func (Operator) Help() map[string]string {
	return map[string]string{
		"DOORWARD_OPERATOR_LISTEN": "address to serve /operator/v1 on, for operators, such as localhost:8444; it is " +
			"not served without one",
		"DOORWARD_OPERATOR_KEYS": "keys of operators, name:role:secret, separated by blanks; a role is admin, read " +
			"or lookup, a secret has at least 32 characters",
	}
}

// operatorTLS is the certificate of the listener of operators.
type operatorTLS struct {
	Certificate string        `env:"DOORWARD_OPERATOR_TLS_CERT"`
	Key         secure.Secret `env:"DOORWARD_OPERATOR_TLS_KEY" help:"private key of the certificate in PEM"`
	Reload      env.Reload
}

// Help has the help texts that are longer than a line.
func (operatorTLS) Help() map[string]string {
	return map[string]string{
		"DOORWARD_OPERATOR_TLS_CERT": "certificate chain of that address in PEM; renewed files are used within a " +
			"minute; without one the address must be a loopback address",
	}
}

// operatorListener is the interface of operators and its listener; the zero one serves nothing.
type operatorListener struct {
	http     *fiber.App
	listener net.Listener
}

// open listens for operators, if there is an address. It returns an error for an address that is public, and for one
// that is no loopback address without TLS.
func (c Operator) open(p *run.Process, common deployment.Common, clientSuffix, public string, up Upstreams,
) (o operatorListener, err error) {
	if c.Listen == "" {
		return o, nil
	}
	keys, err := operator.ParseKeys(c.Keys)
	if err != nil {
		return o, fmt.Errorf("DOORWARD_OPERATOR_KEYS: %w", err)
	}
	own, err := c.TLS.open(p)
	if err != nil {
		return o, err
	}
	if err := c.checkAddress(public, own != nil); err != nil {
		return o, err
	}
	if o.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return o, fmt.Errorf("listen on DOORWARD_OPERATOR_LISTEN: %w", err)
	}
	if own != nil {
		o.listener = tls.NewListener(o.listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own.Current(), nil },
		})
	}
	peer := func(name string) rpc.Peer { return rpc.Peer{Upstream: up[name], Signer: common.Signer} }
	var sizes []sizeapi.API
	for _, name := range deployment.Services {
		sizes = append(sizes, sizeapi.Client(peer(name)))
	}
	o.http = operator.New(operator.Config{
		Keys: keys, Now: common.Now, Base: common.Base, ClientSuffix: clientSuffix,
		Directory: directoryapi.Client(peer("directory")), Application: applicationapi.Client(peer("application")),
		OAuth: oauthapi.Client(peer("oauth")), IDSite: idsiteapi.Client(peer("idsite")),
		Usage: []usageapi.API{usageapi.Client(peer("application")), usageapi.Client(peer("notification"))},
		Sizes: sizes,
	})
	return o, nil
}

// serve answers operators until the process closes.
func (o operatorListener) serve(p *run.Process) {
	if o.listener != nil {
		rest.Serve(p, "operator", o.http, o.listener)
	}
}

// checkAddress returns an error for an address at which clients are served, and for one that others than this machine
// reach, without TLS.
func (c Operator) checkAddress(public string, encrypted bool) error {
	own, err := net.ResolveTCPAddr("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("DOORWARD_OPERATOR_LISTEN: %w", err)
	}
	clients, err := net.ResolveTCPAddr("tcp", public)
	if err != nil {
		return fmt.Errorf("DOORWARD_LISTEN: %w", err)
	}
	all := func(ip net.IP) bool { return len(ip) == 0 || ip.IsUnspecified() }
	if own.Port != 0 && own.Port == clients.Port && (own.IP.Equal(clients.IP) || all(own.IP) || all(clients.IP)) {
		return errors.New("DOORWARD_OPERATOR_LISTEN is the address of DOORWARD_LISTEN, at which clients are served; " +
			"choose another port")
	}
	if !encrypted && !own.IP.IsLoopback() {
		return errors.New("DOORWARD_OPERATOR_LISTEN is no loopback address: set DOORWARD_OPERATOR_TLS_CERT and " +
			"DOORWARD_OPERATOR_TLS_KEY, or listen on localhost")
	}
	return nil
}

// open returns nil where there is no certificate.
func (c operatorTLS) open(p *run.Process) (*certificate.Certificate, error) {
	if c.Certificate == "" && c.Key == "" {
		return nil, nil
	}
	own, err := certificate.Open(p, func() (certificate.Pair, error) {
		var again operatorTLS
		err := c.Reload(&again)
		return certificate.Pair{Chain: again.Certificate, Key: again.Key}, err
	}, attribute.String("listener", "operator"))
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_OPERATOR_TLS_CERT and DOORWARD_OPERATOR_TLS_KEY: %w", err)
	}
	return own, nil
}
