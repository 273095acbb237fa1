package connectors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/deploy/e2e/harness"
)

// stopLimit bounds the graceful shutdown of a server.
const stopLimit = 20 * time.Second

// must fails the test on an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve starts a server for one test. Its log is printed when the test fails.
func serve(t testing.TB, server *harness.Daemon) {
	t.Helper()
	must(t, server.Start(t.Context()))
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(server.Tail())
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopLimit)
		defer cancel()
		// The exit status of the foreign servers does not matter; that they have ended does.
		if err := server.Stop(ctx); err != nil && server.PID() != 0 {
			t.Error(err)
		}
	})
}

// command runs a program to its end, with standard input, and returns what it printed.
func command(ctx context.Context, env []string, input, name string, args ...string) (string, error) {
	path, err := harness.Program(name, "connectors")
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdin = append(os.Environ(), env...), strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return string(out), nil
}

// clientTrusting is a client without an API key for servers with certificates of the authority.
func clientTrusting(a *harness.Authority) (*e2e.Client, error) {
	client, err := e2e.NewClient(e2e.Key{CAFile: a.CAFile})
	if err != nil {
		return nil, err
	}
	return client.Unchecked(), nil
}

// answersOK is the probe of such a server.
func answersOK(client *e2e.Client, address string) func(context.Context) error {
	return func(ctx context.Context) error { return harness.AnswersOK(ctx, client.HTTP, address) }
}
