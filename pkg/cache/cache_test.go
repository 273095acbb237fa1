package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/clocktest"
)

const maxAge = time.Minute

// source is where the values of a cache come from.
type source struct {
	mu    sync.Mutex
	loads int
	value string
	err   error
}

func (s *source) load(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads++
	return s.value, s.err
}

func open(size int) (*cache.Cache[string, string], *clocktest.Clock, *source) {
	clock := &clocktest.Clock{}
	return cache.New(cache.Config[string, string]{
		Name: "test", Size: size, MaxAge: maxAge, Now: clock.Now,
		DependsOn: func(value string) []string { return []string{"all of " + value} },
	}), clock, &source{value: "as it was"}
}

// want gets a key, and wants so many loads to have happened.
func want(t *testing.T, c *cache.Cache[string, string], s *source, key string, loads int) {
	t.Helper()
	got, err := c.Get(t.Context(), key, s.load)
	if err != nil || got != s.value || s.loads != loads {
		t.Errorf("%s is %q, %v, after %d loads; want %q after %d", key, got, err, s.loads, s.value, loads)
	}
}

func TestAValueIsKeptForItsAge(t *testing.T) {
	c, clock, s := open(10)
	want(t, c, s, "a", 1)
	want(t, c, s, "a", 1)
	clock.Move(maxAge - 1)
	want(t, c, s, "a", 1)
	clock.Move(1)
	want(t, c, s, "a", 2)
}

func TestTheAgeCountsFromTheStartOfTheLoad(t *testing.T) {
	c, clock, s := open(10)
	if _, err := c.Get(t.Context(), "a", func(ctx context.Context) (string, error) {
		clock.Move(maxAge)
		return s.load(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	want(t, c, s, "a", 2)
}

func TestAKeyIsForgottenAlone(t *testing.T) {
	c, _, s := open(10)
	want(t, c, s, "a", 1)
	want(t, c, s, "b", 2)
	c.Invalidate("a")
	want(t, c, s, "b", 2)
	want(t, c, s, "a", 3)
	c.Clear()
	want(t, c, s, "a", 4)
	want(t, c, s, "b", 5)
}

func TestAValueIsForgottenWithWhatItDependsOn(t *testing.T) {
	c, _, s := open(10)
	want(t, c, s, "a", 1)
	s.value = "another"
	want(t, c, s, "b", 2)
	c.Invalidate("all of as it was")
	want(t, c, s, "b", 2)
	want(t, c, s, "a", 3)
	c.Invalidate("all of another")
	want(t, c, s, "a", 4)
	want(t, c, s, "b", 5)
}

func TestALoadThatBeganBeforeAChangeIsNotKept(t *testing.T) {
	for name, change := range map[string]func(*cache.Cache[string, string]){
		"of the key":               func(c *cache.Cache[string, string]) { c.Invalidate("a") },
		"of what it depends on":    func(c *cache.Cache[string, string]) { c.Invalidate("all of as it was") },
		"of everything":            func(c *cache.Cache[string, string]) { c.Clear() },
		"of what it is allowed to": func(c *cache.Cache[string, string]) { c.Enable(true) },
	} {
		t.Run(name, func(t *testing.T) {
			c, _, s := open(10)
			if _, err := c.Get(t.Context(), "a", func(ctx context.Context) (string, error) {
				value, err := s.load(ctx)
				change(c)
				if got, err := c.Get(ctx, "a", func(context.Context) (string, error) { return "new", nil }); err != nil || got != "new" {
					t.Errorf("a Get after the change returns %q, %v", got, err)
				}
				return value, err
			}); err != nil {
				t.Fatal(err)
			}
			if got, ok := c.Peek("a"); !ok || got != "new" {
				t.Errorf("afterwards it holds %q, %t", got, ok)
			}
		})
	}
}

func TestTheSizeIsBounded(t *testing.T) {
	c, _, s := open(3)
	for _, key := range []string{"a", "b", "c", "a", "d"} {
		_, _ = c.Get(t.Context(), key, s.load)
	}
	for key, held := range map[string]bool{"a": true, "b": false, "c": true, "d": true} {
		if _, ok := c.Peek(key); ok != held {
			t.Errorf("%s is held: %t, want %t", key, ok, held)
		}
	}
	heavy := cache.New(cache.Config[string, string]{
		Name: "heavy", Size: 10, MaxAge: maxAge, Now: time.Now, Weight: func(value string) int { return len(value) },
	})
	for key, value := range map[string]string{"a": "12345678901"} {
		_, _ = heavy.Get(t.Context(), key, func(context.Context) (string, error) { return value, nil })
		if _, ok := heavy.Peek(key); ok {
			t.Error("a value is held that is heavier than the cache")
		}
	}
}

func TestAnErrorIsNotKept(t *testing.T) {
	c, _, s := open(10)
	s.err = errors.New("away")
	for n := range 2 {
		if _, err := c.Get(t.Context(), "a", s.load); !errors.Is(err, s.err) || s.loads != n+1 {
			t.Errorf("%v after %d loads", err, s.loads)
		}
	}
}

func TestADisabledCacheKeepsNothing(t *testing.T) {
	c, _, s := open(10)
	want(t, c, s, "a", 1)
	c.Enable(false)
	want(t, c, s, "a", 2)
	want(t, c, s, "a", 3)
	c.Enable(true)
	want(t, c, s, "a", 4)
	want(t, c, s, "a", 4)
}

func TestCallersShareALoad(t *testing.T) {
	c, _, s := open(10)
	began, release := make(chan struct{}), make(chan struct{})
	slow := func(ctx context.Context) (string, error) {
		close(began)
		<-release
		return s.load(ctx)
	}
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	group.Go(func() {
		if _, err := c.Get(ctx, "a", slow); !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller, who left, got %v", err)
		}
	})
	<-began
	cancel() // which ends the wait of the first, not the load
	group.Wait()
	got := make(chan string)
	go func() {
		value, _ := c.Get(t.Context(), "a", s.load)
		got <- value
	}()
	close(release)
	if value := <-got; value != s.value || s.loads != 1 {
		t.Errorf("%q after %d loads", value, s.loads)
	}
}

// A load can take longer than its value may be served. A caller that asks later than that does not
// get what was read before.
func TestAnOldLoadIsNotShared(t *testing.T) {
	c, clock, s := open(10)
	began, release := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		value, err := c.Get(t.Context(), "a", func(context.Context) (string, error) {
			close(began)
			<-release
			return "from before the change", nil
		})
		if err != nil || value != "from before the change" {
			t.Errorf("the caller that began the load got %q, %v", value, err)
		}
	})
	<-began
	clock.Move(maxAge + 1)
	joined := make(chan struct{})
	got := make(chan string)
	go func() {
		close(joined)
		value, _ := c.Get(t.Context(), "a", s.load)
		got <- value
	}()
	<-joined
	close(release)
	if value := <-got; value != s.value {
		t.Errorf("a caller that came later than the value may be served got %q", value)
	}
	group.Wait()
}
