package private

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// locales are tried in order as the locale of character classification (LC_CTYPE). The collation is
// always C, so that indexes stay valid after an update of the C library; but with LC_CTYPE C a trigram
// index would not recognise letters outside of ASCII.
var locales = []string{"C.UTF-8", "en_US.UTF-8", "C"}

// version returns the major version of PostgreSQL that created the cluster; 0 if there is none.
func (l location) version() int {
	text, err := os.ReadFile(filepath.Join(l.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return major
}

// initialize creates the cluster unless it exists. The folder gets the name data only when it is
// complete, so that an interrupted creation leaves no incomplete cluster under that name.
func (l location) initialize(ctx context.Context, bin string, durable bool) error {
	abandoned, _ := filepath.Glob(filepath.Join(l.dir, "data.new-*")) // the only error is a bad pattern
	for _, dir := range abandoned {
		// fails while an initdb that is being killed still writes there; the next start removes it
		_ = os.RemoveAll(dir)
	}
	if _, err := os.Stat(l.data()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	making, err := os.MkdirTemp(l.dir, "data.new-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(making) }()
	if err := l.account.chown(making); err != nil {
		return err
	}
	if err := l.initdb(ctx, bin, making, durable); err != nil {
		return err
	}
	if err := os.Rename(making, l.data()); err != nil {
		return err
	}
	if !durable {
		return nil
	}
	return syncFolder(l.dir)
}

// initdb runs initdb with the first of the locales that the machine has.
func (l location) initdb(ctx context.Context, bin, dir string, durable bool) error {
	var err error
	for _, locale := range locales {
		arguments := []string{
			"--pgdata=" + dir, "--username=" + Role, "--encoding=UTF8", "--locale=C", "--lc-ctype=" + locale,
			"--auth-local=trust", "--auth-host=reject", "--data-checksums",
		}
		if !durable {
			arguments = append(arguments, "--no-sync")
		}
		var said string
		said, err = l.account.run(ctx, filepath.Join(bin, "initdb"), dir, arguments)
		if err == nil {
			return nil
		}
		if strings.Contains(said, "could not look up effective user ID") {
			return fmt.Errorf("%w\nPostgreSQL needs a line for this user in /etc/passwd", err)
		}
		if !strings.Contains(said, "invalid locale name") {
			return err
		}
	}
	return err
}

func syncFolder(dir string) error {
	file, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// settings returns the settings of postgresql.conf for a small machine. They are passed at each start,
// so that they apply to a cluster of an earlier release too.
func settings(cfg Config, sockets string) []string {
	durable := map[bool]string{true: "on", false: "off"}[cfg.Durable]
	return []string{
		"listen_addresses=",
		"port=" + port,
		`unix_socket_directories="` + strings.ReplaceAll(sockets, `"`, `""`) + `"`,
		"unix_socket_permissions=0700",
		"max_connections=" + strconv.Itoa(cmp.Or(cfg.MaxConnections, 100)),
		"shared_buffers=64MB",
		// Containers often have a small /dev/shm, which parallel queries would fill up.
		"max_parallel_workers_per_gather=0",
		"jit=off",
		// New tables may grow within minutes: statistics must be updated soon.
		"autovacuum_naptime=10s",
		// There is no replication.
		"wal_level=minimal",
		"max_wal_senders=0",
		"fsync=" + durable,
		"full_page_writes=" + durable,
		"timezone=UTC",
		// The log has no statements: the client gets the error of a statement that fails,
		// and its details may be personal data.
		"logging_collector=off",
		"log_destination=stderr",
		"log_min_messages=log",
		"log_error_verbosity=terse",
		"log_checkpoints=off",
		"log_timezone=UTC",
		"log_line_prefix=%m [%p] ",
	}
}

// lockFile returns the lines of postmaster.pid, the lock file of the postmaster.
func (l location) lockFile() []string {
	text, err := os.ReadFile(filepath.Join(l.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// stopOrphanedServer stops a server whose parent process has died, waits until it has ended, and removes
// its lock file. PostgreSQL itself would trust the process id in that file, which may be that of
// another process after a restart of the container or machine. The caller holds the lock of the
// cluster, so that no running process has a server here.
func (l location) stopOrphanedServer(ctx context.Context) error {
	lines := l.lockFile()
	if lines == nil {
		return nil
	}
	postmasterPID, _ := strconv.Atoi(lines[0])
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began, sent := time.Now(), syscall.Signal(0)
	processes := func() []int { return serverProcesses(l.data(), postmasterPID) }
	for left := processes(); len(left) > 0; left = processes() {
		signal := syscall.SIGINT
		if slices.Contains(left, postmasterPID) {
			left = []int{postmasterPID}
		} else {
			signal = syscall.SIGQUIT // backends of a killed postmaster
		}
		if time.Since(began) > stopTimeout {
			signal = syscall.SIGQUIT
		}
		if signal != sent {
			for _, pid := range left {
				_ = syscall.Kill(pid, signal) // it may just have ended
			}
			sent = signal
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("an earlier server, pid %d, has not ended: %w", left[0], context.Cause(ctx))
		case <-tick.C:
		}
	}
	// After an orderly shutdown the file does not exist.
	return os.RemoveAll(filepath.Join(l.data(), "postmaster.pid"))
}
