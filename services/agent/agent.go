package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pingEvery = 30 * time.Second
	// pollRetry is the pause after a poll for checks that failed.
	pollRetry = time.Second
	// syncRetry is the pause after a sync that failed, doubled up to mostSyncRetry.
	syncRetry     = 2 * time.Second
	mostSyncRetry = 5 * time.Minute
)

// Agent is the running agent.
type Agent struct {
	cfg      Config
	doorward *Doorward
	server   atomic.Pointer[server]
	changed  chan *server // a new configuration, for the sync
	state    state
}

// New returns an agent that does nothing until Run.
func New(cfg Config) (*Agent, error) {
	d, err := NewDoorward(cfg)
	if err != nil {
		return nil, err
	}
	return &Agent{cfg: cfg, doorward: d, changed: make(chan *server, 1)}, nil
}

// Run works until its context ends: it reads the configuration, and from then on
// synchronizes, checks passwords and says how it does.
func (a *Agent) Run(ctx context.Context) error {
	for wait := firstBackOff; ; wait = min(2*wait, mostBackOff) {
		err := a.configure(ctx)
		if err == nil {
			break
		}
		a.state.note("configuration", err)
		slog.ErrorContext(ctx, "reading the configuration failed, retrying", "error", err.Error())
		if pause(ctx, wait) != nil {
			return nil
		}
	}
	var work sync.WaitGroup
	for _, part := range []func(context.Context){a.pings, a.syncs, a.checks} {
		work.Go(func() { part(ctx) })
	}
	work.Wait()
	return nil
}

// configure reads the configuration and, where it has changed, makes it that of
// all that begins from now on.
func (a *Agent) configure(ctx context.Context) error {
	settings, err := a.doorward.Configuration(ctx)
	if err != nil {
		return err
	}
	if now := a.server.Load(); now != nil && now.settings == settings {
		return nil
	}
	s, err := newServer(a.cfg, settings)
	if err != nil {
		return err
	}
	a.server.Store(s)
	select {
	case <-a.changed: // this is newer
	default:
	}
	a.changed <- s
	slog.InfoContext(ctx, "configured", "server", s.address(), "base", settings.BaseDN, "provider", settings.ProviderID)
	a.state.note("configuration", nil)
	return nil
}

// pings reports the state of the agent to Doorward, and reads the configuration again.
func (a *Agent) pings(ctx context.Context) {
	for {
		if err := a.configure(ctx); err != nil && ctx.Err() == nil {
			a.state.note("configuration", err)
		}
		err := a.server.Load().probe(ctx)
		a.state.note("directory server", err)
		if err == nil {
			err = a.state.problem()
		}
		err = a.doorward.Ping(ctx, err)
		if ctx.Err() != nil || pause(ctx, pingEvery) != nil {
			return
		}
		a.state.note("Doorward", err)
	}
}

// syncs compares everything at the start, and then polls.
func (a *Agent) syncs(ctx context.Context) {
	m := newMirror(<-a.changed, a.doorward)
	retry := syncRetry
	for {
		err := m.poll(ctx)
		if ctx.Err() != nil {
			return
		}
		a.state.synchronized(m, err)
		wait := a.cfg.Poll
		if wait == 0 {
			wait = time.Duration(m.settings.PollInterval) * time.Minute
		}
		if err != nil {
			slog.ErrorContext(ctx, "synchronization failed, retrying", "error", err.Error())
			wait, retry = retry, min(2*retry, mostSyncRetry)
		} else {
			retry = syncRetry
		}
		select {
		case <-ctx.Done():
			return
		case s := <-a.changed:
			m.close()
			m = newMirror(s, a.doorward)
		case <-time.After(wait):
		}
	}
}

// checks takes password checks from Doorward and makes them, so many at a time.
func (a *Agent) checks(ctx context.Context) {
	slots := make(chan struct{}, a.cfg.Checks)
	var working sync.WaitGroup
	defer working.Wait() // what was taken is answered
	for {
		slots <- struct{}{} // one is free
		<-slots
		found, err := a.doorward.Checks(ctx)
		if ctx.Err() != nil && err != nil {
			return
		}
		a.state.note("checks", err)
		if err != nil {
			if _, ok := errors.AsType[*refused](err); ok {
				slog.ErrorContext(ctx, "Doorward refused the agent, retrying", "error", err.Error())
			}
			if pause(ctx, pollRetry) != nil {
				return
			}
			continue
		}
		for _, c := range found {
			slots <- struct{}{}
			working.Go(func() {
				defer func() { <-slots }()
				a.answer(context.WithoutCancel(ctx), c)
			})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// answerTimeout is how long a login may wait for the answer to its check.
const answerTimeout = 15 * time.Second

func (a *Agent) answer(ctx context.Context, c Check) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	started := time.Now()
	result := a.server.Load().check(ctx, c)
	a.state.checked(ctx, result, time.Since(started))
	if err := a.doorward.Answer(ctx, c.ID, result); err != nil {
		slog.WarnContext(ctx, "sending the result of a password check failed", "error", err.Error())
	}
}
