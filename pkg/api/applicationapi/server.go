package applicationapi

import (
	"github.com/doorward/doorward/pkg/rpc"
)

// Serve answers the contract's far ends.
func Serve(router rpc.Router, api API) {
	rpc.Serve(router, "application.SignUp", api.SignUp)
	rpc.Serve(router, "application.Application", api.Application)
	rpc.Serve(router, "application.ApplicationOfWebConfig", api.ApplicationOfWebConfig)
	rpc.Serve(router, "application.SetDNSLabel", api.SetDNSLabel)
	rpc.Serve(router, "application.ApplicationData", api.ApplicationData)
	rpc.Serve(router, "application.Login", api.Login)
	rpc.Serve(router, "application.Admit", api.CompleteLogin)
	rpc.Serve(router, "application.Standing", api.CheckAccess)
	rpc.Serve(router, "application.Administrator", api.Administrator)
	rpc.Serve(router, "application.Reaches", api.Reaches)
	rpc.Serve(router, "application.ProviderLogin", api.ProviderLogin)
}
