package oauth_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/oauth"
)

func TestRowsThatComeWhileAStatementRunsAreWrittenTogether(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	var batches [][]string
	add := oauth.Grouped(func(ctx context.Context, rows []string) []error {
		if tenant := caller.From(ctx).Tenant; !tenant.IsZero() {
			t.Errorf("the statement runs for the tenant %s alone", tenant)
		}
		batches = append(batches, rows)
		if len(batches) == 1 {
			close(began)
			<-release
		}
		errs := make([]error, len(rows))
		for i, row := range rows {
			if row == "7" {
				errs[i] = apierr.NotFound
			}
		}
		return errs
	})
	var clients sync.WaitGroup
	clients.Go(func() {
		if err := add(caller.Into(t.Context(), caller.Caller{Tenant: id.New(time.Now())}), "first"); err != nil {
			t.Error(err)
		}
	})
	<-began
	left, leave := context.WithCancel(t.Context())
	leave()
	for n := range 20 {
		if err := add(left, strconv.Itoa(n)); !errors.Is(err, apierr.Unavailable) {
			t.Errorf("a request whose time is over, before its row was written, returns %v", err)
		}
	}
	clients.Go(func() {
		if err := add(t.Context(), "7"); !errors.Is(err, apierr.NotFound) {
			t.Errorf("the row that is refused returns %v", err)
		}
	})
	close(release)
	clients.Wait()
	if len(batches) < 2 || len(batches) > 3 || len(batches[0]) != 1 || len(batches[1]) < 20 {
		t.Errorf("the rows were written as %v", batches)
	}
}
