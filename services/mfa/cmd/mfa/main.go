// Command mfa runs the mfa service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/mfa/app"
)

func main() {
	run.Main("mfa", "keeps second factors: phones, authenticators, and the challenges that prove them", env.Load[app.Config], app.Run)
}
