package applicationapi

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the application service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// SignUp asks the far service.
func (c Client) SignUp(ctx context.Context, in SignUp) (SignedUp, error) {
	return rpc.Call[SignUp, SignedUp](ctx, c.Peer, "application.SignUp", in)
}

// Application asks the far service.
func (c Client) Application(ctx context.Context, in directoryapi.Ref) (Application, error) {
	return rpc.Call[directoryapi.Ref, Application](ctx, c.Peer, "application.Application", in)
}

// ApplicationOfWebConfig asks the far service.
func (c Client) ApplicationOfWebConfig(ctx context.Context, in directoryapi.Ref) (Application, error) {
	return rpc.Call[directoryapi.Ref, Application](ctx, c.Peer, "application.ApplicationOfWebConfig", in)
}

// SetDNSLabel asks the far service.
func (c Client) SetDNSLabel(ctx context.Context, in SetDNSLabel) (Application, error) {
	return rpc.Call[SetDNSLabel, Application](ctx, c.Peer, "application.SetDNSLabel", in)
}

// ApplicationData asks the far service.
func (c Client) ApplicationData(ctx context.Context, in DataOf) (Data, error) {
	return rpc.Call[DataOf, Data](ctx, c.Peer, "application.ApplicationData", in)
}

// Login asks the far service.
func (c Client) Login(ctx context.Context, in Login) (LoggedIn, error) {
	return rpc.Call[Login, LoggedIn](ctx, c.Peer, "application.Login", in)
}

// CompleteLogin asks the far service.
func (c Client) CompleteLogin(ctx context.Context, in CompleteLogin) (LoggedIn, error) {
	return rpc.Call[CompleteLogin, LoggedIn](ctx, c.Peer, "application.Admit", in)
}

// CheckAccess asks the far service.
func (c Client) CheckAccess(ctx context.Context, in CheckAccess) (directoryapi.Account, error) {
	return rpc.Call[CheckAccess, directoryapi.Account](ctx, c.Peer, "application.Standing", in)
}

// Administrator asks the far service.
func (c Client) Administrator(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return rpc.Call[directoryapi.Ref, directoryapi.Account](ctx, c.Peer, "application.Administrator", in)
}

// Reaches asks the far service.
func (c Client) Reaches(ctx context.Context, in Reaches) (Reached, error) {
	return rpc.Call[Reaches, Reached](ctx, c.Peer, "application.Reaches", in)
}

// ProviderLogin asks the far service.
func (c Client) ProviderLogin(ctx context.Context, in ProviderLogin) (ProviderLoggedIn, error) {
	return rpc.Call[ProviderLogin, ProviderLoggedIn](ctx, c.Peer, "application.ProviderLogin", in)
}
