// Package privateserver has the private servers of standalone: PostgreSQL, a child process (pkg/pg/private), and in the
// process itself a Redis, a Kafka and a development mailbox. They listen on loopback or on a socket of their own.
package privateserver

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/run"
)

// StartPostgres runs a private PostgreSQL. When that server ends by itself, the process
// ends too, with the reason as its error.
func StartPostgres(ctx context.Context, p *run.Process, dir, bin string) (url string, err error) {
	server, err := private.Start(ctx, private.Config{Dir: dir, Bin: bin, Durable: true})
	if err != nil {
		return "", err
	}
	p.OnClose("PostgreSQL", server.Stop)
	p.Go("watch PostgreSQL", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-server.Done():
			how, _, _ := strings.Cut(server.Err().Error(), "\n") // without the end of its log
			return fmt.Errorf("%s; its log is %s", how, filepath.Join(server.Location(), "postgres.log"))
		}
	})
	p.Go("files of PostgreSQL", func(ctx context.Context) error {
		restartWithNewFiles(ctx, server)
		return nil
	})
	return server.URL(private.Database), nil
}

// filesEvery is how often the files of the private PostgreSQL are looked at, and restartTimeout bounds its restart.
const (
	filesEvery     = 5 * time.Second
	restartTimeout = time.Minute
)

// restartWithNewFiles restarts the server, until ctx ends, when the files of its package were replaced: it could not
// load its procedural language any more, and most writes would fail (58P01).
func restartWithNewFiles(ctx context.Context, server *private.Server) {
	ticker := time.NewTicker(filesEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if lacks, err := server.LacksFiles(ctx); err != nil || !lacks {
			continue // the write probes report any other failure
		}
		slog.WarnContext(ctx, "the files of PostgreSQL were replaced, restarting it")
		restarting, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
		if err := server.Restart(restarting); err != nil {
			slog.ErrorContext(ctx, "PostgreSQL could not be restarted", "error", err.Error())
		}
		cancel()
	}
}
