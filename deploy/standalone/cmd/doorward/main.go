// Command doorward runs the whole product as one process. With "admin key" it
// creates an administrator's API key in the database instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/run"
)

func main() {
	if len(os.Args) > 2 && slices.Equal(os.Args[1:3], []string{"admin", "key"}) {
		flags := flag.NewFlagSet("doorward admin key", flag.ExitOnError)
		tenant := flags.String("tenant", "", "key of the tenant, such as clever-otter")
		_ = flags.Parse(os.Args[3:]) // exits on an error
		if err := app.AdminKey(context.Background(), env.New(os.Environ()), *tenant, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "doorward admin key:", err)
			os.Exit(1)
		}
		return
	}
	run.Main("doorward", app.About, app.FromEnv, app.Run)
}
