package oauthapi

import (
	"github.com/doorward/doorward/pkg/rpc"
)

// Serve answers the remote calls of the contract.
func Serve(router rpc.Router, api API) {
	rpc.Serve(router, "oauth.Authenticate", api.Authenticate)
	rpc.Serve(router, "oauth.VerifySignature", api.VerifySignature)
	rpc.Serve(router, "oauth.ManagementKey", api.ManagementKey)
	rpc.Serve(router, "oauth.EnsureKey", api.EnsureKey)
}
