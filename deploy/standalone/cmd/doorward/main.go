// Command doorward runs the whole product as one process.
package main

import (
	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/run"
)

func main() {
	run.Main("doorward", "the whole identity service in one process, with a database, a broker and a mailbox of its own", app.FromEnv, app.Run)
}
