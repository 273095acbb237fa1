// Command gateway runs the gateway as a process of its own.
package main

import (
	"github.com/doorward/doorward/gateway/app"
	"github.com/doorward/doorward/pkg/run"
)

func main() {
	run.Main("gateway",
		"is the address that clients see: it admits requests and forwards each to the service that owns its path",
		app.FromEnv, app.Run)
}
