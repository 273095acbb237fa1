// Command directory runs the directory service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/directory/app"
)

func main() {
	run.Main("directory", "keeps tenants, directories and accounts, and decides who may log in", env.Load[app.Config], app.Run)
}
