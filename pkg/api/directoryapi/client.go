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
func (c Client) Authenticate(ctx context.Context, in Authenticate) (Account, error) {
	return rpc.Call[Authenticate, Account](ctx, c.Peer, "directory.Authenticate", in)
}

// Standing asks the far service.
func (c Client) Standing(ctx context.Context, in Standing) (Account, error) {
	return rpc.Call[Standing, Account](ctx, c.Peer, "directory.Standing", in)
}

// Mail asks the far service.
func (c Client) Mail(ctx context.Context, in MailOf) (Mail, error) {
	return rpc.Call[MailOf, Mail](ctx, c.Peer, "directory.Mail", in)
}
