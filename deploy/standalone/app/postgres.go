package app

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/run"
)

// startPostgres runs a private PostgreSQL. When that server ends by itself, the process
// ends too, with the reason as its error.
func startPostgres(ctx context.Context, p *run.Process, dir, bin string) (url string, err error) {
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
	return server.URL(private.Database), nil
}
