package app

import (
	"errors"
	"fmt"

	"github.com/doorward/doorward/pkg/certificate"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
)

// TLS says where TLS is terminated, and with which certificate.
type TLS struct {
	Mode        string        `env:"DOORWARD_TLS" default:"certificate"`
	Certificate string        `env:"DOORWARD_TLS_CERT"`
	Key         secure.Secret `env:"DOORWARD_TLS_KEY" help:"private key of the certificate in PEM"`
	Reload      env.Reload
}

// Help has the help texts that are longer than a line.
func (TLS) Help() map[string]string {
	return map[string]string{
		"DOORWARD_TLS": "certificate: the gateway terminates TLS; proxy: a trusted load balancer in front does, and " +
			"says so in X-Forwarded-Proto",
		"DOORWARD_TLS_CERT": "certificate chain in PEM, for DOORWARD_TLS=certificate; renewed files are used within " +
			"a minute",
	}
}

// open returns nil where a load balancer terminates TLS.
func (c TLS) open(p *run.Process) (*certificate.Certificate, error) {
	switch c.Mode {
	case "proxy":
		return nil, nil
	case "certificate", "":
	default:
		return nil, fmt.Errorf("DOORWARD_TLS is %q: use certificate or proxy", c.Mode)
	}
	if c.Certificate == "" || c.Key == "" {
		return nil, errors.New("DOORWARD_TLS_CERT and DOORWARD_TLS_KEY are missing: name the PEM files with " +
			"DOORWARD_TLS_CERT_FILE and DOORWARD_TLS_KEY_FILE, or set DOORWARD_TLS=proxy behind a load balancer that " +
			"terminates TLS")
	}
	own, err := certificate.Open(p, func() (certificate.Pair, error) {
		var again TLS
		err := c.Reload(&again)
		return certificate.Pair{Chain: again.Certificate, Key: again.Key}, err
	})
	if err != nil {
		return nil, fmt.Errorf("DOORWARD_TLS_CERT and DOORWARD_TLS_KEY: %w", err)
	}
	return own, nil
}
