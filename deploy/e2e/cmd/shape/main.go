// Shape starts Doorward in one of its shapes from the sources around it and
// keeps it running until Ctrl-C: a developer's way to have the distributed
// shape, with a real Redis and a real Kafka, without containers.
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
	"strings"
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
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
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
		folder, remove, failure := harness.Folder()
		if failure != nil {
			return failure
		}
		defer func() { err = errors.Join(err, remove()) }()
		*dir = folder
	}
	shape, err := start(ctx, args[0], *dir, out)
	if err != nil {
		return err
	}
	if err := introduce(shape, *dir, out); err != nil {
		return errors.Join(err, shape.Stop(context.WithoutCancel(ctx)))
	}
	<-ctx.Done()
	fmt.Fprintln(out, "\nstopping")
	return shape.Stop(context.WithoutCancel(ctx))
}

func start(ctx context.Context, name, dir string, out io.Writer) (harness.Shape, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find the folder: %w", err)
	}
	config := harness.Config{Dir: dir}
	fmt.Fprintln(out, "building")
	switch name {
	case "standalone":
		if config.Bin, err = harness.Build(ctx, dir, harness.StandalonePackages...); err != nil {
			return nil, err
		}
		shape, err := harness.StartStandalone(ctx, config)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "started in %s\n", shape.Boot)
		return shape, nil
	case "distributed":
		if config.Bin, err = harness.Build(ctx, dir, harness.DistributedPackages...); err != nil {
			return nil, err
		}
		shape, err := harness.StartDistributed(ctx, config)
		if err != nil {
			return nil, err
		}
		for _, lap := range shape.Boot {
			fmt.Fprintf(out, "started %s in %s\n", lap.Part, lap.Took)
		}
		return shape, nil
	default:
		return nil, errors.New(usage)
	}
}

// introduce prints what a developer needs to begin.
func introduce(shape harness.Shape, dir string, out io.Writer) error {
	key, err := e2e.ReadKey(shape.KeyFile())
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
`, shape.KeyFile(), dir, key.HostURL(), key.CAFile, key.ID, key.Secret, key.BaseURL, shape.KeyFile())
	return nil
}
