// Package deployment has the configuration that all processes of a deployment share: the list of
// services, the base URL, the internal secret, and the addresses of the services.
package deployment

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

// Services are the names of the services, each after the services that it calls. The gateway and the
// end-to-end tests use this list.
var Services = []string{"directory", "application", "mfa", "oauth", "notification", "idsite"}

// Config is the environment that all processes of a deployment share.
type Config struct {
	Listen         string        `env:"DOORWARD_LISTEN" default:":8080" help:"address to serve on"`
	BaseURL        string        `env:"DOORWARD_BASE_URL" required:"true"`
	FormerBaseURLs []string      `env:"DOORWARD_FORMER_BASE_URLS"`
	Alias          string        `env:"DOORWARD_ALIAS" default:"service"`
	InternalSecret secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true"`
	AcceptedSecret secure.Secret `env:"DOORWARD_INTERNAL_SECRET_ACCEPTED"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_BASE_URL": "public address of the management API with its version, such as " +
			"https://id.example.com/v1",
		"DOORWARD_FORMER_BASE_URLS": "comma-separated former values of DOORWARD_BASE_URL, which stay valid in " +
			"bodies and as issuers of tokens",
		"DOORWARD_ALIAS": "product name in grant types, headers and names",
		"DOORWARD_INTERNAL_SECRET": "secret of at least 32 characters that all processes of the deployment share; " +
			"make one with: openssl rand -hex 32",
		"DOORWARD_INTERNAL_SECRET_ACCEPTED": "previous or next internal secret, accepted during a rotation",
	}
}

// Common is a validated Config.
type Common struct {
	Base   href.Base
	Alias  alias.Alias
	Signer *caller.Signer
	// Shared encrypts secrets that the processes of the deployment send each other.
	Shared secure.Keyrings
	Now    func() time.Time
}

// Validate checks the configuration and returns what is made of it.
func (c Config) Validate() (Common, error) {
	if !IsBaseURL(c.BaseURL) {
		return Common{}, errors.New("DOORWARD_BASE_URL must have the form https://host[:port]/v1")
	}
	former := make([]string, len(c.FormerBaseURLs))
	for i, address := range c.FormerBaseURLs {
		if former[i] = strings.TrimSuffix(address, "/"); !IsBaseURL(address) {
			return Common{}, fmt.Errorf(
				"DOORWARD_FORMER_BASE_URLS has %q; each must have the form https://host[:port]/v1",
				address)
		}
	}
	secrets := []secure.Secret{c.InternalSecret}
	if c.AcceptedSecret != "" {
		secrets = append(secrets, c.AcceptedSecret)
	}
	var shared secure.Keyrings
	for _, secret := range secrets {
		if len(secret) < 32 {
			return Common{}, errors.New("DOORWARD_INTERNAL_SECRET, and DOORWARD_INTERNAL_SECRET_ACCEPTED where it is " +
				"set, must have at least 32 characters; make one with: openssl rand -hex 32")
		}
		sum := sha256.Sum256([]byte(secure.Derive(secret, "sealed between processes")))
		ring, err := secure.ParseKeyring(secure.Secret("shared:" + base64.StdEncoding.EncodeToString(sum[:])))
		if err != nil {
			return Common{}, err
		}
		shared = append(shared, ring)
	}
	word, err := alias.Parse(c.Alias)
	if err != nil {
		return Common{}, err
	}
	now := func() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }
	return Common{
		Base: href.NewBase(strings.TrimSuffix(c.BaseURL, "/"), former...), Alias: word,
		Signer: caller.NewSigner(secrets[0], now, secrets[1:]...), Shared: shared, Now: now,
	}, nil
}

// IsBaseURL reports whether a text is the public address of a management API.
func IsBaseURL(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Scheme == "https" && address.Host != "" && address.User == nil &&
		!strings.ContainsAny(text, " ?#") &&
		strings.TrimSuffix(address.Path, "/") == "/v1"
}

// Peers makes the peers of a service (the services that it calls). Err returns its first error.
type Peers struct {
	signer *caller.Signer
	err    error
}

// Peers returns the maker of the peers of a service. If the configuration is invalid, Err returns its error.
func (c Config) Peers() *Peers {
	common, err := c.Validate()
	return &Peers{signer: common.Signer, err: err}
}

// Peer returns the peer whose replicas have these addresses, the value of the
// variable DOORWARD_<NAME>_URL.
func (d *Peers) Peer(name string, addresses []string) rpc.Peer {
	upstream, err := rpc.NewUpstream(name, addresses)
	if err != nil && d.err == nil {
		d.err = fmt.Errorf("%s: %w", AddressVariable(name), err)
	}
	return rpc.Peer{Upstream: upstream, Signer: d.signer}
}

// Err returns why a peer cannot be called, nil if all can.
func (d *Peers) Err() error { return d.err }

// AddressVariable returns the name of the variable that holds a service's addresses.
func AddressVariable(service string) string { return "DOORWARD_" + strings.ToUpper(service) + "_URL" }
