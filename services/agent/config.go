// Package agent connects an LDAP server or Active Directory to Doorward. It runs beside the
// directory server and makes outgoing calls only: it sends accounts and groups (directory
// synchronization, sync.go), checks passwords at logins by an LDAP bind (check.go), and reports
// its status (agent.go, status.go). ldap.go and search.go are the LDAP client, doorward.go is the
// HTTPS client. The service's side is services/directory/agent/sync.go and services/directory/agent/check.go.
package agent

import (
	"time"

	"github.com/doorward/doorward/pkg/secure"
)

// Config are the environment variables of the agent. It reads the rest of its configuration from
// Doorward.
type Config struct {
	URL       string        `env:"DOORWARD_URL" required:"true"`
	CA        string        `env:"DOORWARD_CA"`
	ID        string        `env:"DOORWARD_AGENT_ID" required:"true"`
	KeyID     string        `env:"DOORWARD_AGENT_KEY_ID" required:"true"`
	KeySecret secure.Secret `env:"DOORWARD_AGENT_KEY_SECRET" required:"true" help:"secret of that key"`

	LDAPCA        string        `env:"DOORWARD_AGENT_LDAP_CA"`
	LDAPTLS       string        `env:"DOORWARD_AGENT_LDAP_TLS" default:"auto"`
	ReferralHosts []string      `env:"DOORWARD_AGENT_REFERRAL_HOSTS"`
	Listen        string        `env:"DOORWARD_AGENT_LISTEN" default:"127.0.0.1:9390" help:"address of the status page"`
	Poll          time.Duration `env:"DOORWARD_AGENT_POLL" default:"0s"`
	Deletions     time.Duration `env:"DOORWARD_AGENT_DELETIONS" default:"15m"`
	Full          time.Duration `env:"DOORWARD_AGENT_FULL" default:"24h" help:"interval between full comparisons"`
	Hashes        bool          `env:"DOORWARD_AGENT_PASSWORD_HASHES" default:"false"`
	Checks        int           `env:"DOORWARD_AGENT_CHECKS" default:"200" min:"1" help:"password checks at a time"`
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_URL":      "address of Doorward, such as https://id.example.com",
		"DOORWARD_CA":       "CA certificates in PEM to verify Doorward with, besides those of the system",
		"DOORWARD_AGENT_ID": "id of the agent, the last part of its address",
		"DOORWARD_AGENT_KEY_ID": "id of a key of the agent (POST /v1/agents/{id}/keys), or of an administrator's " +
			"API key",
		"DOORWARD_AGENT_LDAP_CA": "CA certificates in PEM to verify the directory server with, besides those of the " +
			"system",
		"DOORWARD_AGENT_LDAP_TLS": "how connections are secured: ldaps, starttls, or auto, which does nothing " +
			"without sslRequired, StartTLS on the ports 389 and 3268, and LDAPS on all others",
		"DOORWARD_AGENT_REFERRAL_HOSTS": "directory servers, host:port, that referrals may lead to with " +
			"referralMode follow; the password of the agent is sent there",
		"DOORWARD_AGENT_POLL": "interval between polls for changes, in place of pollInterval of the configuration",
		"DOORWARD_AGENT_DELETIONS": "time between two searches for deleted entries, at most 15m, for which the ids " +
			"of all entries are read",
		"DOORWARD_AGENT_PASSWORD_HASHES": "send those password hashes of passwordRdn that Doorward can compare " +
			"(ldap only); by default no hash is sent and the directory server checks every password (LDAP bind)",
	}
}
