// Package rest is the HTTP layer of the directory service: routes.go lists its endpoints (routes),
// and each resource has a file with its representation (view) and, where reading, asking and
// answering is not all of it, its handler.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/mappingrule"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/agent"
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/provider"
	"github.com/doorward/doorward/services/directory/store"
)

// views renders resources: one method for each resource, in its file.
type views struct{ directoryview.Views }

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, core *directory.Service, providers *provider.Service, agents *agent.Service,
	base href.Base) {
	v := views{directoryview.Views{Base: base, Alias: core.Alias()}}
	v1 := app.Group("/v1")

	v1.Get("/tenants/current", v.currentTenant)
	v1.Get("/tenants/:id", rest.Get(core.Tenant, v.tenant))
	v1.Post("/tenants/:id", rest.Update(core.UpdateTenant, v.tenant))
	v1.Get("/tenants/:id/directories", rest.List(store.Directories, core.TenantDirectories, v.directory))
	v1.Get("/tenants/:id/accounts", rest.List(store.DirectoryAccounts, core.TenantAccounts, v.Account))
	v1.Get("/tenants/:id/groups", rest.List(store.Groups, core.TenantGroups, v.Group))
	v1.Get("/tenants/:id/agents", rest.List(store.Agents, agents.TenantAgents, v.agent))
	v1.Post("/tenants/:id/invitations", invite(core, v))
	rest.CustomData(v1, "tenants", core.CustomData().Tenants)

	v1.Post("/directories", rest.CreateOwn(providers.CreateDirectoryIn, v.directory))
	v1.Get("/directories/:id", rest.Get(core.Directory, v.directory))
	v1.Post("/directories/:id", rest.Update(providers.UpdateDirectoryIn, v.directory))
	v1.Delete("/directories/:id", rest.Delete(deleteDirectory(core)))
	v1.Get("/directories/:id/accounts", rest.List(store.DirectoryAccounts, core.DirectoryAccounts, v.Account))
	v1.Post("/directories/:id/accounts", v.CreateAccount(core.CreateAccountIn, providers.SocialAccountIn))
	v1.Get("/directories/:id/groups", rest.List(store.DirectoryGroups, core.DirectoryGroups, v.Group))
	v1.Post("/directories/:id/groups", rest.Create(core.CreateGroupIn, v.Group))
	v1.Get("/directories/:id/provider", rest.Get(providers.Provider, v.provider))
	v1.Post("/directories/:id/provider", rest.Update(providers.UpdateProvider, v.provider))
	rest.CustomData(v1, "directories", core.CustomData().Directories)

	v1.Get("/groups/:id", rest.Get(core.Group, v.Group))
	v1.Post("/groups/:id", rest.Update(core.UpdateGroup, v.Group))
	v1.Delete("/groups/:id", rest.Delete(core.DeleteGroup))
	v1.Get("/groups/:id/accounts", rest.List(store.Accounts, core.GroupAccounts, v.Account))
	v1.Get("/groups/:id/accountMemberships", rest.List(store.Memberships, core.GroupMemberships, v.membership))
	rest.CustomData(v1, "groups", core.CustomData().Groups)
	v1.Post("/groupMemberships", rest.CreateOwn(core.CreateMembership, v.membership))
	v1.Get("/groupMemberships/:id", rest.Get(core.Membership, v.membership))
	v1.Delete("/groupMemberships/:id", rest.Delete(core.DeleteMembership))

	v1.Post("/accounts/emailVerificationTokens/:token", verifyEmail(core, v))
	v1.Get("/accounts/:id", rest.Get(core.Account, v.Account))
	v1.Post("/accounts/:id", updateAccount(core, v))
	v1.Delete("/accounts/:id", rest.Delete(core.DeleteAccount))
	v1.Get("/accounts/:id/groups", rest.List(store.Groups, core.AccountGroups, v.Group))
	v1.Get("/accounts/:id/groupMemberships", rest.List(store.Memberships, core.AccountMemberships, v.membership))
	v1.Get("/accounts/:id/accountLinks", rest.List(store.AccountLinks, providers.AccountLinks, v.accountLink))
	v1.Get("/accounts/:id/linkedAccounts", rest.List(store.Accounts, providers.LinkedAccounts, v.Account))
	v1.Get("/accounts/:id/providerData", rest.Get(providers.ProviderData, v.providerData))
	rest.CustomData(v1, "accounts", core.CustomData().Accounts)
	v1.Post("/accountLinks", malformedLinkErrors(rest.CreateOwn(providers.CreateAccountLink, v.accountLink)))
	v1.Get("/accountLinks/:id", rest.Get(providers.AccountLink, v.accountLink))
	v1.Delete("/accountLinks/:id", rest.Delete(providers.DeleteAccountLink))

	v1.Get("/accountCreationPolicies/:id", rest.Get(core.CreationPolicy, v.creationPolicy))
	v1.Post("/accountCreationPolicies/:id", rest.Update(core.UpdateCreationPolicy, v.creationPolicy))
	v1.Get("/accountCreationPolicies/:id/verificationEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.Verification), v.template))
	v1.Get("/accountCreationPolicies/:id/verificationSuccessEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.VerificationSuccess), v.template))
	v1.Get("/accountCreationPolicies/:id/existingAccountEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.ExistingAccount), v.template))
	v1.Get("/accountCreationPolicies/:id/welcomeEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.Welcome), v.template))

	v1.Get("/passwordPolicies/:id", rest.Get(core.PasswordPolicy, v.passwordPolicy))
	v1.Post("/passwordPolicies/:id", rest.Update(core.UpdatePasswordPolicy, v.passwordPolicy))
	v1.Get("/passwordPolicies/:id/strength", rest.Get(core.PasswordPolicy, v.strength))
	v1.Post("/passwordPolicies/:id/strength", rest.Update(core.UpdateStrength, v.strength))
	v1.Get("/passwordPolicies/:id/resetEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.Reset), v.template))
	v1.Get("/passwordPolicies/:id/resetSuccessEmailTemplates",
		rest.List(store.Templates, core.Templates(directoryapi.ResetSuccess),
			v.template))

	v1.Get("/emailTemplates/:id", rest.Get(core.Template, v.template))
	v1.Post("/emailTemplates/:id", rest.Update(core.UpdateTemplate, v.template))

	v1.Get("/schemas/:id", rest.Get(core.Schema, v.schema))
	v1.Get("/schemas/:id/fields", rest.List(store.Fields, core.SchemaFields, v.field))
	v1.Get("/fields/:id", rest.Get(core.Field, v.field))
	v1.Post("/fields/:id", rest.Update(core.UpdateField, v.field))

	v1.Get("/agents/:id", rest.Get(agents.Agent, v.agent))
	v1.Post("/agents/:id", rest.Update(agents.UpdateAgent, v.agent))
	v1.Post("/agents/:id/ping", rest.Update(agents.Ping, v.agent))
	v1.Get("/agents/:id/keys", rest.List(store.AgentKeys, agents.AgentKeys, v.agentKey))
	v1.Post("/agents/:id/keys", createAgentKey(agents, v))
	v1.Delete("/agents/:id/keys/:key", deleteAgentKey(agents))
	v1.Get("/agents/:id/configuration", agentConfiguration(agents))
	v1.Post("/agents/:id/sync", rest.Accept(agents.Sync))
	v1.Get("/agents/:id/refusals", rest.List(agentstore.Refusals, agents.Refusals, v.refusal))
	v1.Get("/agents/:id/authentications", agentChecks(agents))
	v1.Post("/agents/:id/authentications/:check", answerCheck(agents))
	v1.Get("/agents/:id/download", agentDownload(agents))
	rules := rest.MappingRules(base)
	v1.Get("/userInfoMappingRules/:id", rest.Get(providers.MappingRules(mappingrule.UserInfo), rules))
	v1.Post("/userInfoMappingRules/:id", rest.Update(providers.UpdateMappingRules(mappingrule.UserInfo), rules))
	v1.Get("/attributeStatementMappingRules/:id",
		rest.Get(providers.MappingRules(mappingrule.AttributeStatement), rules))
	v1.Post("/attributeStatementMappingRules/:id",
		rest.Update(providers.UpdateMappingRules(mappingrule.AttributeStatement), rules))
	v1.Get("/samlServiceProviderMetadatas/:id",
		rest.SAMLMetadata(providers.SAMLServiceProvider, v.samlMetadata, v.samlDescriptor))
	v1.Get("/x509certificates/:id", rest.Certificate(providers.Certificate))
}
