package pg

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
)

func tenantContext(ctx context.Context) context.Context {
	return caller.Into(ctx, caller.Caller{Tenant: id.New(time.Now())})
}

func TestATenantLeavesAQuarterOfThePoolToOthers(t *testing.T) {
	for connections, want := range map[int32]int{1: 1, 2: 1, 3: 2, 4: 3, 8: 6, 20: 15} {
		wantFree(tenantContext(t.Context()), t, newTenantQuota(connections), want)
	}
}

// wantFree tests how many connections a tenant may use more before a query waits.
func wantFree(tenant context.Context, t *testing.T, q *tenantQuota, want int) {
	t.Helper()
	ended, cancel := context.WithCancel(tenant)
	cancel()
	free := 0
	for holder, err := q.acquire(ended); err == nil; holder, err = q.acquire(ended) {
		free++
		defer q.release(holder)
	}
	if free != want {
		t.Errorf("the tenant may use %d connections, want %d", free, want)
	}
}

func TestQueriesOfATenantWaitForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenantQuota(2)
		noisy, quiet := tenantContext(t.Context()), tenantContext(t.Context())
		first, _ := s.acquire(noisy)
		var order []int
		for n := range 3 {
			go func() {
				tenant, err := s.acquire(noisy)
				if err != nil {
					t.Error(err)
				}
				order = append(order, n)
				s.release(tenant)
			}()
			synctest.Wait()
		}
		for _, ctx := range []context.Context{quiet, t.Context(), t.Context()} { // none waits
			tenant, err := s.acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer s.release(tenant)
		}
		if len(order) != 0 {
			t.Fatalf("%v did not wait", order)
		}
		s.release(first)
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 1 || order[2] != 2 {
			t.Errorf("the order was %v", order)
		}
		wantFree(noisy, t, s, 1)
	})
}

func TestAWaitForAShareEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTenantQuota(2)
		ctx := tenantContext(t.Context())
		first, _ := s.acquire(ctx)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := s.acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the wait ended with %v", err)
		}
		if waited := s.waitTime(); waited != time.Second {
			t.Errorf("a wait of a second counts as %s", waited)
		}
		s.release(first)
		wantFree(ctx, t, s, 1)
	})
}
