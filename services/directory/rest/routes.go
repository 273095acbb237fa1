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
	"github.com/doorward/doorward/services/directory/store"
)

// views renders resources: one method for each resource, in its file.
type views struct{ directoryview.Views }

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *directory.Service, base href.Base) {
	v := views{directoryview.Views{Base: base, Alias: svc.Alias()}}
	v1 := app.Group("/v1")

	v1.Get("/tenants/current", v.currentTenant)
	v1.Get("/tenants/:id", rest.Get(svc.Tenant, v.tenant))
	v1.Post("/tenants/:id", rest.Update(svc.UpdateTenant, v.tenant))
	v1.Get("/tenants/:id/directories", rest.List(store.Directories, svc.TenantDirectories, v.directory))
	v1.Get("/tenants/:id/accounts", rest.List(store.DirectoryAccounts, svc.TenantAccounts, v.Account))
	v1.Get("/tenants/:id/groups", rest.List(store.Groups, svc.TenantGroups, v.Group))
	v1.Get("/tenants/:id/agents", rest.List(store.Agents, svc.TenantAgents, v.agent))
	v1.Post("/tenants/:id/invitations", invite(svc, v))
	rest.CustomData(v1, "tenants", svc.CustomData().Tenants)

	v1.Post("/directories", rest.CreateOwn(svc.CreateDirectoryIn, v.directory))
	v1.Get("/directories/:id", rest.Get(svc.Directory, v.directory))
	v1.Post("/directories/:id", rest.Update(svc.UpdateDirectory, v.directory))
	v1.Delete("/directories/:id", rest.Delete(deleteDirectory(svc)))
	v1.Get("/directories/:id/accounts", rest.List(store.DirectoryAccounts, svc.DirectoryAccounts, v.Account))
	v1.Post("/directories/:id/accounts", v.CreateAccount(svc.CreateAccountIn, svc.SocialAccountIn))
	v1.Get("/directories/:id/groups", rest.List(store.DirectoryGroups, svc.DirectoryGroups, v.Group))
	v1.Post("/directories/:id/groups", rest.Create(svc.CreateGroupIn, v.Group))
	v1.Get("/directories/:id/provider", rest.Get(svc.Provider, v.provider))
	v1.Post("/directories/:id/provider", rest.Update(svc.UpdateProvider, v.provider))
	rest.CustomData(v1, "directories", svc.CustomData().Directories)

	v1.Get("/groups/:id", rest.Get(svc.Group, v.Group))
	v1.Post("/groups/:id", rest.Update(svc.UpdateGroup, v.Group))
	v1.Delete("/groups/:id", rest.Delete(svc.DeleteGroup))
	v1.Get("/groups/:id/accounts", rest.List(store.Accounts, svc.GroupAccounts, v.Account))
	v1.Get("/groups/:id/accountMemberships", rest.List(store.Memberships, svc.GroupMemberships, v.membership))
	rest.CustomData(v1, "groups", svc.CustomData().Groups)
	v1.Post("/groupMemberships", rest.CreateOwn(svc.CreateMembership, v.membership))
	v1.Get("/groupMemberships/:id", rest.Get(svc.Membership, v.membership))
	v1.Delete("/groupMemberships/:id", rest.Delete(svc.DeleteMembership))

	v1.Post("/accounts/emailVerificationTokens/:token", verifyEmail(svc, v))
	v1.Get("/accounts/:id", rest.Get(svc.Account, v.Account))
	v1.Post("/accounts/:id", updateAccount(svc, v))
	v1.Delete("/accounts/:id", rest.Delete(svc.DeleteAccount))
	v1.Get("/accounts/:id/groups", rest.List(store.Groups, svc.AccountGroups, v.Group))
	v1.Get("/accounts/:id/groupMemberships", rest.List(store.Memberships, svc.AccountMemberships, v.membership))
	v1.Get("/accounts/:id/accountLinks", rest.List(store.AccountLinks, svc.AccountLinks, v.accountLink))
	v1.Get("/accounts/:id/linkedAccounts", rest.List(store.Accounts, svc.LinkedAccounts, v.Account))
	v1.Get("/accounts/:id/providerData", rest.Get(svc.ProviderData, v.providerData))
	rest.CustomData(v1, "accounts", svc.CustomData().Accounts)
	v1.Post("/accountLinks", malformedLinkErrors(rest.CreateOwn(svc.CreateAccountLink, v.accountLink)))
	v1.Get("/accountLinks/:id", rest.Get(svc.AccountLink, v.accountLink))
	v1.Delete("/accountLinks/:id", rest.Delete(svc.DeleteAccountLink))

	v1.Get("/accountCreationPolicies/:id", rest.Get(svc.CreationPolicy, v.creationPolicy))
	v1.Post("/accountCreationPolicies/:id", rest.Update(svc.UpdateCreationPolicy, v.creationPolicy))
	v1.Get("/accountCreationPolicies/:id/verificationEmailTemplates",
		rest.List(store.Templates, svc.Templates(directoryapi.Verification), v.template))
	v1.Get("/accountCreationPolicies/:id/verificationSuccessEmailTemplates",
		rest.List(store.Templates, svc.Templates(directoryapi.VerificationSuccess), v.template))
	v1.Get("/accountCreationPolicies/:id/existingAccountEmailTemplates",
		rest.List(store.Templates, svc.Templates(directoryapi.ExistingAccount), v.template))
	v1.Get("/accountCreationPolicies/:id/welcomeEmailTemplates", rest.List(store.Templates, svc.Templates(directoryapi.Welcome), v.template))

	v1.Get("/passwordPolicies/:id", rest.Get(svc.PasswordPolicy, v.passwordPolicy))
	v1.Post("/passwordPolicies/:id", rest.Update(svc.UpdatePasswordPolicy, v.passwordPolicy))
	v1.Get("/passwordPolicies/:id/strength", rest.Get(svc.PasswordPolicy, v.strength))
	v1.Post("/passwordPolicies/:id/strength", rest.Update(svc.UpdateStrength, v.strength))
	v1.Get("/passwordPolicies/:id/resetEmailTemplates", rest.List(store.Templates, svc.Templates(directoryapi.Reset), v.template))
	v1.Get("/passwordPolicies/:id/resetSuccessEmailTemplates", rest.List(store.Templates, svc.Templates(directoryapi.ResetSuccess),
		v.template))

	v1.Get("/emailTemplates/:id", rest.Get(svc.Template, v.template))
	v1.Post("/emailTemplates/:id", rest.Update(svc.UpdateTemplate, v.template))

	v1.Get("/schemas/:id", rest.Get(svc.Schema, v.schema))
	v1.Get("/schemas/:id/fields", rest.List(store.Fields, svc.SchemaFields, v.field))
	v1.Get("/fields/:id", rest.Get(svc.Field, v.field))
	v1.Post("/fields/:id", rest.Update(svc.UpdateField, v.field))

	v1.Get("/agents/:id", rest.Get(svc.Agent, v.agent))
	v1.Post("/agents/:id", rest.Update(svc.UpdateAgent, v.agent))
	v1.Post("/agents/:id/ping", rest.Update(svc.Ping, v.agent))
	v1.Get("/agents/:id/keys", rest.List(store.AgentKeys, svc.AgentKeys, v.agentKey))
	v1.Post("/agents/:id/keys", createAgentKey(svc, v))
	v1.Delete("/agents/:id/keys/:key", deleteAgentKey(svc))
	v1.Get("/agents/:id/configuration", agentConfiguration(svc))
	v1.Post("/agents/:id/sync", rest.Accept(svc.Sync))
	v1.Get("/agents/:id/refusals", rest.List(store.Refusals, svc.Refusals, v.refusal))
	v1.Get("/agents/:id/authentications", agentChecks(svc))
	v1.Post("/agents/:id/authentications/:check", answerCheck(svc))
	v1.Get("/agents/:id/download", agentDownload(svc))
	rules := rest.MappingRules(base)
	v1.Get("/userInfoMappingRules/:id", rest.Get(svc.MappingRules(mappingrule.UserInfo), rules))
	v1.Post("/userInfoMappingRules/:id", rest.Update(svc.UpdateMappingRules(mappingrule.UserInfo), rules))
	v1.Get("/attributeStatementMappingRules/:id", rest.Get(svc.MappingRules(mappingrule.AttributeStatement), rules))
	v1.Post("/attributeStatementMappingRules/:id", rest.Update(svc.UpdateMappingRules(mappingrule.AttributeStatement), rules))
	v1.Get("/samlServiceProviderMetadatas/:id", rest.SAMLMetadata(svc.SAMLServiceProvider, v.samlMetadata, v.samlDescriptor))
	v1.Get("/x509certificates/:id", rest.Certificate(svc.Certificate))
}
