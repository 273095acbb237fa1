package harness

import (
	"context"
	"fmt"
)

// NewDaemon is a server of the test's own, with the environment that all
// children get. It is started by its Start, and ends with this process at the
// latest. The log is appended to the file; ready returns nil once it serves.
func NewDaemon(name, log string, ready func(ctx context.Context) error, path string, args ...string) *Daemon {
	return &Daemon{Name: name, path: path, args: args, env: environment(), log: log, ready: ready}
}

// Setenv adds variables to the environment of the next start.
func (d *Daemon) Setenv(variables ...string) { d.env = append(d.env, variables...) }

// Run runs the program until it ends by itself.
func (d *Daemon) Run(ctx context.Context) error {
	running, err := d.launch()
	if err != nil {
		return err
	}
	select {
	case <-running.done:
	case <-ctx.Done():
		return d.Kill()
	}
	if running.err != nil {
		return fmt.Errorf("%s: %w\n%s", d.Name, running.err, d.Tail())
	}
	return nil
}
