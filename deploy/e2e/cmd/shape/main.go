// Command shape starts Doorward in one of its deployment modes, standalone or
// distributed, from the sources around it and keeps it running until Ctrl-C. It gives
// developers a distributed deployment, with a real Redis and a real Kafka, without
// containers.
//
//	go run ./deploy/e2e/cmd/shape distributed
//	go run ./deploy/e2e/cmd/shape standalone --dir /tmp/doorward
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shape:", err)
		os.Exit(1)
	}
}

const usage = "usage: shape standalone|distributed [--dir folder]"

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) == 0 || args[0] != "standalone" && args[0] != "distributed" {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("shape", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for data and logs, kept and taken up again by the next start (default: a temporary one)")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return errors.New(usage)
	}
	if *dir == "" {
		folder, remove, failure := harness.TempFolder()
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, remove()) }()
		*dir = folder
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return fmt.Errorf("find the folder: %w", err)
	}
	fmt.Fprintln(out, "building and starting")
	deployment, err := harness.Start(ctx, args[0], harness.Config{Dir: *dir})
	if err != nil {
		return err
	}
	for _, step := range deployment.StartSteps() {
		fmt.Fprintf(out, "started %s in %s\n", step.Name, step.Took)
	}
	if err := printAddresses(deployment, *dir, out); err != nil {
		return errors.Join(err, deployment.Stop(context.WithoutCancel(ctx)))
	}
	<-ctx.Done()
	fmt.Fprintln(out, "\nstopping")
	return deployment.Stop(context.WithoutCancel(ctx))
}

// printAddresses prints the key file, the addresses and a first request.
func printAddresses(deployment harness.Deployment, dir string, out io.Writer) error {
	key, err := e2e.ReadKey(deployment.KeyFile())
	if err != nil {
		return err
	}
	fmt.Fprintf(out, `
API key   %s
logs      %s/*.log
mailbox   %s/_mailbox

  curl --cacert %s -u '%s:%s' -L %s/tenants/current

Run the scenarios against it:

  DOORWARD_E2E_APIKEY=%s go test ./deploy/e2e

Ctrl-C stops it.
`, deployment.KeyFile(), dir, key.HostURL(), key.CAFile, key.ID, key.Secret, key.BaseURL, deployment.KeyFile())
	return nil
}
