package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/service"
)

// Config is the service's environment.
type Config struct {
	service.Config
	Events   outbox.Config
	Database secure.Secret `env:"IDSITE_DATABASE_URL,DATABASE_URL" required:"true"`

	Suffix     string `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost"`
	ClientAPI  deployment.ClientAPI
	SignUp     bool          `env:"DOORWARD_SIGN_UP" default:"false" help:"whether anyone can create a tenant at /register"`
	KeyID      string        `env:"DOORWARD_BOOTSTRAP_KEY_ID"`
	KeySecret  secure.Secret `env:"DOORWARD_BOOTSTRAP_KEY_SECRET"`
	OwnerEmail string        `env:"DOORWARD_BOOTSTRAP_OWNER_EMAIL" default:"owner@doorward.localhost" help:"email of the first tenant's owner"`

	Outbound outbound.Config

	Peers Addresses
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"IDSITE_DATABASE_URL": "PostgreSQL, postgres://user:password@host/database (several hosts as host1,host2; " +
			"TLS by ?sslmode=verify-full)",
		"DOORWARD_IDSITE_SUFFIX": "domain under which tenants have their hosted pages, <tenant key>.id.<suffix>",
		"DOORWARD_BOOTSTRAP_KEY_ID": "id of the API key of the first tenant, which is made at the start; letters " +
			"and digits",
		"DOORWARD_BOOTSTRAP_KEY_SECRET": "secret of that key, at least 32 characters; make one with: openssl rand " +
			"-hex 24",
	}
}

// Addresses are the addresses of the peers, for a service in a process of its own.
type Addresses struct {
	Directory   []string `env:"DOORWARD_DIRECTORY_URL" help:"addresses of the directory service's replicas, http://host:port, comma separated"`
	Application []string `env:"DOORWARD_APPLICATION_URL" help:"addresses of the application service's replicas"`
	OAuth       []string `env:"DOORWARD_OAUTH_URL" help:"addresses of the oauth service's replicas"`
	MFA         []string `env:"DOORWARD_MFA_URL" help:"addresses of the mfa service's replicas"`
}

// check refuses a configuration by which the creation of the first tenant would fail halfway.
func (c Config) check() error {
	switch {
	case (c.KeyID == "") != (c.KeySecret == ""):
		return errors.New("DOORWARD_BOOTSTRAP_KEY_ID and DOORWARD_BOOTSTRAP_KEY_SECRET go together: set both or neither")
	case c.KeyID != "" && len(c.KeySecret) < 32:
		return errors.New(
			"DOORWARD_BOOTSTRAP_KEY_SECRET must have at least 32 characters; make one with: openssl rand -hex 24")
	case field.Email("email", c.OwnerEmail) != nil:
		return fmt.Errorf("DOORWARD_BOOTSTRAP_OWNER_EMAIL must be an email address such as owner@example.com; %q is none",
			c.OwnerEmail)
	}
	if err := deployment.CheckDomain("DOORWARD_IDSITE_SUFFIX", c.Suffix); err != nil {
		return err
	}
	return c.checkSites()
}

// checkSites refuses hosted pages on the site of the base address. A tenant can serve pages of its own
// there, and a page can set cookies for every host of its site: for that of the base address too, if
// they have a registrable domain in common. Names of this machine alone are excepted.
func (c Config) checkSites() error {
	base, pages := href.Base(c.BaseURL).Hostname(), "id."+c.Suffix
	if isLoopback(base) && isLoopback(pages) ||
		redirecturi.RegistrableDomain(base) != redirecturi.RegistrableDomain(pages) {
		return nil
	}
	return fmt.Errorf("DOORWARD_IDSITE_SUFFIX %q is on the same site as DOORWARD_BASE_URL: hosted pages at <tenant key>.%s could set cookies "+
		"for %s; take a suffix below another registrable domain", c.Suffix, pages, base)
}

// isLoopback reports whether a name is one of this machine alone (RFC 6761, section 6.3).
func isLoopback(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
