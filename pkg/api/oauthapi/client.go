package oauthapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
)

// Contract has all methods of the OAuth service that other services call.
type Contract interface {
	API
	Hosted
}

// Client returns a client of the OAuth service in another process (RPC over HTTP).
func Client(peer rpc.Peer) Contract { return client{peer} }

type client struct{ rpc.Peer }

func (c client) Authenticate(ctx context.Context, in Authenticate) (Key, error) {
	return rpc.Call[Authenticate, Key](ctx, c.Peer, "oauth.Authenticate", in)
}

func (c client) VerifySignature(ctx context.Context, in VerifySignature) (Key, error) {
	return rpc.Call[VerifySignature, Key](ctx, c.Peer, "oauth.VerifySignature", in)
}

func (c client) ManagementKey(ctx context.Context, in ManagementKey) (Key, error) {
	return rpc.Call[ManagementKey, Key](ctx, c.Peer, "oauth.ManagementKey", in)
}

func (c client) EnsureKey(ctx context.Context, in EnsureKey) (Key, error) {
	return rpc.Call[EnsureKey, Key](ctx, c.Peer, "oauth.EnsureKey", in)
}

func (c client) VerifyJWT(ctx context.Context, in VerifyJWT) (VerifiedJWT, error) {
	return rpc.Call[VerifyJWT, VerifiedJWT](ctx, c.Peer, "oauth.VerifyJWT", in)
}

func (c client) SignAssertion(ctx context.Context, in SignAssertion) (SignedAssertion, error) {
	return rpc.Call[SignAssertion, SignedAssertion](ctx, c.Peer, "oauth.SignAssertion", in)
}

func (c client) ClientConfig(ctx context.Context, in id.Ref) (ClientConfig, error) {
	return rpc.Call[id.Ref, ClientConfig](ctx, c.Peer, "oauth.ClientConfig", in)
}

func (c client) ClientToken(ctx context.Context, in ClientForm) (ClientTokens, error) {
	return rpc.Call[ClientForm, ClientTokens](ctx, c.Peer, "oauth.ClientToken", in)
}

func (c client) ClientRevoke(ctx context.Context, in ClientForm) (Revoked, error) {
	return rpc.Call[ClientForm, Revoked](ctx, c.Peer, "oauth.ClientRevoke", in)
}

func (c client) ValidateToken(ctx context.Context, in ValidateToken) (ValidToken, error) {
	return rpc.Call[ValidateToken, ValidToken](ctx, c.Peer, "oauth.ValidateToken", in)
}

func (c client) KeysOf(ctx context.Context, in id.Ref) (Keys, error) {
	return rpc.Call[id.Ref, Keys](ctx, c.Peer, "oauth.KeysOf", in)
}

// Serve answers the calls of a Client.
func Serve(router rpc.Router, api Contract) {
	rpc.Serve(router, "oauth.Authenticate", api.Authenticate)
	rpc.Serve(router, "oauth.VerifySignature", api.VerifySignature)
	rpc.Serve(router, "oauth.ManagementKey", api.ManagementKey)
	rpc.Serve(router, "oauth.EnsureKey", api.EnsureKey)
	rpc.Serve(router, "oauth.VerifyJWT", api.VerifyJWT)
	rpc.Serve(router, "oauth.SignAssertion", api.SignAssertion)
	rpc.Serve(router, "oauth.ClientConfig", api.ClientConfig)
	rpc.Serve(router, "oauth.ClientToken", api.ClientToken)
	rpc.Serve(router, "oauth.ClientRevoke", api.ClientRevoke)
	rpc.Serve(router, "oauth.ValidateToken", api.ValidateToken)
	rpc.Serve(router, "oauth.KeysOf", api.KeysOf)
}
