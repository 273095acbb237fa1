// Command bench measures the product on this machine and prints how it compares
// with bare handlers that run beside it, so that the figures mean something on
// any machine. `go run ./deploy/bench -h` lists the flags; README.md tells how
// to read the report.
//
// Begin with run in bench.go, the whole measurement in order. The parts are:
// the deployment under test (standalone.go, site.go, operations.go), what it is
// compared with (baseline.go, insert.go and pair.go, which are this program in a process
// of its own, and yardstick.go, its owner), the load (line.go, closed.go, open.go,
// schedule.go, tally.go), the meters (machine.go), the order of the runs
// (rounds.go, storm.go), directories of different size (seed.go, scale.go), and the report
// (report.go, print.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the clean-up
	err := start(ctx, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func start(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == baselineCommand {
		return serveBaseline(ctx, args[1:], os.Stdin, os.Stdout)
	}
	if len(args) > 0 && args[0] == seedCommand {
		return seedDirectory(ctx, args[1:], os.Stdout)
	}
	options, err := readOptions(args, os.Stderr)
	if err != nil {
		return err
	}
	report, err := run(ctx, options)
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	if options.JSON != "" {
		if err := report.write(options.JSON); err != nil {
			return err
		}
	}
	if names := report.failed(); len(names) > 0 {
		return fmt.Errorf("not one operation succeeded: %s", strings.Join(names, ", "))
	}
	return nil
}
