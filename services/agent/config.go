// Package agent connects an LDAP server or Active Directory to Doorward. It runs beside the
// directory server and makes outgoing calls only: it sends accounts and groups (directory
// synchronization, sync.go), checks passwords at logins by an LDAP bind (check.go), and reports
// its status (agent.go, status.go). ldap.go and search.go are the LDAP client, doorward.go is the
// HTTPS client. The service's side is services/directory/agent/sync.go and services/directory/agent/check.go.
package agent

import (
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/secure"
)

// Config are the environment variables of the agent. It reads the rest of its configuration from
// Doorward.
type Config struct {
	URL       string        `env:"DOORWARD_URL" required:"true" help:"address of Doorward, such as https://id.example.com"`
	CA        string        `env:"DOORWARD_CA" help:"CA certificates in PEM to verify Doorward with, besides those of the system"`
	ID        string        `env:"DOORWARD_AGENT_ID" required:"true" help:"id of the agent, the last part of its address"`
	KeyID     string        `env:"DOORWARD_AGENT_KEY_ID" required:"true" help:"id of a key of the agent (POST /v1/agents/{id}/keys), or of"`
	_         env.More      `help:"an administrator's API key"`
	KeySecret secure.Secret `env:"DOORWARD_AGENT_KEY_SECRET" required:"true" help:"secret of that key"`

	LDAPCA        string        `env:"DOORWARD_AGENT_LDAP_CA" help:"CA certificates in PEM to verify the directory server with, besides"`
	_             env.More      `help:"those of the system"`
	LDAPTLS       string        `env:"DOORWARD_AGENT_LDAP_TLS" default:"auto" help:"how connections are secured: ldaps, starttls, or auto,"`
	_             env.More      `help:"which does nothing without sslRequired, StartTLS on the ports 389 and 3268, and LDAPS on all others"`
	ReferralHosts []string      `env:"DOORWARD_AGENT_REFERRAL_HOSTS" help:"directory servers, host:port, that referrals may lead to with"`
	_             env.More      `help:"referralMode follow; the password of the agent is sent there"`
	Listen        string        `env:"DOORWARD_AGENT_LISTEN" default:"127.0.0.1:9390" help:"address of the status page"`
	Poll          time.Duration `env:"DOORWARD_AGENT_POLL" default:"0s" help:"interval between polls for changes, in place of pollInterval"`
	_             env.More      `help:"of the configuration"`
	Deletions     time.Duration `env:"DOORWARD_AGENT_DELETIONS" default:"15m" help:"time between two searches for deleted entries, at most"`
	_             env.More      `help:"15m, for which the ids of all entries are read"`
	Full          time.Duration `env:"DOORWARD_AGENT_FULL" default:"24h" help:"interval between full comparisons"`
	Hashes        bool          `env:"DOORWARD_AGENT_PASSWORD_HASHES" default:"false" help:"send those password hashes of passwordRdn that"`
	_             env.More      `help:"Doorward can compare (ldap only); by default no hash is sent and the directory server checks every"`
	_             env.More      `help:"password (LDAP bind)"`
	Checks        int           `env:"DOORWARD_AGENT_CHECKS" default:"200" min:"1" help:"password checks at a time"`
}
