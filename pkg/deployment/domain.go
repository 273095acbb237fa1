package deployment

import (
	"fmt"
	"regexp"
)

// ClientAPI has the domain below which applications have their Client APIs. The application service
// allows their origins, the oauth service returns their addresses, and the idsite service refuses it
// as a custom domain of a tenant.
type ClientAPI struct {
	Suffix string `env:"DOORWARD_CLIENT_API_SUFFIX" default:"apps.localhost"`
}

// Help has the help texts that are longer than a line.
func (ClientAPI) Help() map[string]string {
	return map[string]string{
		"DOORWARD_CLIENT_API_SUFFIX": "domain under which each application has its Client API, <dnsLabel>.<suffix>",
	}
}

// Open validates and returns the suffix.
func (c ClientAPI) Open() (suffix string, err error) {
	return c.Suffix, CheckDomain("DOORWARD_CLIENT_API_SUFFIX", c.Suffix)
}

// maxDomain leaves room for two labels in front (RFC 1035, section 2.3.4).
const maxDomain = 253 - 2*64

var domain = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`)

// CheckDomain returns an error if the value of a variable is no domain, or is too long for two further
// labels.
func CheckDomain(variable, value string) error {
	if !domain.MatchString(value) || len(value) > maxDomain {
		return fmt.Errorf(
			"%s must be a host name in lower case of at most %d characters, such as id.example.com; %q is none",
			variable,
			maxDomain, value)
	}
	return nil
}
