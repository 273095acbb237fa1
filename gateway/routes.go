package gateway

// routes is the route table: every public REST endpoint (path). A path that is not in the
// table is answered with 404. router.go matches a request against the table; the handlers of
// the endpoints are mounted in services/*/rest/routes.go.
//
// The columns are:
//
//   - Methods: G is GET and HEAD, P is POST, U is PUT, D is DELETE, O is OPTIONS; other methods are
//     answered with 405. A is every method: the service decides which methods it allows.
//   - Access: key requires an API key; these lines are all below /v1, where a path that is not listed requires one
//     too. user requires an API key too, not a session of a user: it
//     marks what logs an end user in (logins, tokens, codes, mails), which has rate limits of its
//     own. agent requires an API key too, and also accepts the keys of the LDAP agent that the
//     path names. public and hosted require no API key: public is called by programs and identity
//     providers, hosted by browsers, with cookies. client is public with the rate limits of
//     the clients of OpenID providers. private is for clients on this machine or on a
//     private network.
//   - Path: :name stands for one segment, * for the rest of the path, {a,b} for either of two
//     segments. A path that begins with two slashes is chosen by the host or by the token of a
//     request (hosted.go).
//   - Service: the service that answers. A request for a|b is sent to the service a and, if a
//     answers 404, to the service b. gateway is for pages of the gateway itself (pages.go).
//   - Resource: the kind of resource in the answer, [kind] for a collection of such resources
//     (a POST to a collection returns one resource), - where no link of the answer can be expanded.
const routes = `
G-- key     /v1/tenants/current                                      directory     tenant
GP- key     /v1/tenants/:id                                          directory     tenant
G-- key     /v1/tenants/:id/applications                             application   [application]
G-- key     /v1/tenants/:id/organizations                            application   [organization]
G-- key     /v1/tenants/:id/directories                              directory     [directory]
G-- key     /v1/tenants/:id/accounts                                 directory     [account]
G-- key     /v1/tenants/:id/groups                                   directory     [group]
G-- key     /v1/tenants/:id/agents                                   directory     -
G-- key     /v1/tenants/:id/phones                                   mfa           [phone]
G-- key     /v1/tenants/:id/smtpServers                              notification  [smtpServer]
G-- key     /v1/tenants/:id/{idSites,idsites}                        idsite        -
G-- key     /v1/tenants/:id/registeredSamlServiceProviders           application   -
GP- key     /v1/tenants/:id/signingKeys                              oauth         [signingKey]
-P- key     /v1/tenants/:id/invitations                              directory     -

-P- key     /v1/applications                                         application   application
GPD key     /v1/applications/:id                                     application   application
GP- key     /v1/applications/:id/accounts                            application   [account]
GP- key     /v1/applications/:id/groups                              application   [group]
G-- key     /v1/applications/:id/accountStoreMappings                application   [accountStoreMapping]
-P- user    /v1/applications/:id/loginAttempts                       application   loginAttempt
--- key     /v1/applications/:id/loginAttempts/cancel                application   -
-P- user    /v1/applications/:id/verificationEmails                  application   -
-P- user    /v1/applications/:id/passwordResetTokens                 application   passwordResetToken
GP- user    /v1/applications/:id/passwordResetTokens/:token          application   passwordResetToken
G-- key     /v1/applications/:id/apiKeys                             oauth         [apiKey]
--- key     /v1/applications/:id/authTokens                          oauth         -
G-- key     /v1/applications/:id/authTokens/:token                   oauth         accessToken
-P- user    /v1/applications/:id/oauth/{token,revoke}                oauth         -
G-- public  /v1/applications/:id/saml/sso/idpRedirect                idsite        -
-P- key     /v1/accountStoreMappings                                 application   accountStoreMapping
GPD key     /v1/accountStoreMappings/:id                             application   accountStoreMapping
GP- key     /v1/accountLinkingPolicies/:id                           application   accountLinkingPolicy
GP- key     /v1/applicationWebConfigs/:id                            oauth         webConfig
GP- key     /v1/oAuthPolicies/:id                                    oauth         oAuthPolicy
GP- key     /v1/signingKeys/:id                                      oauth         signingKey
GP- key     /v1/openIdSettings/:id                                   oauth         openIdSettings
GP- key     /v1/openIdProviders/:id                                  oauth         openIdProvider
GP- key     /v1/applications/:id/openIdClients                       oauth         [openIdClient]
GPD key     /v1/openIdClients/:id                                    oauth         openIdClient
GP- key     /v1/openIdClients/:id/secrets                            oauth         -
--D key     /v1/openIdClients/:id/secrets/:secret                    oauth         -
-P- key     /v1/openIdClients/:id/tokenPreviews                      oauth         -
GP- key     /v1/openIdProviders/:id/registrationTokens               oauth         -
--D key     /v1/openIdProviders/:id/registrationTokens/:token        oauth         -

-P- key     /v1/organizations                                        application   organization
GPD key     /v1/organizations/:id                                    application   organization
GP- key     /v1/organizations/:id/accounts                           application   [account]
GP- key     /v1/organizations/:id/groups                             application   [group]
G-- key     /v1/organizations/:id/accountStoreMappings               application   [organizationAccountStoreMapping]
-P- key     /v1/organizationAccountStoreMappings                     application   organizationAccountStoreMapping
GPD key     /v1/organizationAccountStoreMappings/:id                 application   organizationAccountStoreMapping

-P- key     /v1/directories                                          directory     directory
GPD key     /v1/directories/:id                                      directory     directory
GP- key     /v1/directories/:id/accounts                             directory     [account]
GP- key     /v1/directories/:id/groups                               directory     [group]
GP- key     /v1/directories/:id/provider                             directory     provider
G-- key     /v1/directories/:id/applications                         application   [application]
G-- key     /v1/directories/:id/applicationMappings                  application   [accountStoreMapping]
G-- key     /v1/directories/:id/organizations                        application   [organization]
G-- key     /v1/directories/:id/organizationMappings                 application   [organizationAccountStoreMapping]
-P- public  /v1/directories/:id/saml/sso/post                        idsite        -
GP- key     /v1/accountCreationPolicies/:id                          directory     accountCreationPolicy
G-- key     /v1/accountCreationPolicies/:id/{verificationEmailTemplates,verificationSuccessEmailTemplates} directory -
G-- key     /v1/accountCreationPolicies/:id/{welcomeEmailTemplates,existingAccountEmailTemplates} directory -
GP- key     /v1/passwordPolicies/:id                                 directory     passwordPolicy
GP- key     /v1/passwordPolicies/:id/strength                        directory     -
G-- key     /v1/passwordPolicies/:id/{resetEmailTemplates,resetSuccessEmailTemplates} directory -
GP- key     /v1/emailTemplates/:id                                   directory     -
G-- key     /v1/schemas/:id                                          directory     schema
G-- key     /v1/schemas/:id/fields                                   directory     -
GP- key     /v1/fields/:id                                           directory     -
GP- key     /v1/userInfoMappingRules/:id                             directory     -
GP- key     /v1/attributeStatementMappingRules/:id                   directory|application -
--- key     /v1/agents                                               directory     -
GP- key     /v1/agents/:id                                           directory     -
GP- key     /v1/agents/:id/keys                                      directory     -
--D key     /v1/agents/:id/keys/:key                                 directory     -
-P- agent   /v1/agents/:id/{ping,sync}                               directory     -
G-- agent   /v1/agents/:id/{configuration,refusals,authentications,download} directory -
-P- agent   /v1/agents/:id/authentications/:check                    directory     -

GPD key     /v1/groups/:id                                           directory     group
G-- key     /v1/groups/:id/accounts                                  directory     [account]
G-- key     /v1/groups/:id/accountMemberships                        directory     [groupMembership]
G-- key     /v1/groups/:id/applications                              application   [application]
G-- key     /v1/groups/:id/accountStoreMappings                      application   [accountStoreMapping]
-P- key     /v1/groupMemberships                                     directory     groupMembership
G-D key     /v1/groupMemberships/:id                                 directory     groupMembership

-P- user    /v1/accounts/emailVerificationTokens/:token              directory     -
GPD key     /v1/accounts/:id                                         directory     account
G-- key     /v1/accounts/:id/groups                                  directory     [group]
G-- key     /v1/accounts/:id/groupMemberships                        directory     [groupMembership]
G-- key     /v1/accounts/:id/providerData                            directory     -
G-- key     /v1/accounts/:id/linkedAccounts                          directory     [account]
G-- key     /v1/accounts/:id/accountLinks                            directory     [accountLink]
G-- key     /v1/accounts/:id/applications                            application   [application]
--D key     /v1/accounts/:id/lockout                                 application   -
GP- key     /v1/accounts/:id/apiKeys                                 oauth         [apiKey]
G-- key     /v1/accounts/:id/accessTokens                            oauth         [accessToken]
G-- key     /v1/accounts/:id/refreshTokens                           oauth         [refreshToken]
GP- key     /v1/accounts/:id/phones                                  mfa           [phone]
GP- key     /v1/accounts/:id/factors                                 mfa           [factor]
-P- key     /v1/accountLinks                                         directory     accountLink
G-D key     /v1/accountLinks/:id                                     directory     accountLink
GPD key     /v1/apiKeys/:id                                          oauth         apiKey
G-D key     /v1/accessTokens/:id                                     oauth         accessToken
G-D key     /v1/refreshTokens/:id                                    oauth         refreshToken
GPD key     /v1/factors/:id                                          mfa           factor
GP- user    /v1/factors/:id/challenges                               mfa           [challenge]
GP- user    /v1/challenges/:id                                       mfa           challenge
GPD key     /v1/phones/:id                                           mfa           phone

GPD key     /v1/{tenants,directories,groups,accounts}/:id/customData      directory   -
--D key     /v1/{tenants,directories,groups,accounts}/:id/customData/:key directory   -
GPD key     /v1/{applications,organizations}/:id/customData               application -
--D key     /v1/{applications,organizations}/:id/customData/:key          application -
GPD key     /v1/openIdClients/:id/customData                         oauth         -
--D key     /v1/openIdClients/:id/customData/:key                    oauth         -

G-- key     /v1/samlPolicies/:id                                     application   samlPolicy
G-- key     /v1/samlServiceProviders/:id                             application   -
-P- key     /v1/samlServiceProviders/:id/defaultRelayStates          application   -
GP- key     /v1/samlIdentityProviders/:id                            application   samlIdentityProvider
G-- key     /v1/samlIdentityProviders/:id/registeredSamlServiceProviders  application -
GP- key     /v1/samlIdentityProviders/:id/samlServiceProviderRegistrations application [samlServiceProviderRegistration]
-P- key     /v1/samlIdentityProviders/:id/{authnVerifications,samlResponses} application -
G-- key     /v1/samlIdentityProviderMetadatas/:id                    application   -
-P- key     /v1/registeredSamlServiceProviders                       application   -
GPD key     /v1/registeredSamlServiceProviders/:id                   application   -
GPD key     /v1/samlServiceProviderRegistrations/:id                 application   samlServiceProviderRegistration
G-- key     /v1/samlServiceProviderMetadatas/:id                     directory     -
G-- key     /v1/x509certificates/:id                                 directory|application -

-P- key     /v1/smtpServers                                          notification  smtpServer
GPD key     /v1/smtpServers/:id                                      notification  smtpServer
GP- key     /v1/idSites/:id                                          idsite        -
G-D key     /v1/accounts/:id/sessions                                idsite        -
G-D key     /v1/sessions/:id                                         idsite        -
G-- key     /v1/accounts/:id/consents                                idsite        -
G-D key     /v1/consents/:id                                         idsite        -

G-O public  /oidc/:id/.well-known/openid-configuration               oauth         -
G-O public  /.well-known/oauth-authorization-server/oidc/:id         oauth         -
G-O public  /oidc/:id/jwks                                           oauth         -
-PO client  /oidc/:id/{token,introspect,revoke}                      oauth         -
-PO client  /oidc/:id/{par,device_authorization}                     oauth         -
-P- public  /oidc/:id/register                                       oauth         -
GUD public  /oidc/:id/register/:client                               oauth         -
GPO client  /oidc/:id/userinfo                                       oauth         -
GP- hosted  /oidc/:id/{authorize,consent,device,logout}              idsite        -
G-- hosted  /oidc/:id/authorize/{begin,resume}                       idsite        -
G-- public  /                                                        gateway       -
G-- public  /errors                                                  gateway       -
G-- public  /errors/:code                                            gateway       -
G-- public  /openapi.json                                            gateway       -
G-- public  /openapi.yaml                                            gateway       -
G-- public  /docs                                                    gateway       -
G-- public  /docs/:file                                              gateway       -
-P- public  /sms/receipts/:tenant/:delivery                          notification  -
G-- hosted  /sso                                                     idsite        -
GP- hosted  /sso/logout                                              idsite        -
GP- hosted  /sso/provider                                            idsite        -
GP- hosted  /register                                                idsite        -
GP- hosted  /emailVerificationTokens                                 idsite        -
GP- hosted  /passwordReset                                           idsite        -
A-- hosted  /client/:dnsLabel/*                                      idsite        -
GP- hosted  //issuer/*                                               gateway       -
GPO hosted  //site/*                                                 idsite        -
A-- hosted  //session/*                                              idsite        -
G-D private /_mailbox                                                mailbox       -
G-D private /_mailbox/*                                              mailbox       -
`

// expandableLinks lists, for each kind of resource, the links that a client may name in the
// query expand= (expand.go). Links to a collection are in brackets: a client may add an offset
// and a limit to their names. Any other name is refused (package expansion).
const expandableLinks = `
tenant                          [applications] [directories] [organizations] [accounts] [groups] [agents]
tenant                          [idSites] [smtpServers] [phones]
tenant                          [registeredSamlServiceProviders] customData [signingKeys] openIdSettings
application                     tenant [accounts] [groups] [accountStoreMappings] customData
application                     defaultAccountStoreMapping defaultGroupStoreMapping oAuthPolicy samlPolicy
application                     accountLinkingPolicy webConfig
application                     openIdProvider [openIdClients]
accountStoreMapping             application accountStore
loginAttempt                    account
passwordResetToken              account
organization                    tenant [accounts] [groups] customData [accountStoreMappings]
organization                    defaultAccountStoreMapping defaultGroupStoreMapping accountLinkingPolicy
organizationAccountStoreMapping organization accountStore
accountLinkingPolicy            tenant application organization
oAuthPolicy                     tenant application
signingKey                      tenant
openIdSettings                  tenant
openIdProvider                  tenant application
openIdClient                    tenant application customData
webConfig                       tenant application signingApiKey
directory                       tenant [accounts] [groups] provider customData passwordPolicy
directory                       accountCreationPolicy accountSchema
directory                       [applicationMappings] [organizations] [organizationMappings]
provider                        agent userInfoMappingRules attributeStatementMappingRules serviceProviderMetadata
accountCreationPolicy           tenant directory [verificationEmailTemplates]
accountCreationPolicy           [verificationSuccessEmailTemplates] [welcomeEmailTemplates]
accountCreationPolicy           [existingAccountEmailTemplates]
passwordPolicy                  tenant directory strength [resetEmailTemplates] [resetSuccessEmailTemplates]
schema                          [fields] directory
group                           tenant directory [accounts] [accountMemberships] customData [applications]
groupMembership                 account group
account                         tenant directory customData providerData [groups] [groupMemberships]
account                         [applications] [apiKeys]
account                         [linkedAccounts] [accountLinks] [factors] [phones]
accountLink                     leftAccount rightAccount
apiKey                          account tenant
accessToken                     account application tenant
refreshToken                    account application tenant
factor                          account phone [challenges] mostRecentChallenge
challenge                       account factor
phone                           account
smtpServer                      tenant
samlPolicy                      serviceProvider identityProvider
samlIdentityProvider            metadata attributeStatementMappingRules [registeredSamlServiceProviders]
samlIdentityProvider            [samlServiceProviderRegistrations]
samlServiceProviderRegistration serviceProvider identityProvider
`
