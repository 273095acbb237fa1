package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/rpc"
)

// Client is the mfa service in another process.
type Client struct{ rpc.Peer }

var _ API = Client{}

// BeginSecondStep calls the remote service.
func (c Client) BeginSecondStep(ctx context.Context, in BeginSecondStep) (SecondStep, error) {
	return rpc.Call[BeginSecondStep, SecondStep](ctx, c.Peer, "mfa.Demand", in)
}

// Redeem calls the remote service.
func (c Client) Redeem(ctx context.Context, in Redeem) (Redeemed, error) {
	return rpc.Call[Redeem, Redeemed](ctx, c.Peer, "mfa.Redeem", in)
}
