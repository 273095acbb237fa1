package mfaapi

import (
	"github.com/doorward/doorward/pkg/rpc"
)

// Serve answers the remote calls of the contract.
func Serve(router rpc.Router, api API) {
	rpc.Serve(router, "mfa.Demand", api.BeginSecondStep)
	rpc.Serve(router, "mfa.Redeem", api.Redeem)
}
