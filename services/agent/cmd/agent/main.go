// Command agent connects an LDAP server or Active Directory to Doorward. With the argument check
// it tests its configuration and prints what it would send.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/services/agent"
	"github.com/doorward/doorward/services/agent/app"
)

// memoryLimit is the soft memory limit of the agent: it runs beside a directory
// server that needs the machine. With the program itself it stays below 100 MB.
const memoryLimit = 80 << 20

func main() {
	debug.SetMemoryLimit(memoryLimit)
	if len(os.Args) == 2 && os.Args[1] == "check" {
		os.Exit(check())
	}
	run.Main("agent",
		"connects an LDAP server or Active Directory to Doorward; the argument check tries its configuration",
		env.Load[agent.Config], app.Run)
}

// check is the command agent check.
func check() int {
	source := env.New(os.Environ())
	cfg := env.Load[agent.Config](source)
	var process run.Config
	source.Load(&process)
	if err := source.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := agent.DryRun(ctx, cfg, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		return 1
	}
	return 0
}
