// Package run manages the life cycle of a process: configuration, ordered start, graceful shutdown
// (drain, then close in reverse order). A process also serves /healthz, /readyz and /metrics on a
// private port: health.go.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/telemetry"
)

// Config is what every process reads.
type Config struct {
	OpsListen string        `env:"DOORWARD_OPS_LISTEN" default:":9090"`
	Drain     time.Duration `env:"DOORWARD_DRAIN" default:"0s"`
	Stop      time.Duration `env:"DOORWARD_STOP_TIMEOUT" default:"20s" help:"timeout of a graceful shutdown"`
	Telemetry telemetry.Config
}

// Help has the help texts that are longer than a line.
func (Config) Help() map[string]string {
	return map[string]string{
		"DOORWARD_OPS_LISTEN": "private address of /healthz, /readyz, /metrics and /debug/pprof/",
		"DOORWARD_DRAIN":      "time between turning unready and shutdown, for a load balancer to notice",
	}
}

// Process is a running process with its parts: workers, readiness checks, and what to close.
type Process struct {
	Name      string
	Ops       string // address of the private port
	Telemetry *telemetry.Telemetry

	cfg      Config
	ready    atomic.Bool
	draining atomic.Bool
	mu       sync.Mutex
	checks   map[string]func(context.Context) error
	closes   []closeFunc
	failed   chan error
}

type closeFunc struct {
	name string
	fn   func(context.Context) error
}

// gcPercent is the GOGC of a process, unless its environment sets that. The live heap of a
// process is a few MiB, and a request allocates several KiB: at Go's default of 100 the garbage
// collector runs several times a second under load, which costs one part in fifteen of the
// processor time.
const gcPercent = 400

// Main is the main function of a process: it reads the configuration, answers --help, --version and --probe,
// opens the parts, and shuts down on SIGINT or SIGTERM or when a part fails. load declares the
// environment variables; open starts the parts.
func Main[C any](name, about string, load func(*env.Source) C, open func(context.Context, *Process, C) error) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	os.Exit(start(name, about, os.Args[1:], env.New(os.Environ()), os.Stdout, os.Stderr, load, open))
}

func start[C any](name, about string, args []string, source *env.Source, out, log io.Writer, load func(*env.Source) C,
	open func(context.Context, *Process, C) error) int {
	own := load(source)
	var cfg Config
	source.Load(&cfg)
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		_, _ = fmt.Fprintf(out, "%s: %s\n\nIt is configured by its environment:\n\n", name, about)
		source.Help(out)
		return 0
	}
	if slices.Contains(args, "--version") {
		telemetry.CurrentBuild().Print(out, name)
		return 0
	}
	if slices.Contains(args, "--probe") {
		if err := probe(cfg.OpsListen); err != nil {
			_, _ = fmt.Fprintf(log, "%s: %v\n", name, err)
			return 1
		}
		return 0
	}
	if len(args) > 0 {
		_, _ = fmt.Fprintf(log,
			"%s: the argument %q is unknown; --help lists the environment variables that configure it\n", name, args[0])
		return 2
	}
	if err := source.Err(); err != nil {
		_, _ = fmt.Fprintf(log, "%s cannot start: %v\n", name, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p, err := New(ctx, name, cfg, log)
	if err != nil {
		_, _ = fmt.Fprintf(log, "%s cannot start: %v\n", name, err)
		return 1
	}
	if err := open(ctx, p, own); err != nil {
		interrupted := ctx.Err() != nil
		if err := errors.Join(err, p.Close()); !interrupted {
			_, _ = fmt.Fprintf(log, "%s cannot start: %v\n", name, err)
			return 1
		}
		return 0
	}
	if err := p.Wait(ctx); err != nil {
		slog.Error("stopped", "error", err.Error())
		reason, _, _ := strings.Cut(err.Error(), "\n") // the first failure, without the errors of closing
		_, _ = fmt.Fprintf(log, "%s stopped: %s\n", name, reason)
		return 1
	}
	return 0
}

// New starts the telemetry and the private port of a process.
func New(ctx context.Context, name string, cfg Config, log io.Writer) (*Process, error) {
	t, err := telemetry.Start(ctx, name, cfg.Telemetry, log)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: name, Telemetry: t, cfg: cfg, checks: map[string]func(context.Context) error{},
		failed: make(chan error, 1)}
	p.OnClose("telemetry", t.Close)
	listener, err := net.Listen("tcp", cfg.OpsListen)
	if err != nil {
		return nil, fmt.Errorf("listen on DOORWARD_OPS_LISTEN: %w", err)
	}
	p.Ops = listener.Addr().String()
	server := &http.Server{Handler: p.opsHandler(), ReadHeaderTimeout: 5 * time.Second}
	p.Go("ops", func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	p.OnClose("ops", server.Shutdown)
	p.Go("return memory", returnMemory)
	slog.Info("listening on the private port", "address", p.Ops, "version", telemetry.Version())
	return p, nil
}

// OnClose registers the function that closes a part. Parts are closed in reverse order.
func (p *Process) OnClose(name string, fn func(context.Context) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closes = append(p.closes, closeFunc{name, fn})
}

// Go runs a worker. When its turn to close comes, its context is cancelled, and the process waits
// for it to end. A worker that fails stops the process, because a process that lacks one of its
// parts is not ready.
func (p *Process) Go(name string, work func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := work(ctx); err != nil && ctx.Err() == nil {
			select {
			case p.failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	}()
	p.OnClose(name, func(closing context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-closing.Done():
			return errors.New("did not end in time")
		}
	})
}

// Wait makes the process ready, and waits until ctx ends or a part fails. Then it makes the process
// unready, drains and closes it (graceful shutdown).
func (p *Process) Wait(ctx context.Context) error {
	p.ready.Store(true)
	slog.Info("ready")
	var failure error
	select {
	case <-ctx.Done():
	case failure = <-p.failed:
	}
	p.ready.Store(false)
	p.draining.Store(true)
	slog.Info("stopping")
	if failure == nil && p.cfg.Drain > 0 {
		time.Sleep(p.cfg.Drain)
	}
	return errors.Join(failure, p.Close())
}

// Draining reports whether the process is about to close: it still answers, but clients shall send no
// further requests.
func (p *Process) Draining() bool { return p.draining.Load() }

// Close closes the parts in reverse order of their start.
func (p *Process) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), p.cfg.Stop)
	defer cancel()
	p.mu.Lock()
	closes := p.closes
	p.closes = nil
	p.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(closes) {
		started := time.Now()
		if err := c.fn(ctx); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", c.name, err))
		}
		slog.Debug("closed", "part", c.name, "seconds", time.Since(started).Seconds())
	}
	return errors.Join(errs...)
}
