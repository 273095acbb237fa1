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

// letters are the locales tried for telling letters from other characters. Text
// is sorted by code point whatever the locale, so that an index outlives a new
// C library; but with C alone a trigram index would not see a letter beyond ASCII.
var locales = []string{"C.UTF-8", "en_US.UTF-8", "C"}

// version is the major version that made the cluster; 0 if there is none.
func (l location) version() int {
	text, err := os.ReadFile(filepath.Join(l.data(), "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return major
}

// initialize makes the cluster unless it is there. It gets its name only when it
// is complete: a launcher killed on the way leaves nothing that looks like one.
func (l location) initialize(ctx context.Context, bin string, durable bool) error {
	abandoned, _ := filepath.Glob(filepath.Join(l.dir, "data.new-*")) // the only error is a bad pattern
	for _, dir := range abandoned {
		_ = os.RemoveAll(dir) // if a dying initdb still writes there: at the next start
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

// settings are given at each start, so that a cluster made by an older release
// runs as this one means it. They suit a small machine.
func settings(cfg Config, sockets string) []string {
	durable := map[bool]string{true: "on", false: "off"}[cfg.Durable]
	return []string{
		"listen_addresses=",
		"port=" + port,
		`unix_socket_directories="` + strings.ReplaceAll(sockets, `"`, `""`) + `"`,
		"unix_socket_permissions=0700",
		"max_connections=" + strconv.Itoa(cmp.Or(cfg.MaxConnections, 100)),
		"shared_buffers=64MB",
		// Containers often have a small /dev/shm, which parallel queries would fill.
		"max_parallel_workers_per_gather=0",
		"jit=off",
		// Tables begin empty and may fill within minutes: plans made for empty ones
		// are not kept for long.
		"autovacuum_naptime=10s",
		// Nothing replicates from here.
		"wal_level=minimal",
		"max_wal_senders=0",
		"fsync=" + durable,
		"full_page_writes=" + durable,
		"timezone=UTC",
		// The log keeps to the server itself: the client of a failing statement learns
		// of it, and its details may name people.
		"logging_collector=off",
		"log_destination=stderr",
		"log_min_messages=log",
		"log_error_verbosity=terse",
		"log_checkpoints=off",
		"log_timezone=UTC",
		"log_line_prefix=%m [%p] ",
	}
}

// lockFile returns the lines of the file in which a postmaster describes itself.
func (l location) lockFile() []string {
	text, err := os.ReadFile(filepath.Join(l.data(), "postmaster.pid"))
	if err != nil {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// evict waits for the server of a launcher that died, after telling it to stop,
// and then removes its lock file. PostgreSQL itself would go by the process id in
// that file, which after a restart of a container or machine may be anyone's.
// The caller holds the lock, so no living launcher has a server here.
func (l location) stopOrphanedServer(ctx context.Context) error {
	lines := l.lockFile()
	if lines == nil {
		return nil
	}
	leader, _ := strconv.Atoi(lines[0])
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began, sent := time.Now(), syscall.Signal(0)
	for left := serverProcesses(l.data(), leader); len(left) > 0; left = serverProcesses(l.data(), leader) {
		signal := syscall.SIGINT
		if slices.Contains(left, leader) {
			left = []int{leader}
		} else {
			signal = syscall.SIGQUIT // orphans of a killed postmaster, which would do the same
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
	// After an orderly end it is gone.
	return os.RemoveAll(filepath.Join(l.data(), "postmaster.pid"))
}
