package app

import (
	"context"
	"fmt"

	"github.com/doorward/doorward/pkg/pg/private"
	"github.com/doorward/doorward/pkg/run"
)

// startPostgres runs a private PostgreSQL. When it ends by itself the process
// ends too, and says why.
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
			return fmt.Errorf("the private PostgreSQL ended: %w", server.Err())
		}
	})
	return server.URL(private.Database), nil
}
