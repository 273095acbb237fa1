package applicationapi

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/rpc"
)

// Contract has all methods of the application service that other services call.
type Contract interface {
	API
	Hosted
}

// Client returns a client of the application service in another process (RPC over HTTP).
func Client(peer rpc.Peer) Contract { return client{peer} }

type client struct{ rpc.Peer }

func (c client) SignUp(ctx context.Context, in SignUp) (SignedUp, error) {
	return rpc.Call[SignUp, SignedUp](ctx, c.Peer, "application.SignUp", in)
}

func (c client) Application(ctx context.Context, in directoryapi.Ref) (Application, error) {
	return rpc.Call[directoryapi.Ref, Application](ctx, c.Peer, "application.Application", in)
}

func (c client) ApplicationOfWebConfig(ctx context.Context, in directoryapi.Ref) (Application, error) {
	return rpc.Call[directoryapi.Ref, Application](ctx, c.Peer, "application.ApplicationOfWebConfig", in)
}

func (c client) SetDNSLabel(ctx context.Context, in SetDNSLabel) (Application, error) {
	return rpc.Call[SetDNSLabel, Application](ctx, c.Peer, "application.SetDNSLabel", in)
}

func (c client) ApplicationData(ctx context.Context, in CustomDataRequest) (CustomDataValues, error) {
	return rpc.Call[CustomDataRequest, CustomDataValues](ctx, c.Peer, "application.ApplicationData", in)
}

func (c client) Login(ctx context.Context, in Login) (LoggedIn, error) {
	return rpc.Call[Login, LoggedIn](ctx, c.Peer, "application.Login", in)
}

// The paths application.Admit and application.Standing are former names of CompleteLogin and
// CheckAccess. They stay, because replicas of the release before call them.

func (c client) CompleteLogin(ctx context.Context, in CompleteLogin) (LoggedIn, error) {
	return rpc.Call[CompleteLogin, LoggedIn](ctx, c.Peer, "application.Admit", in)
}

func (c client) CheckAccess(ctx context.Context, in CheckAccess) (Access, error) {
	return rpc.Call[CheckAccess, Access](ctx, c.Peer, "application.Standing", in)
}

func (c client) AccessChanges(ctx context.Context, in changefeed.Position) (changefeed.Page, error) {
	return rpc.Call[changefeed.Position, changefeed.Page](ctx, c.Peer, "application.AccessChanges", in)
}

func (c client) Administrator(ctx context.Context, in directoryapi.Ref) (directoryapi.Account, error) {
	return rpc.Call[directoryapi.Ref, directoryapi.Account](ctx, c.Peer, "application.Administrator", in)
}

func (c client) HasAccount(ctx context.Context, in HasAccountRequest) (HasAccountAnswer, error) {
	return rpc.Call[HasAccountRequest, HasAccountAnswer](ctx, c.Peer, "application.Reaches", in)
}

func (c client) ProviderLogin(ctx context.Context, in ProviderLogin) (ProviderLoggedIn, error) {
	return rpc.Call[ProviderLogin, ProviderLoggedIn](ctx, c.Peer, "application.ProviderLogin", in)
}

func (c client) ApplicationByDNSLabel(ctx context.Context, in DNSLabel) (Application, error) {
	return rpc.Call[DNSLabel, Application](ctx, c.Peer, "application.ApplicationByDNSLabel", in)
}

func (c client) LoginDirectories(ctx context.Context, in LoginTarget) (LoginDirectories, error) {
	return rpc.Call[LoginTarget, LoginDirectories](ctx, c.Peer, "application.LoginStores", in)
}

func (c client) Register(ctx context.Context, in Register) (directoryapi.Account, error) {
	return rpc.Call[Register, directoryapi.Account](ctx, c.Peer, "application.Register", in)
}

func (c client) RequestVerification(ctx context.Context, in LoginName) (directoryapi.Empty, error) {
	return rpc.Call[LoginName, directoryapi.Empty](ctx, c.Peer, "application.RequestVerification", in)
}

func (c client) RequestReset(ctx context.Context, in LoginName) (directoryapi.Empty, error) {
	return rpc.Call[LoginName, directoryapi.Empty](ctx, c.Peer, "application.RequestReset", in)
}

func (c client) LoginAccount(ctx context.Context, in LoginName) (directoryapi.Account, error) {
	return rpc.Call[LoginName, directoryapi.Account](ctx, c.Peer, "application.LoginAccount", in)
}

func (c client) CheckReset(ctx context.Context, in ResetToken) (directoryapi.PasswordReset, error) {
	return rpc.Call[ResetToken, directoryapi.PasswordReset](ctx, c.Peer, "application.CheckReset", in)
}

func (c client) ResetPassword(ctx context.Context, in ResetPassword) (directoryapi.PasswordReset, error) {
	return rpc.Call[ResetPassword, directoryapi.PasswordReset](ctx, c.Peer, "application.ResetPassword", in)
}

func (c client) AccountApplications(ctx context.Context, in directoryapi.Ref) (Applications, error) {
	return rpc.Call[directoryapi.Ref, Applications](ctx, c.Peer, "application.AccountApplications", in)
}

func (c client) Homes(ctx context.Context, in Homes) (Applications, error) {
	return rpc.Call[Homes, Applications](ctx, c.Peer, "application.Homes", in)
}

func (c client) SAMLRelayState(ctx context.Context, in SAMLRelayState) (SAMLDestination, error) {
	return rpc.Call[SAMLRelayState, SAMLDestination](ctx, c.Peer, "application.SAMLRelayState", in)
}

func (c client) SAMLApplication(ctx context.Context, in SAMLApplication) (Application, error) {
	return rpc.Call[SAMLApplication, Application](ctx, c.Peer, "application.SAMLApplication", in)
}

func (c client) VerifySAMLRequest(ctx context.Context, in VerifySAMLRequest) (SAMLRequest, error) {
	return rpc.Call[VerifySAMLRequest, SAMLRequest](ctx, c.Peer, "application.VerifySAMLRequest", in)
}

func (c client) SAMLResponse(ctx context.Context, in SAMLAnswer) (SAMLResponse, error) {
	return rpc.Call[SAMLAnswer, SAMLResponse](ctx, c.Peer, "application.SAMLResponse", in)
}

// Serve answers the calls of a Client.
func Serve(router rpc.Router, api Contract) {
	rpc.Serve(router, "application.SignUp", api.SignUp)
	rpc.Serve(router, "application.Application", api.Application)
	rpc.Serve(router, "application.ApplicationOfWebConfig", api.ApplicationOfWebConfig)
	rpc.Serve(router, "application.SetDNSLabel", api.SetDNSLabel)
	rpc.Serve(router, "application.ApplicationData", api.ApplicationData)
	rpc.Serve(router, "application.Login", api.Login)
	rpc.Serve(router, "application.Admit", api.CompleteLogin)
	rpc.Serve(router, "application.Standing", api.CheckAccess)
	rpc.Serve(router, "application.AccessChanges", api.AccessChanges)
	rpc.Serve(router, "application.Administrator", api.Administrator)
	rpc.Serve(router, "application.Reaches", api.HasAccount)
	rpc.Serve(router, "application.ProviderLogin", api.ProviderLogin)
	rpc.Serve(router, "application.ApplicationByDNSLabel", api.ApplicationByDNSLabel)
	rpc.Serve(router, "application.LoginStores", api.LoginDirectories)
	rpc.Serve(router, "application.Register", api.Register)
	rpc.Serve(router, "application.RequestVerification", api.RequestVerification)
	rpc.Serve(router, "application.RequestReset", api.RequestReset)
	rpc.Serve(router, "application.LoginAccount", api.LoginAccount)
	rpc.Serve(router, "application.CheckReset", api.CheckReset)
	rpc.Serve(router, "application.ResetPassword", api.ResetPassword)
	rpc.Serve(router, "application.AccountApplications", api.AccountApplications)
	rpc.Serve(router, "application.Homes", api.Homes)
	rpc.Serve(router, "application.SAMLRelayState", api.SAMLRelayState)
	rpc.Serve(router, "application.SAMLApplication", api.SAMLApplication)
	rpc.Serve(router, "application.VerifySAMLRequest", api.VerifySAMLRequest)
	rpc.Serve(router, "application.SAMLResponse", api.SAMLResponse)
}
