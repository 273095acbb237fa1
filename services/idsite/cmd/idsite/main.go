// Command idsite runs the idsite service as a process of its own.
package main

import (
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/idsite/app"
)

func main() {
	run.Main("idsite", "makes tenants and keeps the settings of their hosted pages", env.Load[app.Config], app.Run)
}
