// Package service is what the six services and the gateway read and open
// alike: the public address, the shared secrets, and the way to each other.
package service

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rpc"
	"github.com/doorward/doorward/pkg/secure"
)

// Config is what every process of a deployment is given.
type Config struct {
	Listen         string        `env:"DOORWARD_LISTEN" default:":8080" help:"address to serve on"`
	BaseURL        string        `env:"DOORWARD_BASE_URL" required:"true" help:"public address of the management API with its version, such as https://id.example.com/v1"`
	Alias          string        `env:"DOORWARD_ALIAS" default:"service" help:"word that names the product on the wire, in grant types, headers and names"`
	InternalSecret secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret of at least 32 characters that all processes of the deployment share; make one with: openssl rand -hex 32"`
}

// Common is what a process makes of its Config.
type Common struct {
	Base   href.Base
	Alias  alias.Alias
	Signer *caller.Signer
	// Shared seals what the processes of the deployment send each other.
	Shared *secure.Keyring
	Now    func() time.Time
}

// Open checks the configuration.
func (c Config) Open() (Common, error) {
	address, err := url.Parse(c.BaseURL)
	if err != nil || address.Scheme != "https" || address.Host == "" || strings.TrimSuffix(address.Path, "/") != "/v1" {
		return Common{}, errors.New("DOORWARD_BASE_URL must have the form https://host[:port]/v1")
	}
	if len(c.InternalSecret) < 32 {
		return Common{}, errors.New("DOORWARD_INTERNAL_SECRET must have at least 32 characters; make one with: openssl rand -hex 32")
	}
	sum := sha256.Sum256([]byte(secure.Derive(c.InternalSecret, "sealed between processes")))
	shared, err := secure.ParseKeyring(secure.Secret("shared:" + base64.StdEncoding.EncodeToString(sum[:])))
	if err != nil {
		return Common{}, err
	}
	word, err := alias.Parse(c.Alias)
	if err != nil {
		return Common{}, err
	}
	now := func() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
	return Common{
		Base: href.Base(strings.TrimSuffix(c.BaseURL, "/")), Alias: word,
		Signer: caller.NewSigner(c.InternalSecret, now), Shared: shared, Now: now,
	}, nil
}

// Peer gives the way to a service by the addresses of its replicas, which are
// those of the variable DOORWARD_<NAME>_URL.
func (c Common) Peer(name string, addresses []string) (rpc.Peer, error) {
	upstream, err := rpc.NewUpstream(name, addresses)
	if err != nil {
		return rpc.Peer{}, fmt.Errorf("DOORWARD_%s_URL: %w", strings.ToUpper(name), err)
	}
	return rpc.Peer{Upstream: upstream, Signer: c.Signer}, nil
}
