// Code generated from the description of the interface. DO NOT EDIT.

package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
)

// GetCurrentTenant: Find the tenant of the API key.
func (c *Client) GetCurrentTenant(ctx context.Context, query ...url.Values) (*Tenant, error) {
	return call[Tenant](ctx, c, http.MethodGet, at("tenants", "current"), nil, query)
}

// GetTenant: Read a tenant.
func (c *Client) GetTenant(ctx context.Context, tenant string, query ...url.Values) (*Tenant, error) {
	return call[Tenant](ctx, c, http.MethodGet, at("tenants", tenant), nil, query)
}

// UpdateTenant: Change a tenant.
func (c *Client) UpdateTenant(ctx context.Context, tenant string, body TenantChange, query ...url.Values) (*Tenant, error) {
	return call[Tenant](ctx, c, http.MethodPost, at("tenants", tenant), body, query)
}

// ListTenantApplications: List the applications of a tenant.
func (c *Client) ListTenantApplications(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Application, error] {
	return all[Application](ctx, c, at("tenants", tenant, "applications"), query)
}

// ListTenantOrganizations: List the organizations of a tenant.
func (c *Client) ListTenantOrganizations(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Organization, error] {
	return all[Organization](ctx, c, at("tenants", tenant, "organizations"), query)
}

// ListTenantDirectories: List the directories of a tenant.
func (c *Client) ListTenantDirectories(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Directory, error] {
	return all[Directory](ctx, c, at("tenants", tenant, "directories"), query)
}

// ListTenantAccounts: List the accounts of a tenant.
func (c *Client) ListTenantAccounts(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("tenants", tenant, "accounts"), query)
}

// ListTenantGroups: List the groups of a tenant.
func (c *Client) ListTenantGroups(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Group, error] {
	return all[Group](ctx, c, at("tenants", tenant, "groups"), query)
}

// ListTenantAgents: List the agents of a tenant.
func (c *Client) ListTenantAgents(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Agent, error] {
	return all[Agent](ctx, c, at("tenants", tenant, "agents"), query)
}

// ListTenantPhones: List the phones of a tenant.
func (c *Client) ListTenantPhones(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*Phone, error] {
	return all[Phone](ctx, c, at("tenants", tenant, "phones"), query)
}

// ListTenantSmtpServers: List the SMTP servers of a tenant.
func (c *Client) ListTenantSmtpServers(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*SmtpServer, error] {
	return all[SmtpServer](ctx, c, at("tenants", tenant, "smtpServers"), query)
}

// ListTenantIdSites: List the ID sites of a tenant.
func (c *Client) ListTenantIdSites(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*IdSite, error] {
	return all[IdSite](ctx, c, at("tenants", tenant, "idSites"), query)
}

// ListTenantIdSitesInLowerCase: List the ID sites at the lower-case path.
func (c *Client) ListTenantIdSitesInLowerCase(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*IdSite, error] {
	return all[IdSite](ctx, c, at("tenants", tenant, "idsites"), query)
}

// ListTenantRegisteredSamlServiceProviders: List the registered SAML service providers of a tenant.
func (c *Client) ListTenantRegisteredSamlServiceProviders(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*SamlServiceProvider, error] {
	return all[SamlServiceProvider](ctx, c, at("tenants", tenant, "registeredSamlServiceProviders"), query)
}

// InviteAdministrator: Invite an administrator by mail.
func (c *Client) InviteAdministrator(ctx context.Context, tenant string, body NewInvitation, query ...url.Values) (*Invitation, error) {
	return call[Invitation](ctx, c, http.MethodPost, at("tenants", tenant, "invitations"), body, query)
}

// CreateApplication: Create an application.
func (c *Client) CreateApplication(ctx context.Context, body NewApplication, query ...url.Values) (*Application, error) {
	return call[Application](ctx, c, http.MethodPost, at("applications"), body, query)
}

// GetApplication: Read an application.
func (c *Client) GetApplication(ctx context.Context, application string, query ...url.Values) (*Application, error) {
	return call[Application](ctx, c, http.MethodGet, at("applications", application), nil, query)
}

// UpdateApplication: Change an application.
func (c *Client) UpdateApplication(ctx context.Context, application string, body ApplicationChange, query ...url.Values) (*Application, error) {
	return call[Application](ctx, c, http.MethodPost, at("applications", application), body, query)
}

// DeleteApplication: Delete an application.
func (c *Client) DeleteApplication(ctx context.Context, application string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("applications", application), nil, query)
}

// ListApplicationAccounts: List the accounts of an application.
func (c *Client) ListApplicationAccounts(ctx context.Context, application string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("applications", application, "accounts"), query)
}

// CreateApplicationAccount: Create an account in the default account store of an application.
func (c *Client) CreateApplicationAccount(ctx context.Context, application string, body NewAccount, query ...url.Values) (*Account, error) {
	return call[Account](ctx, c, http.MethodPost, at("applications", application, "accounts"), body, query)
}

// ListApplicationGroups: List the groups of an application.
func (c *Client) ListApplicationGroups(ctx context.Context, application string, query ...url.Values) iter.Seq2[*Group, error] {
	return all[Group](ctx, c, at("applications", application, "groups"), query)
}

// CreateApplicationGroup: Create a group in the default group store of an application.
func (c *Client) CreateApplicationGroup(ctx context.Context, application string, body NewGroup, query ...url.Values) (*Group, error) {
	return call[Group](ctx, c, http.MethodPost, at("applications", application, "groups"), body, query)
}

// ListApplicationAccountStoreMappings: List the account store mappings of an application.
func (c *Client) ListApplicationAccountStoreMappings(ctx context.Context, application string, query ...url.Values) iter.Seq2[*AccountStoreMapping, error] {
	return all[AccountStoreMapping](ctx, c, at("applications", application, "accountStoreMappings"), query)
}

// AttemptLogin: Log an account in.
func (c *Client) AttemptLogin(ctx context.Context, application string, body NewLoginAttempt, query ...url.Values) (*LoginAttempt, error) {
	return call[LoginAttempt](ctx, c, http.MethodPost, at("applications", application, "loginAttempts"), body, query)
}

// SendVerificationEmail: Send a verification email again.
func (c *Client) SendVerificationEmail(ctx context.Context, application string, body NewVerificationEmail, query ...url.Values) error {
	return call0(ctx, c, http.MethodPost, at("applications", application, "verificationEmails"), body, query)
}

// CreatePasswordResetToken: Start a password reset.
func (c *Client) CreatePasswordResetToken(ctx context.Context, application string, body NewPasswordResetToken, query ...url.Values) (*PasswordResetToken, error) {
	return call[PasswordResetToken](ctx, c, http.MethodPost, at("applications", application, "passwordResetTokens"), body, query)
}

// GetPasswordResetToken: Read a password reset token.
func (c *Client) GetPasswordResetToken(ctx context.Context, application string, token string, query ...url.Values) (*PasswordResetToken, error) {
	return call[PasswordResetToken](ctx, c, http.MethodGet, at("applications", application, "passwordResetTokens", token), nil, query)
}

// ResetPassword: Set a new password by a reset token.
func (c *Client) ResetPassword(ctx context.Context, application string, token string, body NewPassword, query ...url.Values) (*PasswordResetToken, error) {
	return call[PasswordResetToken](ctx, c, http.MethodPost, at("applications", application, "passwordResetTokens", token), body, query)
}

// CreateAccountStoreMapping: Create an account store mapping.
func (c *Client) CreateAccountStoreMapping(ctx context.Context, body NewAccountStoreMapping, query ...url.Values) (*AccountStoreMapping, error) {
	return call[AccountStoreMapping](ctx, c, http.MethodPost, at("accountStoreMappings"), body, query)
}

// GetAccountStoreMapping: Read an account store mapping.
func (c *Client) GetAccountStoreMapping(ctx context.Context, accountStoreMapping string, query ...url.Values) (*AccountStoreMapping, error) {
	return call[AccountStoreMapping](ctx, c, http.MethodGet, at("accountStoreMappings", accountStoreMapping), nil, query)
}

// UpdateAccountStoreMapping: Change an account store mapping.
func (c *Client) UpdateAccountStoreMapping(ctx context.Context, accountStoreMapping string, body AccountStoreMappingChange, query ...url.Values) (*AccountStoreMapping, error) {
	return call[AccountStoreMapping](ctx, c, http.MethodPost, at("accountStoreMappings", accountStoreMapping), body, query)
}

// DeleteAccountStoreMapping: Delete an account store mapping.
func (c *Client) DeleteAccountStoreMapping(ctx context.Context, accountStoreMapping string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accountStoreMappings", accountStoreMapping), nil, query)
}

// GetAccountLinkingPolicy: Read an account linking policy.
func (c *Client) GetAccountLinkingPolicy(ctx context.Context, accountLinkingPolicy string, query ...url.Values) (*AccountLinkingPolicy, error) {
	return call[AccountLinkingPolicy](ctx, c, http.MethodGet, at("accountLinkingPolicies", accountLinkingPolicy), nil, query)
}

// UpdateAccountLinkingPolicy: Change an account linking policy.
func (c *Client) UpdateAccountLinkingPolicy(ctx context.Context, accountLinkingPolicy string, body AccountLinkingPolicyChange, query ...url.Values) (*AccountLinkingPolicy, error) {
	return call[AccountLinkingPolicy](ctx, c, http.MethodPost, at("accountLinkingPolicies", accountLinkingPolicy), body, query)
}

// CreateDirectory: Create a directory.
func (c *Client) CreateDirectory(ctx context.Context, body NewDirectory, query ...url.Values) (*Directory, error) {
	return call[Directory](ctx, c, http.MethodPost, at("directories"), body, query)
}

// GetDirectory: Read a directory.
func (c *Client) GetDirectory(ctx context.Context, directory string, query ...url.Values) (*Directory, error) {
	return call[Directory](ctx, c, http.MethodGet, at("directories", directory), nil, query)
}

// UpdateDirectory: Change a directory.
func (c *Client) UpdateDirectory(ctx context.Context, directory string, body DirectoryChange, query ...url.Values) (*Directory, error) {
	return call[Directory](ctx, c, http.MethodPost, at("directories", directory), body, query)
}

// DeleteDirectory: Delete a directory.
func (c *Client) DeleteDirectory(ctx context.Context, directory string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("directories", directory), nil, query)
}

// ListDirectoryAccounts: List the accounts of a directory.
func (c *Client) ListDirectoryAccounts(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("directories", directory, "accounts"), query)
}

// CreateDirectoryAccount: Create an account in a directory.
func (c *Client) CreateDirectoryAccount(ctx context.Context, directory string, body NewAccount, query ...url.Values) (*Account, error) {
	return call[Account](ctx, c, http.MethodPost, at("directories", directory, "accounts"), body, query)
}

// ListDirectoryGroups: List the groups of a directory.
func (c *Client) ListDirectoryGroups(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*Group, error] {
	return all[Group](ctx, c, at("directories", directory, "groups"), query)
}

// CreateDirectoryGroup: Create a group in a directory.
func (c *Client) CreateDirectoryGroup(ctx context.Context, directory string, body NewGroup, query ...url.Values) (*Group, error) {
	return call[Group](ctx, c, http.MethodPost, at("directories", directory, "groups"), body, query)
}

// GetProvider: Read a provider.
func (c *Client) GetProvider(ctx context.Context, directory string, query ...url.Values) (*Provider, error) {
	return call[Provider](ctx, c, http.MethodGet, at("directories", directory, "provider"), nil, query)
}

// UpdateProvider: Change a provider.
func (c *Client) UpdateProvider(ctx context.Context, directory string, body ProviderChange, query ...url.Values) (*Provider, error) {
	return call[Provider](ctx, c, http.MethodPost, at("directories", directory, "provider"), body, query)
}

// ListDirectoryApplications: List the applications of a directory.
func (c *Client) ListDirectoryApplications(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*Application, error] {
	return all[Application](ctx, c, at("directories", directory, "applications"), query)
}

// ListDirectoryApplicationMappings: List the application mappings of a directory.
func (c *Client) ListDirectoryApplicationMappings(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*AccountStoreMapping, error] {
	return all[AccountStoreMapping](ctx, c, at("directories", directory, "applicationMappings"), query)
}

// ListDirectoryOrganizations: List the organizations of a directory.
func (c *Client) ListDirectoryOrganizations(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*Organization, error] {
	return all[Organization](ctx, c, at("directories", directory, "organizations"), query)
}

// ListDirectoryOrganizationMappings: List the organization mappings of a directory.
func (c *Client) ListDirectoryOrganizationMappings(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*OrganizationAccountStoreMapping, error] {
	return all[OrganizationAccountStoreMapping](ctx, c, at("directories", directory, "organizationMappings"), query)
}

// GetUserInfoMappingRules: Read the user info mapping rules.
func (c *Client) GetUserInfoMappingRules(ctx context.Context, rules string, query ...url.Values) (*UserInfoMappingRules, error) {
	return call[UserInfoMappingRules](ctx, c, http.MethodGet, at("userInfoMappingRules", rules), nil, query)
}

// UpdateUserInfoMappingRules: Change the user info mapping rules.
func (c *Client) UpdateUserInfoMappingRules(ctx context.Context, rules string, body UserInfoMappingRulesChange, query ...url.Values) (*UserInfoMappingRules, error) {
	return call[UserInfoMappingRules](ctx, c, http.MethodPost, at("userInfoMappingRules", rules), body, query)
}

// GetAttributeStatementMappingRules: Read the attribute statement mapping rules.
func (c *Client) GetAttributeStatementMappingRules(ctx context.Context, attributeStatementMappingRules string, query ...url.Values) (*AttributeStatementMappingRules, error) {
	return call[AttributeStatementMappingRules](ctx, c, http.MethodGet, at("attributeStatementMappingRules", attributeStatementMappingRules), nil, query)
}

// UpdateAttributeStatementMappingRules: Change the attribute statement mapping rules.
func (c *Client) UpdateAttributeStatementMappingRules(ctx context.Context, attributeStatementMappingRules string, body AttributeStatementMappingRulesChange, query ...url.Values) (*AttributeStatementMappingRules, error) {
	return call[AttributeStatementMappingRules](ctx, c, http.MethodPost, at("attributeStatementMappingRules", attributeStatementMappingRules), body, query)
}

// GetSchema: Read a schema.
func (c *Client) GetSchema(ctx context.Context, schema string, query ...url.Values) (*Schema, error) {
	return call[Schema](ctx, c, http.MethodGet, at("schemas", schema), nil, query)
}

// ListSchemaFields: List the fields of a schema.
func (c *Client) ListSchemaFields(ctx context.Context, schema string, query ...url.Values) iter.Seq2[*Field, error] {
	return all[Field](ctx, c, at("schemas", schema, "fields"), query)
}

// GetField: Read a field.
func (c *Client) GetField(ctx context.Context, field string, query ...url.Values) (*Field, error) {
	return call[Field](ctx, c, http.MethodGet, at("fields", field), nil, query)
}

// UpdateField: Change a field.
func (c *Client) UpdateField(ctx context.Context, field string, body FieldChange, query ...url.Values) (*Field, error) {
	return call[Field](ctx, c, http.MethodPost, at("fields", field), body, query)
}

// GetAccount: Read an account.
func (c *Client) GetAccount(ctx context.Context, account string, query ...url.Values) (*Account, error) {
	return call[Account](ctx, c, http.MethodGet, at("accounts", account), nil, query)
}

// UpdateAccount: Change an account.
func (c *Client) UpdateAccount(ctx context.Context, account string, body AccountChange, query ...url.Values) (*Account, error) {
	return call[Account](ctx, c, http.MethodPost, at("accounts", account), body, query)
}

// DeleteAccount: Delete an account.
func (c *Client) DeleteAccount(ctx context.Context, account string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accounts", account), nil, query)
}

// DeleteAccountLockout: Lift the lockout of an account.
func (c *Client) DeleteAccountLockout(ctx context.Context, account string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accounts", account, "lockout"), nil, query)
}

// ListAccountGroups: List the groups of an account.
func (c *Client) ListAccountGroups(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Group, error] {
	return all[Group](ctx, c, at("accounts", account, "groups"), query)
}

// ListAccountGroupMemberships: List the group memberships of an account.
func (c *Client) ListAccountGroupMemberships(ctx context.Context, account string, query ...url.Values) iter.Seq2[*GroupMembership, error] {
	return all[GroupMembership](ctx, c, at("accounts", account, "groupMemberships"), query)
}

// ListAccountApplications: List the applications of an account.
func (c *Client) ListAccountApplications(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Application, error] {
	return all[Application](ctx, c, at("accounts", account, "applications"), query)
}

// GetProviderData: Read the provider data.
func (c *Client) GetProviderData(ctx context.Context, account string, query ...url.Values) (*ProviderData, error) {
	return call[ProviderData](ctx, c, http.MethodGet, at("accounts", account, "providerData"), nil, query)
}

// VerifyEmail: Verify an email by the token that was mailed.
func (c *Client) VerifyEmail(ctx context.Context, token string, query ...url.Values) (*EmailVerification, error) {
	return call[EmailVerification](ctx, c, http.MethodPost, at("accounts", "emailVerificationTokens", token), nil, query)
}

// ListAccountAccountLinks: List the account links of an account.
func (c *Client) ListAccountAccountLinks(ctx context.Context, account string, query ...url.Values) iter.Seq2[*AccountLink, error] {
	return all[AccountLink](ctx, c, at("accounts", account, "accountLinks"), query)
}

// ListAccountLinkedAccounts: List the accounts that are linked with an account.
func (c *Client) ListAccountLinkedAccounts(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("accounts", account, "linkedAccounts"), query)
}

// CreateAccountLink: Create an account link.
func (c *Client) CreateAccountLink(ctx context.Context, body NewAccountLink, query ...url.Values) (*AccountLink, error) {
	return call[AccountLink](ctx, c, http.MethodPost, at("accountLinks"), body, query)
}

// GetAccountLink: Read an account link.
func (c *Client) GetAccountLink(ctx context.Context, accountLink string, query ...url.Values) (*AccountLink, error) {
	return call[AccountLink](ctx, c, http.MethodGet, at("accountLinks", accountLink), nil, query)
}

// DeleteAccountLink: Delete an account link.
func (c *Client) DeleteAccountLink(ctx context.Context, accountLink string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accountLinks", accountLink), nil, query)
}

// GetGroup: Read a group.
func (c *Client) GetGroup(ctx context.Context, group string, query ...url.Values) (*Group, error) {
	return call[Group](ctx, c, http.MethodGet, at("groups", group), nil, query)
}

// UpdateGroup: Change a group.
func (c *Client) UpdateGroup(ctx context.Context, group string, body GroupChange, query ...url.Values) (*Group, error) {
	return call[Group](ctx, c, http.MethodPost, at("groups", group), body, query)
}

// DeleteGroup: Delete a group.
func (c *Client) DeleteGroup(ctx context.Context, group string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("groups", group), nil, query)
}

// ListGroupAccounts: List the accounts of a group.
func (c *Client) ListGroupAccounts(ctx context.Context, group string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("groups", group, "accounts"), query)
}

// ListGroupAccountMemberships: List the account memberships of a group.
func (c *Client) ListGroupAccountMemberships(ctx context.Context, group string, query ...url.Values) iter.Seq2[*GroupMembership, error] {
	return all[GroupMembership](ctx, c, at("groups", group, "accountMemberships"), query)
}

// ListGroupApplications: List the applications of a group.
func (c *Client) ListGroupApplications(ctx context.Context, group string, query ...url.Values) iter.Seq2[*Application, error] {
	return all[Application](ctx, c, at("groups", group, "applications"), query)
}

// ListGroupAccountStoreMappings: List the account store mappings of a group.
func (c *Client) ListGroupAccountStoreMappings(ctx context.Context, group string, query ...url.Values) iter.Seq2[*AccountStoreMapping, error] {
	return all[AccountStoreMapping](ctx, c, at("groups", group, "accountStoreMappings"), query)
}

// CreateGroupMembership: Create a group membership.
func (c *Client) CreateGroupMembership(ctx context.Context, body NewGroupMembership, query ...url.Values) (*GroupMembership, error) {
	return call[GroupMembership](ctx, c, http.MethodPost, at("groupMemberships"), body, query)
}

// GetGroupMembership: Read a group membership.
func (c *Client) GetGroupMembership(ctx context.Context, groupMembership string, query ...url.Values) (*GroupMembership, error) {
	return call[GroupMembership](ctx, c, http.MethodGet, at("groupMemberships", groupMembership), nil, query)
}

// DeleteGroupMembership: Delete a group membership.
func (c *Client) DeleteGroupMembership(ctx context.Context, groupMembership string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("groupMemberships", groupMembership), nil, query)
}

// CreateOrganization: Create an organization.
func (c *Client) CreateOrganization(ctx context.Context, body NewOrganization, query ...url.Values) (*Organization, error) {
	return call[Organization](ctx, c, http.MethodPost, at("organizations"), body, query)
}

// GetOrganization: Read an organization.
func (c *Client) GetOrganization(ctx context.Context, organization string, query ...url.Values) (*Organization, error) {
	return call[Organization](ctx, c, http.MethodGet, at("organizations", organization), nil, query)
}

// UpdateOrganization: Change an organization.
func (c *Client) UpdateOrganization(ctx context.Context, organization string, body OrganizationChange, query ...url.Values) (*Organization, error) {
	return call[Organization](ctx, c, http.MethodPost, at("organizations", organization), body, query)
}

// DeleteOrganization: Delete an organization.
func (c *Client) DeleteOrganization(ctx context.Context, organization string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("organizations", organization), nil, query)
}

// ListOrganizationAccounts: List the accounts of an organization.
func (c *Client) ListOrganizationAccounts(ctx context.Context, organization string, query ...url.Values) iter.Seq2[*Account, error] {
	return all[Account](ctx, c, at("organizations", organization, "accounts"), query)
}

// CreateOrganizationAccount: Create an account in the default account store of an organization.
func (c *Client) CreateOrganizationAccount(ctx context.Context, organization string, body NewAccount, query ...url.Values) (*Account, error) {
	return call[Account](ctx, c, http.MethodPost, at("organizations", organization, "accounts"), body, query)
}

// ListOrganizationGroups: List the groups of an organization.
func (c *Client) ListOrganizationGroups(ctx context.Context, organization string, query ...url.Values) iter.Seq2[*Group, error] {
	return all[Group](ctx, c, at("organizations", organization, "groups"), query)
}

// CreateOrganizationGroup: Create a group in the default group store of an organization.
func (c *Client) CreateOrganizationGroup(ctx context.Context, organization string, body NewGroup, query ...url.Values) (*Group, error) {
	return call[Group](ctx, c, http.MethodPost, at("organizations", organization, "groups"), body, query)
}

// ListOrganizationAccountStoreMappings: List the account store mappings of an organization.
func (c *Client) ListOrganizationAccountStoreMappings(ctx context.Context, organization string, query ...url.Values) iter.Seq2[*OrganizationAccountStoreMapping, error] {
	return all[OrganizationAccountStoreMapping](ctx, c, at("organizations", organization, "accountStoreMappings"), query)
}

// CreateOrganizationAccountStoreMapping: Create an organization account store mapping.
func (c *Client) CreateOrganizationAccountStoreMapping(ctx context.Context, body NewOrganizationAccountStoreMapping, query ...url.Values) (*OrganizationAccountStoreMapping, error) {
	return call[OrganizationAccountStoreMapping](ctx, c, http.MethodPost, at("organizationAccountStoreMappings"), body, query)
}

// GetOrganizationAccountStoreMapping: Read an organization account store mapping.
func (c *Client) GetOrganizationAccountStoreMapping(ctx context.Context, organizationAccountStoreMapping string, query ...url.Values) (*OrganizationAccountStoreMapping, error) {
	return call[OrganizationAccountStoreMapping](ctx, c, http.MethodGet, at("organizationAccountStoreMappings", organizationAccountStoreMapping), nil, query)
}

// UpdateOrganizationAccountStoreMapping: Change an organization account store mapping.
func (c *Client) UpdateOrganizationAccountStoreMapping(ctx context.Context, organizationAccountStoreMapping string, body OrganizationAccountStoreMappingChange, query ...url.Values) (*OrganizationAccountStoreMapping, error) {
	return call[OrganizationAccountStoreMapping](ctx, c, http.MethodPost, at("organizationAccountStoreMappings", organizationAccountStoreMapping), body, query)
}

// DeleteOrganizationAccountStoreMapping: Delete an organization account store mapping.
func (c *Client) DeleteOrganizationAccountStoreMapping(ctx context.Context, organizationAccountStoreMapping string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("organizationAccountStoreMappings", organizationAccountStoreMapping), nil, query)
}

// GetAccountCreationPolicy: Read an account creation policy.
func (c *Client) GetAccountCreationPolicy(ctx context.Context, directory string, query ...url.Values) (*AccountCreationPolicy, error) {
	return call[AccountCreationPolicy](ctx, c, http.MethodGet, at("accountCreationPolicies", directory), nil, query)
}

// UpdateAccountCreationPolicy: Change an account creation policy.
func (c *Client) UpdateAccountCreationPolicy(ctx context.Context, directory string, body AccountCreationPolicyChange, query ...url.Values) (*AccountCreationPolicy, error) {
	return call[AccountCreationPolicy](ctx, c, http.MethodPost, at("accountCreationPolicies", directory), body, query)
}

// ListAccountCreationPolicyVerificationEmailTemplates: List the verification email templates of an account creation policy.
func (c *Client) ListAccountCreationPolicyVerificationEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("accountCreationPolicies", directory, "verificationEmailTemplates"), query)
}

// ListAccountCreationPolicyVerificationSuccessEmailTemplates: List the verification success email templates of an account creation policy.
func (c *Client) ListAccountCreationPolicyVerificationSuccessEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("accountCreationPolicies", directory, "verificationSuccessEmailTemplates"), query)
}

// ListAccountCreationPolicyWelcomeEmailTemplates: List the welcome email templates of an account creation policy.
func (c *Client) ListAccountCreationPolicyWelcomeEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("accountCreationPolicies", directory, "welcomeEmailTemplates"), query)
}

// ListAccountCreationPolicyExistingAccountEmailTemplates: List the existing account email templates of an account creation policy.
func (c *Client) ListAccountCreationPolicyExistingAccountEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("accountCreationPolicies", directory, "existingAccountEmailTemplates"), query)
}

// GetPasswordPolicy: Read a password policy.
func (c *Client) GetPasswordPolicy(ctx context.Context, directory string, query ...url.Values) (*PasswordPolicy, error) {
	return call[PasswordPolicy](ctx, c, http.MethodGet, at("passwordPolicies", directory), nil, query)
}

// UpdatePasswordPolicy: Change a password policy.
func (c *Client) UpdatePasswordPolicy(ctx context.Context, directory string, body PasswordPolicyChange, query ...url.Values) (*PasswordPolicy, error) {
	return call[PasswordPolicy](ctx, c, http.MethodPost, at("passwordPolicies", directory), body, query)
}

// GetPasswordStrength: Read a password strength.
func (c *Client) GetPasswordStrength(ctx context.Context, directory string, query ...url.Values) (*PasswordStrength, error) {
	return call[PasswordStrength](ctx, c, http.MethodGet, at("passwordPolicies", directory, "strength"), nil, query)
}

// UpdatePasswordStrength: Change a password strength.
func (c *Client) UpdatePasswordStrength(ctx context.Context, directory string, body PasswordStrengthChange, query ...url.Values) (*PasswordStrength, error) {
	return call[PasswordStrength](ctx, c, http.MethodPost, at("passwordPolicies", directory, "strength"), body, query)
}

// ListPasswordPolicyResetEmailTemplates: List the reset email templates of a password policy.
func (c *Client) ListPasswordPolicyResetEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("passwordPolicies", directory, "resetEmailTemplates"), query)
}

// ListPasswordPolicyResetSuccessEmailTemplates: List the reset success email templates of a password policy.
func (c *Client) ListPasswordPolicyResetSuccessEmailTemplates(ctx context.Context, directory string, query ...url.Values) iter.Seq2[*EmailTemplate, error] {
	return all[EmailTemplate](ctx, c, at("passwordPolicies", directory, "resetSuccessEmailTemplates"), query)
}

// GetEmailTemplate: Read an email template.
func (c *Client) GetEmailTemplate(ctx context.Context, emailTemplate string, query ...url.Values) (*EmailTemplate, error) {
	return call[EmailTemplate](ctx, c, http.MethodGet, at("emailTemplates", emailTemplate), nil, query)
}

// UpdateEmailTemplate: Change an email template.
func (c *Client) UpdateEmailTemplate(ctx context.Context, emailTemplate string, body EmailTemplateChange, query ...url.Values) (*EmailTemplate, error) {
	return call[EmailTemplate](ctx, c, http.MethodPost, at("emailTemplates", emailTemplate), body, query)
}

// ListAccountPhones: List the phones of an account.
func (c *Client) ListAccountPhones(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Phone, error] {
	return all[Phone](ctx, c, at("accounts", account, "phones"), query)
}

// CreateAccountPhone: Create a phone in an account.
func (c *Client) CreateAccountPhone(ctx context.Context, account string, body NewPhone, query ...url.Values) (*Phone, error) {
	return call[Phone](ctx, c, http.MethodPost, at("accounts", account, "phones"), body, query)
}

// GetPhone: Read a phone.
func (c *Client) GetPhone(ctx context.Context, phone string, query ...url.Values) (*Phone, error) {
	return call[Phone](ctx, c, http.MethodGet, at("phones", phone), nil, query)
}

// UpdatePhone: Change a phone.
func (c *Client) UpdatePhone(ctx context.Context, phone string, body PhoneChange, query ...url.Values) (*Phone, error) {
	return call[Phone](ctx, c, http.MethodPost, at("phones", phone), body, query)
}

// DeletePhone: Delete a phone.
func (c *Client) DeletePhone(ctx context.Context, phone string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("phones", phone), nil, query)
}

// ListAccountFactors: List the factors of an account.
func (c *Client) ListAccountFactors(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Factor, error] {
	return all[Factor](ctx, c, at("accounts", account, "factors"), query)
}

// CreateAccountFactor: Create a factor of an account.
func (c *Client) CreateAccountFactor(ctx context.Context, account string, body NewFactor, query ...url.Values) (*Factor, error) {
	return call[Factor](ctx, c, http.MethodPost, at("accounts", account, "factors"), body, query)
}

// GetFactor: Read a factor.
func (c *Client) GetFactor(ctx context.Context, factor string, query ...url.Values) (*Factor, error) {
	return call[Factor](ctx, c, http.MethodGet, at("factors", factor), nil, query)
}

// UpdateFactor: Change a factor.
func (c *Client) UpdateFactor(ctx context.Context, factor string, body FactorChange, query ...url.Values) (*Factor, error) {
	return call[Factor](ctx, c, http.MethodPost, at("factors", factor), body, query)
}

// DeleteFactor: Delete a factor.
func (c *Client) DeleteFactor(ctx context.Context, factor string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("factors", factor), nil, query)
}

// ListFactorChallenges: List the challenges of a factor.
func (c *Client) ListFactorChallenges(ctx context.Context, factor string, query ...url.Values) iter.Seq2[*Challenge, error] {
	return all[Challenge](ctx, c, at("factors", factor, "challenges"), query)
}

// CreateFactorChallenge: Issue a challenge of a factor.
func (c *Client) CreateFactorChallenge(ctx context.Context, factor string, body NewChallenge, query ...url.Values) (*Challenge, error) {
	return call[Challenge](ctx, c, http.MethodPost, at("factors", factor, "challenges"), body, query)
}

// GetChallenge: Read a challenge.
func (c *Client) GetChallenge(ctx context.Context, challenge string, query ...url.Values) (*Challenge, error) {
	return call[Challenge](ctx, c, http.MethodGet, at("challenges", challenge), nil, query)
}

// AnswerChallenge: Send the code of a challenge.
func (c *Client) AnswerChallenge(ctx context.Context, challenge string, body ChallengeAnswer, query ...url.Values) (*Challenge, error) {
	return call[Challenge](ctx, c, http.MethodPost, at("challenges", challenge), body, query)
}

// CreateToken: Ask for tokens.
func (c *Client) CreateToken(ctx context.Context, application string, form url.Values, query ...url.Values) (*TokenResponse, error) {
	return call[TokenResponse](ctx, c, http.MethodPost, at("applications", application, "oauth", "token"), form, query)
}

// RevokeToken: Revoke a token.
func (c *Client) RevokeToken(ctx context.Context, application string, form url.Values, query ...url.Values) error {
	return call0(ctx, c, http.MethodPost, at("applications", application, "oauth", "revoke"), form, query)
}

// ValidateToken: Check a token.
func (c *Client) ValidateToken(ctx context.Context, application string, jwt string, query ...url.Values) (*AccessToken, error) {
	return call[AccessToken](ctx, c, http.MethodGet, at("applications", application, "authTokens", jwt), nil, query)
}

// ListAccountAccessTokens: List the access tokens of an account.
func (c *Client) ListAccountAccessTokens(ctx context.Context, account string, query ...url.Values) iter.Seq2[*AccessToken, error] {
	return all[AccessToken](ctx, c, at("accounts", account, "accessTokens"), query)
}

// ListAccountRefreshTokens: List the refresh tokens of an account.
func (c *Client) ListAccountRefreshTokens(ctx context.Context, account string, query ...url.Values) iter.Seq2[*RefreshToken, error] {
	return all[RefreshToken](ctx, c, at("accounts", account, "refreshTokens"), query)
}

// GetAccessToken: Read an access token.
func (c *Client) GetAccessToken(ctx context.Context, token string, query ...url.Values) (*AccessToken, error) {
	return call[AccessToken](ctx, c, http.MethodGet, at("accessTokens", token), nil, query)
}

// DeleteAccessToken: Delete an access token.
func (c *Client) DeleteAccessToken(ctx context.Context, token string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accessTokens", token), nil, query)
}

// GetRefreshToken: Read a refresh token.
func (c *Client) GetRefreshToken(ctx context.Context, token string, query ...url.Values) (*RefreshToken, error) {
	return call[RefreshToken](ctx, c, http.MethodGet, at("refreshTokens", token), nil, query)
}

// DeleteRefreshToken: Delete a refresh token.
func (c *Client) DeleteRefreshToken(ctx context.Context, token string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("refreshTokens", token), nil, query)
}

// GetOAuthPolicy: Read an OAuth policy.
func (c *Client) GetOAuthPolicy(ctx context.Context, application string, query ...url.Values) (*OAuthPolicy, error) {
	return call[OAuthPolicy](ctx, c, http.MethodGet, at("oAuthPolicies", application), nil, query)
}

// UpdateOAuthPolicy: Change an OAuth policy.
func (c *Client) UpdateOAuthPolicy(ctx context.Context, application string, body OAuthPolicyChange, query ...url.Values) (*OAuthPolicy, error) {
	return call[OAuthPolicy](ctx, c, http.MethodPost, at("oAuthPolicies", application), body, query)
}

// GetWebConfig: Read a web config.
func (c *Client) GetWebConfig(ctx context.Context, webConfig string, query ...url.Values) (*WebConfig, error) {
	return call[WebConfig](ctx, c, http.MethodGet, at("applicationWebConfigs", webConfig), nil, query)
}

// UpdateWebConfig: Change a web config.
func (c *Client) UpdateWebConfig(ctx context.Context, webConfig string, body WebConfigChange, query ...url.Values) (*WebConfig, error) {
	return call[WebConfig](ctx, c, http.MethodPost, at("applicationWebConfigs", webConfig), body, query)
}

// ListAccountApiKeys: List the API keys of an account.
func (c *Client) ListAccountApiKeys(ctx context.Context, account string, query ...url.Values) iter.Seq2[*ApiKey, error] {
	return all[ApiKey](ctx, c, at("accounts", account, "apiKeys"), query)
}

// CreateAccountApiKey: Create an API key in an account.
func (c *Client) CreateAccountApiKey(ctx context.Context, account string, body NewApiKey, query ...url.Values) (*ApiKey, error) {
	return call[ApiKey](ctx, c, http.MethodPost, at("accounts", account, "apiKeys"), body, query)
}

// ListApplicationApiKeys: Find an API key by its id.
func (c *Client) ListApplicationApiKeys(ctx context.Context, application string, query ...url.Values) iter.Seq2[*ApiKey, error] {
	return all[ApiKey](ctx, c, at("applications", application, "apiKeys"), query)
}

// GetApiKey: Read an API key.
func (c *Client) GetApiKey(ctx context.Context, apiKey string, query ...url.Values) (*ApiKey, error) {
	return call[ApiKey](ctx, c, http.MethodGet, at("apiKeys", apiKey), nil, query)
}

// UpdateApiKey: Change an API key.
func (c *Client) UpdateApiKey(ctx context.Context, apiKey string, body ApiKeyChange, query ...url.Values) (*ApiKey, error) {
	return call[ApiKey](ctx, c, http.MethodPost, at("apiKeys", apiKey), body, query)
}

// DeleteApiKey: Delete an API key.
func (c *Client) DeleteApiKey(ctx context.Context, apiKey string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("apiKeys", apiKey), nil, query)
}

// GetIdSite: Read an ID site.
func (c *Client) GetIdSite(ctx context.Context, idSite string, query ...url.Values) (*IdSite, error) {
	return call[IdSite](ctx, c, http.MethodGet, at("idSites", idSite), nil, query)
}

// UpdateIdSite: Change an ID site.
func (c *Client) UpdateIdSite(ctx context.Context, idSite string, body IdSiteChange, query ...url.Values) (*IdSite, error) {
	return call[IdSite](ctx, c, http.MethodPost, at("idSites", idSite), body, query)
}

// GetOpenIdProvider: Read an open id provider.
func (c *Client) GetOpenIdProvider(ctx context.Context, application string, query ...url.Values) (*OpenIdProvider, error) {
	return call[OpenIdProvider](ctx, c, http.MethodGet, at("openIdProviders", application), nil, query)
}

// UpdateOpenIdProvider: Change an open id provider.
func (c *Client) UpdateOpenIdProvider(ctx context.Context, application string, body OpenIdProviderChange, query ...url.Values) (*OpenIdProvider, error) {
	return call[OpenIdProvider](ctx, c, http.MethodPost, at("openIdProviders", application), body, query)
}

// ListApplicationOpenIdClients: List the open id clients of an application.
func (c *Client) ListApplicationOpenIdClients(ctx context.Context, application string, query ...url.Values) iter.Seq2[*OpenIdClient, error] {
	return all[OpenIdClient](ctx, c, at("applications", application, "openIdClients"), query)
}

// CreateApplicationOpenIdClient: Create an open id client in an application.
func (c *Client) CreateApplicationOpenIdClient(ctx context.Context, application string, body NewOpenIdClient, query ...url.Values) (*OpenIdClient, error) {
	return call[OpenIdClient](ctx, c, http.MethodPost, at("applications", application, "openIdClients"), body, query)
}

// GetOpenIdClient: Read an open id client.
func (c *Client) GetOpenIdClient(ctx context.Context, openIdClient string, query ...url.Values) (*OpenIdClient, error) {
	return call[OpenIdClient](ctx, c, http.MethodGet, at("openIdClients", openIdClient), nil, query)
}

// UpdateOpenIdClient: Change an open id client.
func (c *Client) UpdateOpenIdClient(ctx context.Context, openIdClient string, body OpenIdClientChange, query ...url.Values) (*OpenIdClient, error) {
	return call[OpenIdClient](ctx, c, http.MethodPost, at("openIdClients", openIdClient), body, query)
}

// DeleteOpenIdClient: Delete an open id client.
func (c *Client) DeleteOpenIdClient(ctx context.Context, openIdClient string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("openIdClients", openIdClient), nil, query)
}

// ListOpenIdClientSecrets: List the secrets of an open id client.
func (c *Client) ListOpenIdClientSecrets(ctx context.Context, openIdClient string, query ...url.Values) iter.Seq2[*ClientSecret, error] {
	return all[ClientSecret](ctx, c, at("openIdClients", openIdClient, "secrets"), query)
}

// CreateClientSecret: Make a secret of a client.
func (c *Client) CreateClientSecret(ctx context.Context, openIdClient string, query ...url.Values) (*ClientSecret, error) {
	return call[ClientSecret](ctx, c, http.MethodPost, at("openIdClients", openIdClient, "secrets"), nil, query)
}

// DeleteClientSecret: Delete a secret of a client.
func (c *Client) DeleteClientSecret(ctx context.Context, openIdClient string, secret string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("openIdClients", openIdClient, "secrets", secret), nil, query)
}

// PreviewTokens: Show the claims that a login would give.
func (c *Client) PreviewTokens(ctx context.Context, openIdClient string, body TokenPreviewRequest, query ...url.Values) (*TokenPreview, error) {
	return call[TokenPreview](ctx, c, http.MethodPost, at("openIdClients", openIdClient, "tokenPreviews"), body, query)
}

// ListOpenIdProviderRegistrationTokens: List the registration tokens of an open id provider.
func (c *Client) ListOpenIdProviderRegistrationTokens(ctx context.Context, application string, query ...url.Values) iter.Seq2[*RegistrationToken, error] {
	return all[RegistrationToken](ctx, c, at("openIdProviders", application, "registrationTokens"), query)
}

// CreateOpenIdProviderRegistrationToken: Create a registration token in an open id provider.
func (c *Client) CreateOpenIdProviderRegistrationToken(ctx context.Context, application string, body NewRegistrationToken, query ...url.Values) (*RegistrationToken, error) {
	return call[RegistrationToken](ctx, c, http.MethodPost, at("openIdProviders", application, "registrationTokens"), body, query)
}

// DeleteRegistrationToken: End an initial access token.
func (c *Client) DeleteRegistrationToken(ctx context.Context, application string, registrationToken string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("openIdProviders", application, "registrationTokens", registrationToken), nil, query)
}

// ListTenantSigningKeys: List the signing keys of a tenant.
func (c *Client) ListTenantSigningKeys(ctx context.Context, tenant string, query ...url.Values) iter.Seq2[*SigningKey, error] {
	return all[SigningKey](ctx, c, at("tenants", tenant, "signingKeys"), query)
}

// CreateTenantSigningKey: Create a signing key in a tenant.
func (c *Client) CreateTenantSigningKey(ctx context.Context, tenant string, body NewSigningKey, query ...url.Values) (*SigningKey, error) {
	return call[SigningKey](ctx, c, http.MethodPost, at("tenants", tenant, "signingKeys"), body, query)
}

// GetSigningKey: Read a signing key.
func (c *Client) GetSigningKey(ctx context.Context, signingKey string, query ...url.Values) (*SigningKey, error) {
	return call[SigningKey](ctx, c, http.MethodGet, at("signingKeys", signingKey), nil, query)
}

// UpdateSigningKey: Change a signing key.
func (c *Client) UpdateSigningKey(ctx context.Context, signingKey string, body SigningKeyChange, query ...url.Values) (*SigningKey, error) {
	return call[SigningKey](ctx, c, http.MethodPost, at("signingKeys", signingKey), body, query)
}

// GetOpenIdSettings: Read an open id settings.
func (c *Client) GetOpenIdSettings(ctx context.Context, tenant string, query ...url.Values) (*OpenIdSettings, error) {
	return call[OpenIdSettings](ctx, c, http.MethodGet, at("openIdSettings", tenant), nil, query)
}

// UpdateOpenIdSettings: Change an open id settings.
func (c *Client) UpdateOpenIdSettings(ctx context.Context, tenant string, body OpenIdSettingsChange, query ...url.Values) (*OpenIdSettings, error) {
	return call[OpenIdSettings](ctx, c, http.MethodPost, at("openIdSettings", tenant), body, query)
}

// ListAccountSessions: List the sessions of an account.
func (c *Client) ListAccountSessions(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Session, error] {
	return all[Session](ctx, c, at("accounts", account, "sessions"), query)
}

// DeleteSessionsOfAccount: End all sessions of an account.
func (c *Client) DeleteSessionsOfAccount(ctx context.Context, account string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accounts", account, "sessions"), nil, query)
}

// GetSession: Read a session.
func (c *Client) GetSession(ctx context.Context, session string, query ...url.Values) (*Session, error) {
	return call[Session](ctx, c, http.MethodGet, at("sessions", session), nil, query)
}

// DeleteSession: Delete a session.
func (c *Client) DeleteSession(ctx context.Context, session string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("sessions", session), nil, query)
}

// ListAccountConsents: List the consents of an account.
func (c *Client) ListAccountConsents(ctx context.Context, account string, query ...url.Values) iter.Seq2[*Consent, error] {
	return all[Consent](ctx, c, at("accounts", account, "consents"), query)
}

// GetConsent: Read a consent.
func (c *Client) GetConsent(ctx context.Context, consent string, query ...url.Values) (*Consent, error) {
	return call[Consent](ctx, c, http.MethodGet, at("consents", consent), nil, query)
}

// DeleteConsent: Delete a consent.
func (c *Client) DeleteConsent(ctx context.Context, consent string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("consents", consent), nil, query)
}

// CreateSmtpServer: Create an SMTP server.
func (c *Client) CreateSmtpServer(ctx context.Context, body NewSmtpServer, query ...url.Values) (*SmtpServer, error) {
	return call[SmtpServer](ctx, c, http.MethodPost, at("smtpServers"), body, query)
}

// GetSmtpServer: Read an SMTP server.
func (c *Client) GetSmtpServer(ctx context.Context, smtpServer string, query ...url.Values) (*SmtpServer, error) {
	return call[SmtpServer](ctx, c, http.MethodGet, at("smtpServers", smtpServer), nil, query)
}

// UpdateSmtpServer: Change an SMTP server.
func (c *Client) UpdateSmtpServer(ctx context.Context, smtpServer string, body SmtpServerChange, query ...url.Values) (*SmtpServer, error) {
	return call[SmtpServer](ctx, c, http.MethodPost, at("smtpServers", smtpServer), body, query)
}

// DeleteSmtpServer: Delete an SMTP server.
func (c *Client) DeleteSmtpServer(ctx context.Context, smtpServer string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("smtpServers", smtpServer), nil, query)
}

// GetAgent: Read an agent.
func (c *Client) GetAgent(ctx context.Context, agent string, query ...url.Values) (*Agent, error) {
	return call[Agent](ctx, c, http.MethodGet, at("agents", agent), nil, query)
}

// UpdateAgent: Change an agent.
func (c *Client) UpdateAgent(ctx context.Context, agent string, body AgentChange, query ...url.Values) (*Agent, error) {
	return call[Agent](ctx, c, http.MethodPost, at("agents", agent), body, query)
}

// PingAgent: Say how the agent does.
func (c *Client) PingAgent(ctx context.Context, agent string, body AgentPing, query ...url.Values) (*Agent, error) {
	return call[Agent](ctx, c, http.MethodPost, at("agents", agent, "ping"), body, query)
}

// ListAgentKeys: List the keys of an agent.
func (c *Client) ListAgentKeys(ctx context.Context, agent string, query ...url.Values) (*AgentKeys, error) {
	return call[AgentKeys](ctx, c, http.MethodGet, at("agents", agent, "keys"), nil, query)
}

// CreateAgentKey: Make a key that can do nothing but be this agent.
func (c *Client) CreateAgentKey(ctx context.Context, agent string, body NewAgentKey, query ...url.Values) (*AgentKey, error) {
	return call[AgentKey](ctx, c, http.MethodPost, at("agents", agent, "keys"), body, query)
}

// DeleteAgentKey: Delete a key of an agent.
func (c *Client) DeleteAgentKey(ctx context.Context, agent string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("agents", agent, "keys", key), nil, query)
}

// GetAgentConfiguration: Read what the agent works by.
func (c *Client) GetAgentConfiguration(ctx context.Context, agent string, query ...url.Values) (*AgentConfiguration, error) {
	return call[AgentConfiguration](ctx, c, http.MethodGet, at("agents", agent, "configuration"), nil, query)
}

// ListAgentRefusals: List the entries that could not be taken.
func (c *Client) ListAgentRefusals(ctx context.Context, agent string, query ...url.Values) (*AgentRefusals, error) {
	return call[AgentRefusals](ctx, c, http.MethodGet, at("agents", agent, "refusals"), nil, query)
}

// SyncAgent: Send accounts and groups.
func (c *Client) SyncAgent(ctx context.Context, agent string, body AgentSync, query ...url.Values) error {
	return call0(ctx, c, http.MethodPost, at("agents", agent, "sync"), body, query)
}

// GetSamlPolicy: Read a SAML policy.
func (c *Client) GetSamlPolicy(ctx context.Context, samlPolicy string, query ...url.Values) (*SamlPolicy, error) {
	return call[SamlPolicy](ctx, c, http.MethodGet, at("samlPolicies", samlPolicy), nil, query)
}

// GetOwnSamlServiceProvider: Read an application as a SAML service provider.
func (c *Client) GetOwnSamlServiceProvider(ctx context.Context, ownSamlServiceProvider string, query ...url.Values) (*OwnSamlServiceProvider, error) {
	return call[OwnSamlServiceProvider](ctx, c, http.MethodGet, at("samlServiceProviders", ownSamlServiceProvider), nil, query)
}

// CreateDefaultRelayState: Make a relay state.
func (c *Client) CreateDefaultRelayState(ctx context.Context, ownSamlServiceProvider string, body NewRelayState, query ...url.Values) (*RelayState, error) {
	return call[RelayState](ctx, c, http.MethodPost, at("samlServiceProviders", ownSamlServiceProvider, "defaultRelayStates"), body, query)
}

// GetSamlIdentityProvider: Read a SAML identity provider.
func (c *Client) GetSamlIdentityProvider(ctx context.Context, samlIdentityProvider string, query ...url.Values) (*SamlIdentityProvider, error) {
	return call[SamlIdentityProvider](ctx, c, http.MethodGet, at("samlIdentityProviders", samlIdentityProvider), nil, query)
}

// UpdateSamlIdentityProvider: Change a SAML identity provider.
func (c *Client) UpdateSamlIdentityProvider(ctx context.Context, samlIdentityProvider string, body SamlIdentityProviderChange, query ...url.Values) (*SamlIdentityProvider, error) {
	return call[SamlIdentityProvider](ctx, c, http.MethodPost, at("samlIdentityProviders", samlIdentityProvider), body, query)
}

// ListSamlIdentityProviderRegisteredSamlServiceProviders: List the registered SAML service providers of a SAML identity provider.
func (c *Client) ListSamlIdentityProviderRegisteredSamlServiceProviders(ctx context.Context, samlIdentityProvider string, query ...url.Values) iter.Seq2[*SamlServiceProvider, error] {
	return all[SamlServiceProvider](ctx, c, at("samlIdentityProviders", samlIdentityProvider, "registeredSamlServiceProviders"), query)
}

// ListSamlIdentityProviderSamlServiceProviderRegistrations: List the SAML service provider registrations of a SAML identity provider.
func (c *Client) ListSamlIdentityProviderSamlServiceProviderRegistrations(ctx context.Context, samlIdentityProvider string, query ...url.Values) iter.Seq2[*SamlServiceProviderRegistration, error] {
	return all[SamlServiceProviderRegistration](ctx, c, at("samlIdentityProviders", samlIdentityProvider, "samlServiceProviderRegistrations"), query)
}

// CreateSamlIdentityProviderSamlServiceProviderRegistration: Create a SAML service provider registration in a SAML identity provider.
func (c *Client) CreateSamlIdentityProviderSamlServiceProviderRegistration(ctx context.Context, samlIdentityProvider string, body NewSamlServiceProviderRegistration, query ...url.Values) (*SamlServiceProviderRegistration, error) {
	return call[SamlServiceProviderRegistration](ctx, c, http.MethodPost, at("samlIdentityProviders", samlIdentityProvider, "samlServiceProviderRegistrations"), body, query)
}

// VerifyAuthnRequest: Verify a service provider's request.
func (c *Client) VerifyAuthnRequest(ctx context.Context, samlIdentityProvider string, body NewAuthnVerification, query ...url.Values) (*AuthnVerification, error) {
	return call[AuthnVerification](ctx, c, http.MethodPost, at("samlIdentityProviders", samlIdentityProvider, "authnVerifications"), body, query)
}

// CreateSamlResponse: Make the response that logs an account in to a service provider.
func (c *Client) CreateSamlResponse(ctx context.Context, samlIdentityProvider string, body NewSamlResponse, query ...url.Values) (*SamlResponse, error) {
	return call[SamlResponse](ctx, c, http.MethodPost, at("samlIdentityProviders", samlIdentityProvider, "samlResponses"), body, query)
}

// GetSamlIdentityProviderMetadata: Read the metadata of a SAML identity provider.
func (c *Client) GetSamlIdentityProviderMetadata(ctx context.Context, samlIdentityProviderMetadata string, query ...url.Values) (*SamlIdentityProviderMetadata, error) {
	return call[SamlIdentityProviderMetadata](ctx, c, http.MethodGet, at("samlIdentityProviderMetadatas", samlIdentityProviderMetadata), nil, query)
}

// CreateSamlServiceProvider: Create a SAML service provider.
func (c *Client) CreateSamlServiceProvider(ctx context.Context, body NewSamlServiceProvider, query ...url.Values) (*SamlServiceProvider, error) {
	return call[SamlServiceProvider](ctx, c, http.MethodPost, at("registeredSamlServiceProviders"), body, query)
}

// GetSamlServiceProvider: Read a SAML service provider.
func (c *Client) GetSamlServiceProvider(ctx context.Context, samlServiceProvider string, query ...url.Values) (*SamlServiceProvider, error) {
	return call[SamlServiceProvider](ctx, c, http.MethodGet, at("registeredSamlServiceProviders", samlServiceProvider), nil, query)
}

// UpdateSamlServiceProvider: Change a SAML service provider.
func (c *Client) UpdateSamlServiceProvider(ctx context.Context, samlServiceProvider string, body SamlServiceProviderChange, query ...url.Values) (*SamlServiceProvider, error) {
	return call[SamlServiceProvider](ctx, c, http.MethodPost, at("registeredSamlServiceProviders", samlServiceProvider), body, query)
}

// DeleteRegisteredSamlServiceProvider: Delete a registered SAML service provider.
func (c *Client) DeleteRegisteredSamlServiceProvider(ctx context.Context, samlServiceProvider string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("registeredSamlServiceProviders", samlServiceProvider), nil, query)
}

// GetSamlServiceProviderRegistration: Read a SAML service provider registration.
func (c *Client) GetSamlServiceProviderRegistration(ctx context.Context, samlServiceProviderRegistration string, query ...url.Values) (*SamlServiceProviderRegistration, error) {
	return call[SamlServiceProviderRegistration](ctx, c, http.MethodGet, at("samlServiceProviderRegistrations", samlServiceProviderRegistration), nil, query)
}

// UpdateSamlServiceProviderRegistration: Change a SAML service provider registration.
func (c *Client) UpdateSamlServiceProviderRegistration(ctx context.Context, samlServiceProviderRegistration string, body SamlServiceProviderRegistrationChange, query ...url.Values) (*SamlServiceProviderRegistration, error) {
	return call[SamlServiceProviderRegistration](ctx, c, http.MethodPost, at("samlServiceProviderRegistrations", samlServiceProviderRegistration), body, query)
}

// DeleteSamlServiceProviderRegistration: Delete a SAML service provider registration.
func (c *Client) DeleteSamlServiceProviderRegistration(ctx context.Context, samlServiceProviderRegistration string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("samlServiceProviderRegistrations", samlServiceProviderRegistration), nil, query)
}

// GetSamlServiceProviderMetadata: Read the metadata of a SAML directory.
func (c *Client) GetSamlServiceProviderMetadata(ctx context.Context, samlServiceProviderMetadata string, query ...url.Values) (*SamlServiceProviderMetadata, error) {
	return call[SamlServiceProviderMetadata](ctx, c, http.MethodGet, at("samlServiceProviderMetadatas", samlServiceProviderMetadata), nil, query)
}

// GetTenantCustomData: Read the custom data of the tenant.
func (c *Client) GetTenantCustomData(ctx context.Context, tenant string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("tenants", tenant, "customData"), nil, query)
}

// MergeTenantCustomData: Merge members into the custom data of the tenant.
func (c *Client) MergeTenantCustomData(ctx context.Context, tenant string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("tenants", tenant, "customData"), body, query)
}

// ClearTenantCustomData: Remove all custom data of the tenant.
func (c *Client) ClearTenantCustomData(ctx context.Context, tenant string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("tenants", tenant, "customData"), nil, query)
}

// DeleteTenantCustomDataMember: Remove one member of the custom data of the tenant.
func (c *Client) DeleteTenantCustomDataMember(ctx context.Context, tenant string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("tenants", tenant, "customData", key), nil, query)
}

// GetApplicationCustomData: Read the custom data of the application.
func (c *Client) GetApplicationCustomData(ctx context.Context, application string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("applications", application, "customData"), nil, query)
}

// MergeApplicationCustomData: Merge members into the custom data of the application.
func (c *Client) MergeApplicationCustomData(ctx context.Context, application string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("applications", application, "customData"), body, query)
}

// ClearApplicationCustomData: Remove all custom data of the application.
func (c *Client) ClearApplicationCustomData(ctx context.Context, application string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("applications", application, "customData"), nil, query)
}

// DeleteApplicationCustomDataMember: Remove one member of the custom data of the application.
func (c *Client) DeleteApplicationCustomDataMember(ctx context.Context, application string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("applications", application, "customData", key), nil, query)
}

// GetDirectoryCustomData: Read the custom data of the directory.
func (c *Client) GetDirectoryCustomData(ctx context.Context, directory string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("directories", directory, "customData"), nil, query)
}

// MergeDirectoryCustomData: Merge members into the custom data of the directory.
func (c *Client) MergeDirectoryCustomData(ctx context.Context, directory string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("directories", directory, "customData"), body, query)
}

// ClearDirectoryCustomData: Remove all custom data of the directory.
func (c *Client) ClearDirectoryCustomData(ctx context.Context, directory string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("directories", directory, "customData"), nil, query)
}

// DeleteDirectoryCustomDataMember: Remove one member of the custom data of the directory.
func (c *Client) DeleteDirectoryCustomDataMember(ctx context.Context, directory string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("directories", directory, "customData", key), nil, query)
}

// GetGroupCustomData: Read the custom data of the group.
func (c *Client) GetGroupCustomData(ctx context.Context, group string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("groups", group, "customData"), nil, query)
}

// MergeGroupCustomData: Merge members into the custom data of the group.
func (c *Client) MergeGroupCustomData(ctx context.Context, group string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("groups", group, "customData"), body, query)
}

// ClearGroupCustomData: Remove all custom data of the group.
func (c *Client) ClearGroupCustomData(ctx context.Context, group string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("groups", group, "customData"), nil, query)
}

// DeleteGroupCustomDataMember: Remove one member of the custom data of the group.
func (c *Client) DeleteGroupCustomDataMember(ctx context.Context, group string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("groups", group, "customData", key), nil, query)
}

// GetOrganizationCustomData: Read the custom data of the organization.
func (c *Client) GetOrganizationCustomData(ctx context.Context, organization string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("organizations", organization, "customData"), nil, query)
}

// MergeOrganizationCustomData: Merge members into the custom data of the organization.
func (c *Client) MergeOrganizationCustomData(ctx context.Context, organization string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("organizations", organization, "customData"), body, query)
}

// ClearOrganizationCustomData: Remove all custom data of the organization.
func (c *Client) ClearOrganizationCustomData(ctx context.Context, organization string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("organizations", organization, "customData"), nil, query)
}

// DeleteOrganizationCustomDataMember: Remove one member of the custom data of the organization.
func (c *Client) DeleteOrganizationCustomDataMember(ctx context.Context, organization string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("organizations", organization, "customData", key), nil, query)
}

// GetOpenIdClientCustomData: Read the custom data of the client.
func (c *Client) GetOpenIdClientCustomData(ctx context.Context, openIdClient string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("openIdClients", openIdClient, "customData"), nil, query)
}

// MergeOpenIdClientCustomData: Merge members into the custom data of the client.
func (c *Client) MergeOpenIdClientCustomData(ctx context.Context, openIdClient string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("openIdClients", openIdClient, "customData"), body, query)
}

// ClearOpenIdClientCustomData: Remove all custom data of the client.
func (c *Client) ClearOpenIdClientCustomData(ctx context.Context, openIdClient string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("openIdClients", openIdClient, "customData"), nil, query)
}

// DeleteOpenIdClientCustomDataMember: Remove one member of the custom data of the client.
func (c *Client) DeleteOpenIdClientCustomDataMember(ctx context.Context, openIdClient string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("openIdClients", openIdClient, "customData", key), nil, query)
}

// GetAccountCustomData: Read the custom data of the account.
func (c *Client) GetAccountCustomData(ctx context.Context, account string, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodGet, at("accounts", account, "customData"), nil, query)
}

// MergeAccountCustomData: Merge members into the custom data of the account.
func (c *Client) MergeAccountCustomData(ctx context.Context, account string, body CustomDataChange, query ...url.Values) (*CustomData, error) {
	return call[CustomData](ctx, c, http.MethodPost, at("accounts", account, "customData"), body, query)
}

// ClearAccountCustomData: Remove all custom data of the account.
func (c *Client) ClearAccountCustomData(ctx context.Context, account string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accounts", account, "customData"), nil, query)
}

// DeleteAccountCustomDataMember: Remove one member of the custom data of the account.
func (c *Client) DeleteAccountCustomDataMember(ctx context.Context, account string, key string, query ...url.Values) error {
	return call0(ctx, c, http.MethodDelete, at("accounts", account, "customData", key), nil, query)
}
