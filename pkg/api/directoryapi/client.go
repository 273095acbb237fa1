package directoryapi

import (
	"context"

	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rpc"
)

// Contract is all that other services ask of the directory service.
type Contract interface {
	API
	Hosted
}

// Client returns the directory service of another process. The paths of its calls are the explicit
// names below, which the previous release uses, too.
func Client(peer rpc.Peer) Contract { return client{peer} }

type client struct{ rpc.Peer }

func (c client) SignUp(ctx context.Context, in SignUp) (SignedUp, error) {
	return rpc.Call[SignUp, SignedUp](ctx, c.Peer, "directory.SignUp", in)
}

func (c client) CreateDirectory(ctx context.Context, in CreateDirectory) (Directory, error) {
	return rpc.Call[CreateDirectory, Directory](ctx, c.Peer, "directory.CreateDirectory", in)
}

func (c client) Directory(ctx context.Context, in Ref) (Directory, error) {
	return rpc.Call[Ref, Directory](ctx, c.Peer, "directory.Directory", in)
}

func (c client) DeleteDirectory(ctx context.Context, in Ref) (Empty, error) {
	return rpc.Call[Ref, Empty](ctx, c.Peer, "directory.DeleteDirectory", in)
}

func (c client) CreateAccount(ctx context.Context, in CreateAccount) (Account, error) {
	return rpc.Call[CreateAccount, Account](ctx, c.Peer, "directory.CreateAccount", in)
}

func (c client) Account(ctx context.Context, in Ref) (Account, error) {
	return rpc.Call[Ref, Account](ctx, c.Peer, "directory.Account", in)
}

func (c client) ListAccounts(ctx context.Context, in ListAccounts) (list.Page[Account], error) {
	return rpc.Call[ListAccounts, list.Page[Account]](ctx, c.Peer, "directory.ListAccounts", in)
}

func (c client) Authenticate(ctx context.Context, in Authenticate) (Authenticated, error) {
	return rpc.Call[Authenticate, Authenticated](ctx, c.Peer, "directory.Authenticate", in)
}

func (c client) LinkedAccount(ctx context.Context, in LinkedAccountRequest) (LinkedAccount, error) {
	return rpc.Call[LinkedAccountRequest, LinkedAccount](ctx, c.Peer, "directory.LinkedAccount", in)
}

func (c client) ExplainLogin(ctx context.Context, in ExplainLogin) (ExplainedLogin, error) {
	return rpc.Call[ExplainLogin, ExplainedLogin](ctx, c.Peer, "directory.ExplainLogin", in)
}

func (c client) CheckAccess(ctx context.Context, in CheckAccess) (Access, error) {
	return rpc.Call[CheckAccess, Access](ctx, c.Peer, "directory.CheckAccess", in)
}

func (c client) AccessChanges(ctx context.Context, in changefeed.Position) (changefeed.Page, error) {
	return rpc.Call[changefeed.Position, changefeed.Page](ctx, c.Peer, "directory.AccessChanges", in)
}

func (c client) Mail(ctx context.Context, in MailOf) (Mail, error) {
	return rpc.Call[MailOf, Mail](ctx, c.Peer, "directory.Mail", in)
}

func (c client) Tenant(ctx context.Context, in Ref) (Tenant, error) {
	return rpc.Call[Ref, Tenant](ctx, c.Peer, "directory.Tenant", in)
}

func (c client) AuthenticateAgent(ctx context.Context, in AuthenticateAgent) (AgentKey, error) {
	return rpc.Call[AuthenticateAgent, AgentKey](ctx, c.Peer, "directory.AuthenticateAgent", in)
}

func (c client) Owner(ctx context.Context, in Ref) (Account, error) {
	return rpc.Call[Ref, Account](ctx, c.Peer, "directory.Owner", in)
}

func (c client) CreateGroup(ctx context.Context, in CreateGroup) (Group, error) {
	return rpc.Call[CreateGroup, Group](ctx, c.Peer, "directory.CreateGroup", in)
}

func (c client) Group(ctx context.Context, in Ref) (Group, error) {
	return rpc.Call[Ref, Group](ctx, c.Peer, "directory.Group", in)
}

func (c client) ListGroups(ctx context.Context, in ListGroups) (list.Page[Group], error) {
	return rpc.Call[ListGroups, list.Page[Group]](ctx, c.Peer, "directory.ListGroups", in)
}

func (c client) StoresOf(ctx context.Context, in Ref) (StoresOf, error) {
	return rpc.Call[Ref, StoresOf](ctx, c.Peer, "directory.StoresOf", in)
}

func (c client) RequestVerification(ctx context.Context, in RequestVerification) (RequestedMail, error) {
	return rpc.Call[RequestVerification, RequestedMail](ctx, c.Peer, "directory.RequestVerification", in)
}

func (c client) Verification(ctx context.Context, in VerifyEmail) (MailedLink, error) {
	return rpc.Call[VerifyEmail, MailedLink](ctx, c.Peer, "directory.Verification", in)
}

func (c client) EndedLink(ctx context.Context, in EndedLink) (MailedLink, error) {
	return rpc.Call[EndedLink, MailedLink](ctx, c.Peer, "directory.EndedLink", in)
}

func (c client) VerifyEmail(ctx context.Context, in VerifyEmail) (Account, error) {
	return rpc.Call[VerifyEmail, Account](ctx, c.Peer, "directory.VerifyEmail", in)
}

func (c client) RemindOfAccount(ctx context.Context, in RequestReset) (Empty, error) {
	return rpc.Call[RequestReset, Empty](ctx, c.Peer, "directory.RemindOfAccount", in)
}

func (c client) RequestReset(ctx context.Context, in RequestReset) (PasswordReset, error) {
	return rpc.Call[RequestReset, PasswordReset](ctx, c.Peer, "directory.RequestReset", in)
}

func (c client) Reset(ctx context.Context, in ResetToken) (PasswordReset, error) {
	return rpc.Call[ResetToken, PasswordReset](ctx, c.Peer, "directory.Reset", in)
}

func (c client) ResetPassword(ctx context.Context, in ResetPassword) (PasswordReset, error) {
	return rpc.Call[ResetPassword, PasswordReset](ctx, c.Peer, "directory.ResetPassword", in)
}

func (c client) SocialAccount(ctx context.Context, in SocialAccount) (ProviderAccountResult, error) {
	return rpc.Call[SocialAccount, ProviderAccountResult](ctx, c.Peer, "directory.SocialAccount", in)
}

func (c client) BeginSocialLogin(ctx context.Context, in BeginSocialLogin) (SocialLoginBegun, error) {
	return rpc.Call[BeginSocialLogin, SocialLoginBegun](ctx, c.Peer, "directory.BeginSocialLogin", in)
}

func (c client) ProviderAccount(ctx context.Context, in ProviderUser) (ProviderAccountResult, error) {
	return rpc.Call[ProviderUser, ProviderAccountResult](ctx, c.Peer, "directory.ProviderAccount", in)
}

func (c client) LoginDirectories(ctx context.Context, in LoginDirectories) (LoginDirectoryList, error) {
	return rpc.Call[LoginDirectories, LoginDirectoryList](ctx, c.Peer, "directory.LoginDirectories", in)
}

func (c client) RegistrationRules(ctx context.Context, in Ref) (RegistrationRules, error) {
	return rpc.Call[Ref, RegistrationRules](ctx, c.Peer, "directory.RegistrationRules", in)
}

func (c client) Profile(ctx context.Context, in ProfileRequest) (Profile, error) {
	return rpc.Call[ProfileRequest, Profile](ctx, c.Peer, "directory.Profile", in)
}

func (c client) RequestSignUp(ctx context.Context, in RequestSignUp) (Empty, error) {
	return rpc.Call[RequestSignUp, Empty](ctx, c.Peer, "directory.RequestSignUp", in)
}

func (c client) PendingSignUp(ctx context.Context, in SignUpToken) (PendingSignUp, error) {
	return rpc.Call[SignUpToken, PendingSignUp](ctx, c.Peer, "directory.PendingSignUp", in)
}

func (c client) EndSignUp(ctx context.Context, in SignUpToken) (Empty, error) {
	return rpc.Call[SignUpToken, Empty](ctx, c.Peer, "directory.EndSignUp", in)
}

func (c client) AcceptInvitation(ctx context.Context, in AcceptInvitation) (Account, error) {
	return rpc.Call[AcceptInvitation, Account](ctx, c.Peer, "directory.AcceptInvitation", in)
}

func (c client) SAMLTenant(ctx context.Context, in SAMLDirectory) (SAMLTenant, error) {
	return rpc.Call[SAMLDirectory, SAMLTenant](ctx, c.Peer, "directory.SAMLTenant", in)
}

func (c client) BeginSAMLLogin(ctx context.Context, in BeginSAMLLogin) (SAMLRedirect, error) {
	return rpc.Call[BeginSAMLLogin, SAMLRedirect](ctx, c.Peer, "directory.BeginSAMLLogin", in)
}

func (c client) FinishSAMLLogin(ctx context.Context, in FinishSAMLLogin) (SAMLLogin, error) {
	return rpc.Call[FinishSAMLLogin, SAMLLogin](ctx, c.Peer, "directory.FinishSAMLLogin", in)
}

func (c client) SAMLLogout(ctx context.Context, in SAMLLogout) (SAMLRedirect, error) {
	return rpc.Call[SAMLLogout, SAMLRedirect](ctx, c.Peer, "directory.SAMLLogout", in)
}

// Serve answers the calls of a Client.
func Serve(router rpc.Router, api Contract) {
	rpc.Serve(router, "directory.SignUp", api.SignUp)
	rpc.Serve(router, "directory.Tenant", api.Tenant)
	rpc.Serve(router, "directory.CreateDirectory", api.CreateDirectory)
	rpc.Serve(router, "directory.Directory", api.Directory)
	rpc.Serve(router, "directory.DeleteDirectory", api.DeleteDirectory)
	rpc.Serve(router, "directory.CreateAccount", api.CreateAccount)
	rpc.Serve(router, "directory.Account", api.Account)
	rpc.Serve(router, "directory.ListAccounts", api.ListAccounts)
	rpc.Serve(router, "directory.Authenticate", api.Authenticate)
	rpc.Serve(router, "directory.LinkedAccount", api.LinkedAccount)
	rpc.Serve(router, "directory.ExplainLogin", api.ExplainLogin)
	rpc.Serve(router, "directory.CheckAccess", api.CheckAccess)
	rpc.Serve(router, "directory.AccessChanges", api.AccessChanges)
	rpc.Serve(router, "directory.Mail", api.Mail)
	rpc.Serve(router, "directory.AuthenticateAgent", api.AuthenticateAgent)
	rpc.Serve(router, "directory.Owner", api.Owner)
	rpc.Serve(router, "directory.Profile", api.Profile)
	rpc.Serve(router, "directory.CreateGroup", api.CreateGroup)
	rpc.Serve(router, "directory.Group", api.Group)
	rpc.Serve(router, "directory.ListGroups", api.ListGroups)
	rpc.Serve(router, "directory.StoresOf", api.StoresOf)
	rpc.Serve(router, "directory.RequestVerification", api.RequestVerification)
	rpc.Serve(router, "directory.VerifyEmail", api.VerifyEmail)
	rpc.Serve(router, "directory.Verification", api.Verification)
	rpc.Serve(router, "directory.EndedLink", api.EndedLink)
	rpc.Serve(router, "directory.RequestReset", api.RequestReset)
	rpc.Serve(router, "directory.RemindOfAccount", api.RemindOfAccount)
	rpc.Serve(router, "directory.Reset", api.Reset)
	rpc.Serve(router, "directory.ResetPassword", api.ResetPassword)
	rpc.Serve(router, "directory.ProviderAccount", api.ProviderAccount)
	rpc.Serve(router, "directory.SocialAccount", api.SocialAccount)
	rpc.Serve(router, "directory.BeginSocialLogin", api.BeginSocialLogin)
	rpc.Serve(router, "directory.LoginDirectories", api.LoginDirectories)
	rpc.Serve(router, "directory.RegistrationRules", api.RegistrationRules)
	rpc.Serve(router, "directory.RequestSignUp", api.RequestSignUp)
	rpc.Serve(router, "directory.PendingSignUp", api.PendingSignUp)
	rpc.Serve(router, "directory.EndSignUp", api.EndSignUp)
	rpc.Serve(router, "directory.AcceptInvitation", api.AcceptInvitation)
	rpc.Serve(router, "directory.SAMLTenant", api.SAMLTenant)
	rpc.Serve(router, "directory.BeginSAMLLogin", api.BeginSAMLLogin)
	rpc.Serve(router, "directory.FinishSAMLLogin", api.FinishSAMLLogin)
	rpc.Serve(router, "directory.SAMLLogout", api.SAMLLogout)
}
