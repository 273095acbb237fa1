package directoryapi

import (
	"github.com/doorward/doorward/pkg/rpc"
)

// Serve answers the contract's far ends.
func Serve(router rpc.Router, api API) {
	rpc.Serve(router, "directory.SignUp", api.SignUp)
	rpc.Serve(router, "directory.Tenant", api.Tenant)
	rpc.Serve(router, "directory.CreateDirectory", api.CreateDirectory)
	rpc.Serve(router, "directory.Directory", api.Directory)
	rpc.Serve(router, "directory.DeleteDirectory", api.DeleteDirectory)
	rpc.Serve(router, "directory.CreateAccount", api.CreateAccount)
	rpc.Serve(router, "directory.Account", api.Account)
	rpc.Serve(router, "directory.ListAccounts", api.ListAccounts)
	rpc.Serve(router, "directory.Authenticate", api.Authenticate)
	rpc.Serve(router, "directory.LinkedAccount", api.LinkedAccount)
	rpc.Serve(router, "directory.ExplainLogin", api.ExplainLogin)
	rpc.Serve(router, "directory.CheckAccess", api.CheckAccess)
	rpc.Serve(router, "directory.Mail", api.Mail)
	rpc.Serve(router, "directory.AuthenticateAgent", api.AuthenticateAgent)
	rpc.Serve(router, "directory.Owner", api.Owner)
	rpc.Serve(router, "directory.Profile", api.Profile)
	rpc.Serve(router, "directory.CreateGroup", api.CreateGroup)
	rpc.Serve(router, "directory.Group", api.Group)
	rpc.Serve(router, "directory.ListGroups", api.ListGroups)
	rpc.Serve(router, "directory.StoresOf", api.StoresOf)
	rpc.Serve(router, "directory.RequestVerification", api.RequestVerification)
	rpc.Serve(router, "directory.VerifyEmail", api.VerifyEmail)
	rpc.Serve(router, "directory.Verification", api.Verification)
	rpc.Serve(router, "directory.RequestReset", api.RequestReset)
	rpc.Serve(router, "directory.Reset", api.Reset)
	rpc.Serve(router, "directory.ResetPassword", api.ResetPassword)
	serveProviders(router, api)
}
