// Package fault lets a test break the calls of a service in memory.
package fault

import "sync"

// Moment says when a broken call fails.
type Moment int

// A call fails before it had its effect, or after it: then only its answer is
// lost.
const (
	Before Moment = iota
	After
)

// Every stands for all methods.
const Every = "*"

// Injector counts the calls of a service and breaks those that a test names. Its
// zero value breaks none.
type Injector struct {
	mu     sync.Mutex
	broken map[string]broken
	calls  map[string]int
}

type broken struct {
	moment Moment
	cause  func() error
}

// Break makes a method of that name, or Every, fail with what cause returns, for
// as long as that is not nil.
func (i *Injector) Break(method string, moment Moment, cause func() error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.broken == nil {
		i.broken = map[string]broken{}
	}
	i.broken[method] = broken{moment, cause}
}

// Fail makes every call fail with err, without an effect, until it is nil.
func (i *Injector) Fail(err error) { i.Break(Every, Before, func() error { return err }) }

// Calls returns how many times a method was called.
func (i *Injector) Calls(method string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.calls[method]
}

// at returns the error that a call of the method ends with at that moment. cause
// runs without the lock, so that it can call the service.
func (i *Injector) at(method string, moment Moment) error {
	i.mu.Lock()
	if i.calls == nil {
		i.calls = map[string]int{}
	}
	if moment == Before {
		i.calls[method]++
	}
	causes := []broken{i.broken[method], i.broken[Every]}
	i.mu.Unlock()
	for _, b := range causes {
		if b.cause == nil || b.moment != moment {
			continue
		}
		if err := b.cause(); err != nil {
			return err
		}
	}
	return nil
}

// Call runs a method under the service's lock, unless it is broken.
func Call[T any](i *Injector, lock sync.Locker, method string, do func() (T, error)) (T, error) {
	var none T
	if err := i.at(method, Before); err != nil {
		return none, err
	}
	lock.Lock()
	answer, err := do()
	lock.Unlock()
	if err != nil {
		return none, err
	}
	if err := i.at(method, After); err != nil {
		return none, err
	}
	return answer, nil
}
