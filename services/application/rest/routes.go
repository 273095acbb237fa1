// Package rest is the HTTP layer of the application service: routes.go lists its endpoints, and
// each noun has a file with its representation. Most handlers are the generic ones of pkg/rest;
// the others are in the files of their nouns.
package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/pkg/rest/directoryview"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/saml"
	"github.com/doorward/doorward/services/application/store"
)

// views renders resources as JSON: one method per noun, in the noun's file.
type views struct {
	directoryview.Views
	saml *saml.Service
}

// Mount adds the service's endpoints to its app.
func Mount(app *fiber.App, svc *application.Service, saml *saml.Service, base href.Base) {
	v := views{directoryview.Views{Base: base, Alias: svc.Alias()}, saml}
	v1 := app.Group("/v1")

	v1.Get("/tenants/:id/applications", rest.List(store.Applications, svc.ListApplications, v.application))
	v1.Get("/tenants/:id/organizations", rest.List(store.Organizations, svc.ListOrganizations, v.organization))

	v1.Get("/tenants/:id/registeredSamlServiceProviders",
		rest.List(store.SAMLServiceProviders, saml.ListSAMLServiceProviders,
			v.serviceProvider))

	v1.Post("/applications", createWithDirectory(svc.CreateApplication, v.application))
	v1.Get("/applications/:id", rest.Get(svc.Application, v.application))
	v1.Post("/applications/:id", rest.Update(svc.UpdateApplication, v.application))
	v1.Delete("/applications/:id", rest.Delete(svc.DeleteApplication))
	v1.Get("/applications/:id/accounts",
		rest.List(accountAttributes, svc.AccountLister(store.ApplicationKind), v.Account))
	v1.Post("/applications/:id/accounts",
		v.CreateAccount(svc.AccountCreator(store.ApplicationKind), svc.CreateProviderAccount))
	v1.Get("/applications/:id/groups", rest.List(groupAttributes, svc.GroupLister(store.ApplicationKind), v.Group))
	v1.Post("/applications/:id/groups", rest.Create(svc.GroupCreator(store.ApplicationKind), v.Group))
	v1.Get("/applications/:id/accountStoreMappings", rest.List(store.Mappings, svc.ListApplicationMappings, v.mapping))
	v1.Post("/applications/:id/loginAttempts", attemptLogin(svc, v))
	v1.Post("/applications/:id/verificationEmails", rest.Accept(svc.SendVerificationMail))
	v1.Post("/applications/:id/passwordResetTokens", createPasswordReset(svc, v))
	v1.Get("/applications/:id/passwordResetTokens/:token", getPasswordReset(svc, v))
	v1.Post("/applications/:id/passwordResetTokens/:token", consumePasswordReset(svc, v))
	rest.CustomData(v1, "applications", svc.CustomData(store.ApplicationKind))

	v1.Post("/accountStoreMappings", rest.CreateOwn(svc.CreateMapping, v.mapping))
	v1.Get("/accountStoreMappings/:id", rest.Get(svc.MappingReader(store.ApplicationKind), v.mapping))
	v1.Post("/accountStoreMappings/:id", rest.Update(svc.MappingUpdater(store.ApplicationKind), v.mapping))
	v1.Delete("/accountStoreMappings/:id", rest.Delete(svc.MappingDeleter(store.ApplicationKind)))

	v1.Post("/organizations", createWithDirectory(svc.CreateOrganization, v.organization))
	v1.Get("/organizations/:id", rest.Get(svc.Organization, v.organization))
	v1.Post("/organizations/:id", rest.Update(svc.UpdateOrganization, v.organization))
	v1.Delete("/organizations/:id", rest.Delete(svc.DeleteOrganization))
	v1.Get("/organizations/:id/accounts",
		rest.List(accountAttributes, svc.AccountLister(store.OrganizationKind), v.Account))
	v1.Post("/organizations/:id/accounts",
		v.CreateAccount(svc.AccountCreator(store.OrganizationKind), svc.RefuseOrganizationProviderAccount))
	v1.Get("/organizations/:id/groups", rest.List(groupAttributes, svc.GroupLister(store.OrganizationKind), v.Group))
	v1.Post("/organizations/:id/groups", rest.Create(svc.GroupCreator(store.OrganizationKind), v.Group))
	v1.Get("/organizations/:id/accountStoreMappings",
		rest.List(store.Mappings, svc.ListOrganizationMappings, v.organizationMapping))
	rest.CustomData(v1, "organizations", svc.CustomData(store.OrganizationKind))

	v1.Post("/organizationAccountStoreMappings", rest.CreateOwn(svc.CreateOrganizationMapping, v.organizationMapping))
	v1.Get("/organizationAccountStoreMappings/:id",
		rest.Get(svc.MappingReader(store.OrganizationKind), v.organizationMapping))
	v1.Post("/organizationAccountStoreMappings/:id",
		rest.Update(svc.MappingUpdater(store.OrganizationKind), v.organizationMapping))
	v1.Delete("/organizationAccountStoreMappings/:id", rest.Delete(svc.MappingDeleter(store.OrganizationKind)))

	v1.Get("/accountLinkingPolicies/:id", rest.Get(svc.LinkingPolicy, v.linkingPolicy))
	v1.Post("/accountLinkingPolicies/:id", rest.Update(svc.UpdateLinkingPolicy, v.linkingPolicy))

	v1.Post("/registeredSamlServiceProviders", rest.CreateOwn(saml.CreateSAMLServiceProvider, v.serviceProvider))
	v1.Get("/registeredSamlServiceProviders/:id", rest.Get(saml.SAMLServiceProvider, v.serviceProvider))
	v1.Post("/registeredSamlServiceProviders/:id", rest.Update(saml.UpdateSAMLServiceProvider, v.serviceProvider))
	v1.Delete("/registeredSamlServiceProviders/:id", rest.Delete(saml.DeleteSAMLServiceProvider))

	v1.Get("/samlPolicies/:id", rest.Get(svc.ApplicationOfSAMLPolicy, v.samlPolicy))
	v1.Get("/samlServiceProviders/:id", rest.Get(svc.ApplicationOfSAMLPolicy, v.ownServiceProvider))
	v1.Post("/samlServiceProviders/:id/defaultRelayStates", createRelayState(saml))
	v1.Get("/samlIdentityProviders/:id", rest.Get(saml.SAMLIdentityProvider, v.identityProvider))
	v1.Post("/samlIdentityProviders/:id", rest.Update(saml.UpdateSAMLIdentityProvider, v.identityProvider))
	v1.Get("/samlIdentityProviders/:id/registeredSamlServiceProviders",
		rest.List(store.SAMLServiceProviders, saml.ListSAMLServiceProvidersOfIdentityProvider, v.serviceProvider))
	v1.Get("/samlIdentityProviders/:id/samlServiceProviderRegistrations",
		rest.List(store.SAMLRegistrations, saml.ListSAMLRegistrations, v.registration))
	v1.Post("/samlIdentityProviders/:id/samlServiceProviderRegistrations",
		rest.Create(saml.CreateSAMLRegistration, v.registration))
	v1.Post("/samlIdentityProviders/:id/authnVerifications", verifyAuthnRequest(saml, v))
	v1.Post("/samlIdentityProviders/:id/samlResponses", createSAMLResponse(saml))
	v1.Get("/samlServiceProviderRegistrations/:id", rest.Get(saml.SAMLRegistration, v.registration))
	v1.Post("/samlServiceProviderRegistrations/:id", rest.Update(saml.UpdateSAMLRegistration, v.registration))
	v1.Delete("/samlServiceProviderRegistrations/:id", rest.Delete(saml.DeleteSAMLRegistration))
	v1.Get("/samlIdentityProviderMetadatas/:id",
		rest.SAMLMetadata(saml.SAMLIdentityProvider, v.identityMetadata, v.identityDescriptor))
	v1.Get("/x509certificates/:id", rest.Certificate(saml.SAMLCertificate))
	rules := rest.MappingRules(base)
	v1.Get("/attributeStatementMappingRules/:id", rest.Get(saml.SAMLRules, rules))
	v1.Post("/attributeStatementMappingRules/:id", rest.Update(saml.UpdateSAMLRules, rules))

	v1.Get("/directories/:id/applications", rest.List(store.Applications, svc.ListDirectoryApplications, v.application))
	v1.Get("/directories/:id/applicationMappings",
		rest.List(store.Mappings, svc.DirectoryMappingLister(store.ApplicationKind), v.mapping))
	v1.Get("/directories/:id/organizations",
		rest.List(store.Organizations, svc.ListDirectoryOrganizations, v.organization))
	v1.Get("/directories/:id/organizationMappings",
		rest.List(store.Mappings, svc.DirectoryMappingLister(store.OrganizationKind),
			v.organizationMapping))
	v1.Get("/groups/:id/applications", rest.List(store.Applications, svc.ListGroupApplications, v.application))
	v1.Get("/groups/:id/accountStoreMappings", rest.List(store.Mappings, svc.ListGroupMappings, v.mapping))
	v1.Get("/accounts/:id/applications", rest.List(store.Applications, svc.ListAccountApplications, v.application))
	v1.Delete("/accounts/:id/lockout", rest.Delete(svc.LiftLockout))
}
