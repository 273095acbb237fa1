package oauthapi

import (
	"context"

	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the OAuth service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// Authenticate calls the remote service.
func (c Client) Authenticate(ctx context.Context, in Authenticate) (Key, error) {
	return rpc.Call[Authenticate, Key](ctx, c.Peer, "oauth.Authenticate", in)
}

// VerifySignature calls the remote service.
func (c Client) VerifySignature(ctx context.Context, in VerifySignature) (Key, error) {
	return rpc.Call[VerifySignature, Key](ctx, c.Peer, "oauth.VerifySignature", in)
}

// ManagementKey calls the remote service.
func (c Client) ManagementKey(ctx context.Context, in ManagementKey) (Key, error) {
	return rpc.Call[ManagementKey, Key](ctx, c.Peer, "oauth.ManagementKey", in)
}

// EnsureKey calls the remote service.
func (c Client) EnsureKey(ctx context.Context, in EnsureKey) (Key, error) {
	return rpc.Call[EnsureKey, Key](ctx, c.Peer, "oauth.EnsureKey", in)
}
