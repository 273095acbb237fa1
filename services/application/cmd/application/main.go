// Command application runs the application service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/application/app"
)

func main() {
	run.Main("application", "keeps applications and their account stores, and logs accounts in through them", env.Load[app.Config], app.Run)
}
