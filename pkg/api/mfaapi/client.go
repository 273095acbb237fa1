package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the mfa service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// Demand calls the remote service.
func (c Client) Demand(ctx context.Context, in Demand) (Demanded, error) {
	return rpc.Call[Demand, Demanded](ctx, c.Peer, "mfa.Demand", in)
}

// Redeem calls the remote service.
func (c Client) Redeem(ctx context.Context, in Redeem) (Redeemed, error) {
	return rpc.Call[Redeem, Redeemed](ctx, c.Peer, "mfa.Redeem", in)
}
