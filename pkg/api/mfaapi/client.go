package mfaapi

import (
	"context"

	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rpc"
)

// Contract is all that other services ask of the mfa service.
type Contract interface {
	API
	Hosted
}

// Client returns the mfa service of another process. Its methods do what Contract says.
func Client(peer rpc.Peer) Contract { return client{peer} }

type client struct{ rpc.Peer }

func (c client) BeginSecondStep(ctx context.Context, in BeginSecondStep) (SecondStep, error) {
	// Demand is a former name of the method: during a rolling upgrade processes of both versions call it.
	return rpc.Call[BeginSecondStep, SecondStep](ctx, c.Peer, "mfa.Demand", in)
}

func (c client) VerifySecondStep(ctx context.Context, in VerifySecondStep) (CompletedLogin, error) {
	return rpc.Call[VerifySecondStep, CompletedLogin](ctx, c.Peer, "mfa.Redeem", in)
}

func (c client) FactorsOf(ctx context.Context, in id.Ref) (AccountFactors, error) {
	return rpc.Call[id.Ref, AccountFactors](ctx, c.Peer, "mfa.FactorsOf", in)
}

func (c client) EnrollFactor(ctx context.Context, in EnrollFactor) (EnrolledFactor, error) {
	return rpc.Call[EnrollFactor, EnrolledFactor](ctx, c.Peer, "mfa.EnrollFactor", in)
}

func (c client) ChallengeFactor(ctx context.Context, in ChallengeFactor) (Challenged, error) {
	return rpc.Call[ChallengeFactor, Challenged](ctx, c.Peer, "mfa.ChallengeFactor", in)
}

func (c client) AnswerFactor(ctx context.Context, in AnswerFactor) (Challenged, error) {
	return rpc.Call[AnswerFactor, Challenged](ctx, c.Peer, "mfa.AnswerFactor", in)
}

// Serve answers the calls of a Client.
func Serve(router rpc.Router, api Contract) {
	rpc.Serve(router, "mfa.Demand", api.BeginSecondStep)
	rpc.Serve(router, "mfa.Redeem", api.VerifySecondStep)
	rpc.Serve(router, "mfa.FactorsOf", api.FactorsOf)
	rpc.Serve(router, "mfa.EnrollFactor", api.EnrollFactor)
	rpc.Serve(router, "mfa.ChallengeFactor", api.ChallengeFactor)
	rpc.Serve(router, "mfa.AnswerFactor", api.AnswerFactor)
}
