package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/doorward/doorward/deploy/e2e"
)

// Timeouts of the start and the stop of a daemon. They are generous, for busy machines.
const (
	readyLimit = 5 * time.Minute
	stopLimit  = 2 * time.Minute
)

// Daemon is one long-running child process (server) that can be killed and started
// again with the same command and the same data. A nil Daemon does not run.
type Daemon struct {
	// Name is for messages and for the log file.
	Name string

	path string
	args []string
	env  []string
	ops  string // address of the private port, of a process of the product
	dir  string // working directory; empty for the log's folder
	log  string // path of the log file, appended to over restarts

	stopStatus int // with which it may end on SIGTERM, besides 0

	// ready returns nil once the daemon serves.
	ready func(ctx context.Context) error

	mu      sync.Mutex
	running *child
}

// child is one run of a daemon's process.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has been reaped
	err  error         // of its end; read only after done
}

// NewDaemon returns a daemon that is not started. Its process gets the environment of all
// children, appends its output to the file log, and ends with this process at the latest.
// ready is the readiness probe: it returns nil once the daemon serves.
func NewDaemon(name, log string, ready func(ctx context.Context) error, path string, args ...string) *Daemon {
	return &Daemon{Name: name, path: path, args: args, env: environment(), log: log, ready: ready}
}

// Setenv adds variables to the environment of the next start.
func (d *Daemon) Setenv(variables ...string) { d.env = append(d.env, variables...) }

// SetOps chooses the private port (health, metrics) of a process of the product.
func (d *Daemon) SetOps() {
	d.ops = FreeAddress()
	d.Setenv("DOORWARD_OPS_LISTEN=" + d.ops)
}

// Start starts the process and returns when it is ready. When the process ends
// before that, or the wait times out, the error has the end of its log.
func (d *Daemon) Start(ctx context.Context) error {
	running, err := d.launch()
	if err != nil {
		return err
	}
	err = e2e.AwaitFor(ctx, readyLimit, d.Name+" to be ready", func(ctx context.Context) error {
		select {
		case <-running.done:
			return e2e.Final(fmt.Errorf("the process ended: %s", running.cmd.ProcessState))
		default:
		}
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return d.ready(ctx)
	})
	if err != nil {
		return errors.Join(fmt.Errorf("%w\n%s", err, d.Tail()), d.Kill())
	}
	return nil
}

// Launch starts the process and does not wait until it is ready.
func (d *Daemon) Launch() error {
	_, err := d.launch()
	return err
}

func (d *Daemon) launch() (*child, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running != nil {
		return nil, fmt.Errorf("%s is running already", d.Name)
	}
	log, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", d.Name, err)
	}
	defer log.Close() // the child has its own copy
	cmd := exec.Command(d.path, d.args...)
	cmd.Env, cmd.Dir = d.env, d.dir
	if cmd.Dir == "" {
		cmd.Dir = filepath.Dir(d.log)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := launch(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", d.Name, err)
	}
	running := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		running.err = cmd.Wait()
		close(running.done)
	}()
	d.running = running
	return running, nil
}

// PID is the id of the running process, or 0.
func (d *Daemon) PID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		return 0
	}
	return d.running.cmd.Process.Pid
}

// Ready returns nil once the daemon serves.
func (d *Daemon) Ready(ctx context.Context) error { return d.ready(ctx) }

// Metric is the sum of a metric of a process of the product over the series that have
// all of some labels, such as cache="oauth.keys".
func (d *Daemon) Metric(ctx context.Context, name string, labels ...string) (sum float64, err error) {
	page, err := read(ctx, http.DefaultClient, "http://"+d.ops+"/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(page)) {
		series, text, _ := strings.Cut(strings.TrimSpace(line), "} ")
		if !strings.HasPrefix(series, name+"{") || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return 0, fmt.Errorf("read the metrics of %s: %w", d.Name, err)
		}
		sum += value
	}
	return sum, nil
}

// AnswersOK returns nil where a GET of an address answers 200.
func AnswersOK(ctx context.Context, client *http.Client, address string) error {
	_, err := read(ctx, client, address)
	return err
}

// read returns the body of a GET that answers 200.
func read(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d %.4000s", address, response.StatusCode, bytes.TrimSpace(body))
	}
	return body, err
}

// Ended reports whether the process has ended by itself since its last start (crash).
func (d *Daemon) Ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		return false
	}
	select {
	case <-d.running.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal to the process.
func (d *Daemon) Signal(signal os.Signal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		return fmt.Errorf("%s does not run", d.Name)
	}
	return d.running.cmd.Process.Signal(signal)
}

// Wrap lets the next starts run a command with the program and its arguments appended, such as
// that of a ControlGroup. It returns the function that undoes that.
func (d *Daemon) Wrap(command ...string) (undo func()) {
	path, args := d.path, d.args
	d.path, d.args = command[0], slices.Concat(command[1:], []string{path}, args)
	return func() { d.path, d.args = path, args }
}

// Kill ends the process without a clean-up, as kill -9 does, and returns when the process
// has ended. Kill sends no signal to its children.
func (d *Daemon) Kill() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		return nil
	}
	running := d.running
	d.running = nil
	if err := running.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", d.Name, err)
	}
	<-running.done // SIGKILL cannot be refused
	return nil
}

// Stop sends SIGTERM, waits for the end of the process, and returns an error unless the
// exit status is 0 or stopStatus. A process that does not end in time is killed, and that
// is an error too.
func (d *Daemon) Stop(ctx context.Context) error {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	running := d.running
	d.running = nil
	d.mu.Unlock()
	if running == nil {
		return nil
	}
	if err := running.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", d.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	select {
	case <-running.done:
		if running.err != nil && running.cmd.ProcessState.ExitCode() != d.stopStatus {
			return fmt.Errorf("%s did not stop well: %w\n%s", d.Name, running.err, d.Tail())
		}
		return nil
	case <-ctx.Done():
		_ = running.cmd.Process.Kill() // it may have ended just now
		<-running.done
		return fmt.Errorf("timeout after %s: %s did not stop after SIGTERM and was killed\n%s", stopLimit, d.Name, d.Tail())
	}
}

// Tail is the end of the log.
func (d *Daemon) Tail() string {
	if d == nil {
		return ""
	}
	const most = 6000
	raw, err := tail(d.log, most)
	if err != nil {
		return fmt.Sprintf("(no log of %s: %v)", d.Name, err)
	}
	if len(raw) == most {
		if newline := bytes.IndexByte(raw, '\n'); newline >= 0 {
			raw = raw[newline+1:]
		}
	}
	return fmt.Sprintf("--- end of %s\n%s--- %s", d.log, raw, d.Name)
}

func tail(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	from := max(0, info.Size()-most)
	return io.ReadAll(io.NewSectionReader(file, from, most))
}

// environment is the environment of a child process: a few variables of this process and
// more. It has no DOORWARD_ variable of this process, because the product refuses those
// that it does not know.
func environment(more ...string) []string {
	var env []string
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR", "USER", "GOMAXPROCS", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}
