package directoryapi

import (
	"context"

	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the directory service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// SignUp asks the far service.
func (c Client) SignUp(ctx context.Context, in SignUp) (SignedUp, error) {
	return rpc.Call[SignUp, SignedUp](ctx, c.Peer, "directory.SignUp", in)
}

// CreateDirectory asks the far service.
func (c Client) CreateDirectory(ctx context.Context, in CreateDirectory) (Directory, error) {
	return rpc.Call[CreateDirectory, Directory](ctx, c.Peer, "directory.CreateDirectory", in)
}

// Directory asks the far service.
func (c Client) Directory(ctx context.Context, in Ref) (Directory, error) {
	return rpc.Call[Ref, Directory](ctx, c.Peer, "directory.Directory", in)
}

// DeleteDirectory asks the far service.
func (c Client) DeleteDirectory(ctx context.Context, in Ref) (Empty, error) {
	return rpc.Call[Ref, Empty](ctx, c.Peer, "directory.DeleteDirectory", in)
}

// CreateAccount asks the far service.
func (c Client) CreateAccount(ctx context.Context, in CreateAccount) (Account, error) {
	return rpc.Call[CreateAccount, Account](ctx, c.Peer, "directory.CreateAccount", in)
}

// Account asks the far service.
func (c Client) Account(ctx context.Context, in Ref) (Account, error) {
	return rpc.Call[Ref, Account](ctx, c.Peer, "directory.Account", in)
}

// ListAccounts asks the far service.
func (c Client) ListAccounts(ctx context.Context, in ListAccounts) (list.Page[Account], error) {
	return rpc.Call[ListAccounts, list.Page[Account]](ctx, c.Peer, "directory.ListAccounts", in)
}

// Authenticate asks the far service.
func (c Client) Authenticate(ctx context.Context, in Authenticate) (Authenticated, error) {
	return rpc.Call[Authenticate, Authenticated](ctx, c.Peer, "directory.Authenticate", in)
}

// LinkedAccount asks the far service.
func (c Client) LinkedAccount(ctx context.Context, in LinkAccount) (LinkedAccount, error) {
	return rpc.Call[LinkAccount, LinkedAccount](ctx, c.Peer, "directory.LinkedAccount", in)
}

// ExplainLogin asks the far service.
func (c Client) ExplainLogin(ctx context.Context, in ExplainLogin) (ExplainedLogin, error) {
	return rpc.Call[ExplainLogin, ExplainedLogin](ctx, c.Peer, "directory.ExplainLogin", in)
}

// CheckAccess asks the far service.
func (c Client) CheckAccess(ctx context.Context, in CheckAccess) (Account, error) {
	return rpc.Call[CheckAccess, Account](ctx, c.Peer, "directory.CheckAccess", in)
}

// Mail asks the far service.
func (c Client) Mail(ctx context.Context, in MailOf) (Mail, error) {
	return rpc.Call[MailOf, Mail](ctx, c.Peer, "directory.Mail", in)
}

// Tenant asks the far service.
func (c Client) Tenant(ctx context.Context, in Ref) (Tenant, error) {
	return rpc.Call[Ref, Tenant](ctx, c.Peer, "directory.Tenant", in)
}

// AuthenticateAgent asks the far service.
func (c Client) AuthenticateAgent(ctx context.Context, in AuthenticateAgent) (AgentKey, error) {
	return rpc.Call[AuthenticateAgent, AgentKey](ctx, c.Peer, "directory.AuthenticateAgent", in)
}

// Owner asks the far service.
func (c Client) Owner(ctx context.Context, in Ref) (Account, error) {
	return rpc.Call[Ref, Account](ctx, c.Peer, "directory.Owner", in)
}

// CreateGroup asks the far service.
func (c Client) CreateGroup(ctx context.Context, in CreateGroup) (Group, error) {
	return rpc.Call[CreateGroup, Group](ctx, c.Peer, "directory.CreateGroup", in)
}

// Group asks the far service.
func (c Client) Group(ctx context.Context, in Ref) (Group, error) {
	return rpc.Call[Ref, Group](ctx, c.Peer, "directory.Group", in)
}

// ListGroups asks the far service.
func (c Client) ListGroups(ctx context.Context, in ListGroups) (list.Page[Group], error) {
	return rpc.Call[ListGroups, list.Page[Group]](ctx, c.Peer, "directory.ListGroups", in)
}

// StoresOf asks the far service.
func (c Client) StoresOf(ctx context.Context, in Ref) (StoresOf, error) {
	return rpc.Call[Ref, StoresOf](ctx, c.Peer, "directory.StoresOf", in)
}

// RequestVerification asks the far service.
func (c Client) RequestVerification(ctx context.Context, in RequestVerification) (Empty, error) {
	return rpc.Call[RequestVerification, Empty](ctx, c.Peer, "directory.RequestVerification", in)
}

// Verification asks the far service.
func (c Client) Verification(ctx context.Context, in VerifyEmail) (Account, error) {
	return rpc.Call[VerifyEmail, Account](ctx, c.Peer, "directory.Verification", in)
}

// VerifyEmail asks the far service.
func (c Client) VerifyEmail(ctx context.Context, in VerifyEmail) (Account, error) {
	return rpc.Call[VerifyEmail, Account](ctx, c.Peer, "directory.VerifyEmail", in)
}

// RequestReset asks the far service.
func (c Client) RequestReset(ctx context.Context, in RequestReset) (PasswordReset, error) {
	return rpc.Call[RequestReset, PasswordReset](ctx, c.Peer, "directory.RequestReset", in)
}

// Reset asks the far service.
func (c Client) Reset(ctx context.Context, in ResetToken) (PasswordReset, error) {
	return rpc.Call[ResetToken, PasswordReset](ctx, c.Peer, "directory.Reset", in)
}

// ResetPassword asks the far service.
func (c Client) ResetPassword(ctx context.Context, in ResetPassword) (PasswordReset, error) {
	return rpc.Call[ResetPassword, PasswordReset](ctx, c.Peer, "directory.ResetPassword", in)
}
