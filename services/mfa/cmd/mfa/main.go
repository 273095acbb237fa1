// Command mfa runs the mfa service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/mfa/app"
)

func main() {
	run.Main("mfa", "will own second factors; it has no endpoints yet", app.FromEnv, app.Run)
}
