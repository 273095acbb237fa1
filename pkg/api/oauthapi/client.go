package oauthapi

import (
	"context"

	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the OAuth service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// Authenticate asks the far service.
func (c Client) Authenticate(ctx context.Context, in Authenticate) (Key, error) {
	return rpc.Call[Authenticate, Key](ctx, c.Peer, "oauth.Authenticate", in)
}

// EnsureKey asks the far service.
func (c Client) EnsureKey(ctx context.Context, in EnsureKey) (Key, error) {
	return rpc.Call[EnsureKey, Key](ctx, c.Peer, "oauth.EnsureKey", in)
}
