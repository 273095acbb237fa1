package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
	"github.com/doorward/doorward/pkg/pg/private"
)

// Standalone is a deployment in one process.
type Standalone struct {
	daemon  *Daemon
	dataDir string

	// Boot is how long the last start took, from the start of the process to
	// the first answer over TLS.
	Boot time.Duration
}

// StartStandalone runs the standalone binary on a free port, with its data in
// a folder below the configured one, and returns when it answers.
func StartStandalone(ctx context.Context, config Config) (*Standalone, error) {
	if err := config.prepare(ctx, StandalonePackages...); err != nil {
		return nil, err
	}
	port := FreePort()
	s := &Standalone{dataDir: config.path("data")}
	env := environment(
		"DOORWARD_DATA_DIR="+s.dataDir,
		"DOORWARD_LISTEN=localhost:"+strconv.Itoa(port),
		loopback,
	)
	if bin := os.Getenv("DOORWARD_POSTGRES_BIN"); bin != "" {
		env = append(env, "DOORWARD_POSTGRES_BIN="+bin)
	}
	settings, err := knownSettings(ctx, filepath.Join(config.Bin, "doorward"), config.Settings)
	if err != nil {
		return nil, err
	}
	s.daemon = NewDaemon("standalone", config.path("standalone.log"), func(ctx context.Context) error {
		return probeDeployment(ctx, s.KeyFile())
	}, filepath.Join(config.Bin, "doorward"))
	s.daemon.env = slices.Concat(env, settings, config.Env)
	if len(config.Wrap) > 0 {
		s.daemon.Wrap(config.Wrap...)
	}
	return s, s.Start(ctx)
}

// KeyFile is where the process writes its first API key.
func (s *Standalone) KeyFile() string { return filepath.Join(s.dataDir, "apikey.json") }

// StartSteps has one step, the whole start.
func (s *Standalone) StartSteps() []StartStep { return []StartStep{{"standalone", s.Boot}} }

// DataDir is the folder with everything the process keeps.
func (s *Standalone) DataDir() string { return s.dataDir }

// Database is the address of the private PostgreSQL, and the master key under which
// secrets in it are sealed.
func (s *Standalone) Database() (address, masterKey string, err error) {
	var secrets struct {
		Master string `json:"masterKey"`
	}
	if err := e2e.ReadJSON(filepath.Join(s.dataDir, "secrets.json"), &secrets); err != nil {
		return "", "", err
	}
	address, err = private.Running(filepath.Join(s.dataDir, "postgres"))
	return address, secrets.Master, err
}

// Start runs the process again after Kill or Stop, with the same data and
// address.
func (s *Standalone) Start(ctx context.Context) error {
	began := time.Now()
	earlier, _ := os.ReadFile(s.daemon.log) // of earlier starts; none before the first
	if err := s.daemon.Start(ctx); err != nil {
		return err
	}
	s.Boot = time.Since(began)
	// A stop before this line is an interrupted start, which ends with another status.
	return e2e.AwaitFor(ctx, readyLimit, "standalone to write that it is ready", func(context.Context) error {
		written, err := os.ReadFile(s.daemon.log)
		if err == nil && !bytes.Contains(written[len(earlier):], []byte("Doorward is ready.")) {
			err = errors.New("its log does not have that line")
		}
		return err
	})
}

// Restart is Stop and Start.
func (s *Standalone) Restart(ctx context.Context) error {
	if err := s.Stop(ctx); err != nil {
		return err
	}
	return s.Start(ctx)
}

// Kill ends the process as kill -9 does. It sends no signal to the children of the process.
func (s *Standalone) Kill() error { return s.daemon.Kill() }

// Stop sends SIGTERM and returns nil when the process ended with status 0 and
// left no process behind that works on its data.
func (s *Standalone) Stop(ctx context.Context) error {
	if err := s.daemon.Stop(ctx); err != nil {
		return err
	}
	left, err := processesNaming(s.dataDir)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("standalone ended and left processes behind: %v", left)
	}
	return nil
}

// Logs writes the end of the process's log.
func (s *Standalone) Logs(w io.Writer) { fmt.Fprintln(w, s.daemon.Tail()) }
