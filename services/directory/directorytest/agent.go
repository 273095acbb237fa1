package directorytest

import (
	"testing"

	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agentconfig"
	"github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/directory/provider"
)

// NewAgent adds a directory that mirrors an LDAP server, and returns its agent, which has not called yet.
func NewAgent(t testing.TB, rules *app.Service, tenant id.ID) id.Ref {
	t.Helper()
	text := field.Some[string]
	config := agentconfig.Config{
		DirectoryHost: text("ldap.internal"), AgentUserDN: text("cn=agent"), AgentUserDNPassword: text("x"),
		BaseDN: text("dc=x"),
		AccountConfig: field.Some(agentconfig.Accounts{
			ObjectClass: text("person"), EmailRDN: text("mail"), GivenNameRDN: text("givenName"),
			SurnameRDN:  text("sn"),
			UsernameRDN: text("uid"), PasswordRDN: text("userPassword"),
		}),
		GroupConfig: field.Some(agentconfig.Groups{
			ObjectClass: text("group"), NameRDN: text("cn"), DescriptionRDN: text("description"),
		}),
	}
	made, err := rules.CreateDirectoryIn(t.Context(), tenant, provider.NewDirectory{
		NewDirectory: directory.NewDirectory{Name: text("LDAP")},
		Provider: field.Some(provider.NewProvider{
			ProviderID: text("ldap"), Agent: field.Some(agentconfig.Agent{Config: field.Some(config)}),
		}),
	})
	check(t, err)
	p, err := rules.Provider(t.Context(), id.Ref{Tenant: tenant, ID: made.ID})
	check(t, err)
	return id.Ref{Tenant: tenant, ID: p.AgentID}
}
