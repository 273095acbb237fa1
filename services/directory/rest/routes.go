// Package rest is the HTTP face of the directory service: routes.go lists its
// endpoints, and each noun has a file with its representation and, where an
// endpoint is more than reading, asking and answering, its handler.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// views renders resources: one method per noun, in the noun's file.
type views struct {
	base  href.Base
	alias string // that names the product on the wire
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *directory.Service, base href.Base) {
	v := views{base, svc.Alias()}
	v1 := app.Group("/v1")

	v1.Get("/tenants/current", v.currentTenant)
	v1.Get("/tenants/:id", rest.Get(svc.Tenant, v.tenant))
	v1.Get("/tenants/:id/directories", rest.List(store.Directories, svc.TenantDirectories, v.directory))
	v1.Get("/tenants/:id/accounts", rest.List(store.Accounts, svc.TenantAccounts, v.account))
	v1.Get("/tenants/:id/agents", rest.List(store.Agents, svc.TenantAgents, v.agent))

	v1.Post("/directories", rest.CreateOwn(svc.NewDirectory, v.directory))
	v1.Get("/directories/:id", rest.Get(svc.Directory, v.directory))
	v1.Post("/directories/:id", rest.Update(svc.UpdateDirectory, v.directory))
	v1.Delete("/directories/:id", rest.Delete(svc.RemoveDirectory))
	v1.Get("/directories/:id/accounts", rest.List(store.Accounts, svc.DirectoryAccounts, v.account))
	v1.Post("/directories/:id/accounts", createAccount(svc, v))
	v1.Get("/directories/:id/provider", rest.Get(svc.Provider, v.provider))
	v1.Post("/directories/:id/provider", rest.Update(svc.UpdateProvider, v.provider))

	v1.Post("/accounts/emailVerificationTokens/:token", verify(svc, v))
	v1.Get("/accounts/:id", rest.Get(svc.Account, v.account))
	v1.Post("/accounts/:id", rest.Update(svc.UpdateAccount, v.account))
	v1.Delete("/accounts/:id", rest.Delete(svc.DeleteAccount))
	v1.Get("/accounts/:id/providerData", rest.Get(svc.ProviderData, v.providerData))

	v1.Get("/accountCreationPolicies/:id", rest.Get(svc.CreationPolicy, v.creationPolicy))
	v1.Post("/accountCreationPolicies/:id", rest.Update(svc.UpdateCreationPolicy, v.creationPolicy))

	v1.Get("/agents/:id", rest.Get(svc.Agent, v.agent))
	v1.Post("/agents/:id", rest.Update(svc.UpdateAgent, v.agent))
	v1.Post("/agents/:id/ping", rest.Update(svc.Ping, v.agent))
	v1.Get("/userInfoMappingRules/:id", rest.Get(svc.MappingRules(store.UserInfo), v.mappingRules))
	v1.Post("/userInfoMappingRules/:id", rest.Update(svc.UpdateMappingRules(store.UserInfo), v.mappingRules))
	v1.Get("/attributeStatementMappingRules/:id", rest.Get(svc.MappingRules(store.AttributeStatement), v.mappingRules))
	v1.Post("/attributeStatementMappingRules/:id", rest.Update(svc.UpdateMappingRules(store.AttributeStatement), v.mappingRules))
	v1.Get("/samlServiceProviderMetadatas/:id", samlMetadata(svc, v))
	v1.Get("/x509certificates/:id", certificate(svc))
}
