// Command oauth runs the OAuth service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/oauth/app"
)

func main() {
	run.Main("oauth", "keeps API keys, and issues, checks and revokes tokens", env.Load[app.Config], app.Run)
}
