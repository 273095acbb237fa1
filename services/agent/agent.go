package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pingInterval = 30 * time.Second
	// pollRetry is the pause after a failed call for password checks.
	pollRetry = time.Second
	// syncRetry is the first pause after a failed sync, doubled for each further failure up to
	// maxSyncRetry (back-off).
	syncRetry    = 2 * time.Second
	maxSyncRetry = 5 * time.Minute
	// maxDeletions is the longest time between two searches for deleted entries
	// (docs/interface/connectors.md#synchronization).
	maxDeletions = 15 * time.Minute
)

// Agent is the running agent.
type Agent struct {
	cfg      Config
	doorward *Doorward
	server   atomic.Pointer[server]
	changed  chan *server // a new configuration, for syncLoop
	health   health
}

// New returns an agent, which Run starts.
func New(cfg Config) (*Agent, error) {
	d, err := NewDoorward(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Deletions > maxDeletions {
		return nil, fmt.Errorf("DOORWARD_AGENT_DELETIONS is %s: use at most %s", cfg.Deletions, maxDeletions)
	}
	return &Agent{cfg: cfg, doorward: d, changed: make(chan *server, 1)}, nil
}

// Run works until its context ends: it reads the configuration, retrying with back-off, and then
// synchronizes, checks passwords and reports its status.
func (a *Agent) Run(ctx context.Context) error {
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		err := a.configure(ctx)
		if err == nil {
			break
		}
		a.health.record("configuration", err)
		slog.ErrorContext(ctx, "reading the configuration failed, retrying", "error", err.Error())
		if sleep(ctx, wait) != nil {
			return nil
		}
	}
	var work sync.WaitGroup
	for _, part := range []func(context.Context){a.pingLoop, a.syncLoop, a.checkLoop} {
		work.Go(func() { part(ctx) })
	}
	work.Wait()
	return nil
}

// configure reads the configuration. A changed one is used for all that starts from now on.
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
	case <-a.changed: // drop an older configuration that was not used
	default:
	}
	a.changed <- s
	slog.InfoContext(ctx, "configured", "server", s.address(), "base", settings.BaseDN, "provider", settings.ProviderID)
	a.health.record("configuration", nil)
	return nil
}

// pingLoop reports the status of the agent to Doorward (heartbeat) and reads the configuration
// again, each pingInterval.
func (a *Agent) pingLoop(ctx context.Context) {
	for {
		if err := a.configure(ctx); err != nil && ctx.Err() == nil {
			a.health.record("configuration", err)
		}
		err := a.server.Load().probe(ctx)
		a.health.record("directory server", err)
		if err == nil {
			err = a.health.firstProblem()
		}
		err = a.doorward.Ping(ctx, err)
		if ctx.Err() != nil || sleep(ctx, pingInterval) != nil {
			return
		}
		a.health.record("Doorward", err)
	}
}

// syncLoop runs a full sync at the start, and incremental syncs each PollInterval after that, or more
// often where deletions are to be looked for more often.
func (a *Agent) syncLoop(ctx context.Context) {
	m := newSyncState(<-a.changed, a.doorward)
	retry := syncRetry
	for {
		err := m.incrementalSync(ctx)
		if ctx.Err() != nil {
			return
		}
		a.health.recordSync(m, err)
		wait := a.cfg.Poll
		if wait == 0 {
			wait = time.Duration(m.settings.PollInterval) * time.Minute
		}
		wait = min(wait, max(a.cfg.Deletions, time.Second)) // what vanished must not wait for a long pollInterval
		if err != nil {
			slog.ErrorContext(ctx, "synchronization failed, retrying", "error", err.Error())
			wait, retry = retry, min(2*retry, maxSyncRetry)
		} else {
			retry = syncRetry
		}
		select {
		case <-ctx.Done():
			return
		case s := <-a.changed:
			m.close()
			m = newSyncState(s, a.doorward)
		case <-time.After(wait):
		}
	}
}

// checkLoop fetches password checks from Doorward and runs them, at most cfg.Checks concurrently.
func (a *Agent) checkLoop(ctx context.Context) {
	slots := make(chan struct{}, a.cfg.Checks)
	var running sync.WaitGroup
	defer running.Wait() // every check that was fetched is answered
	for {
		slots <- struct{}{} // wait until a slot is free
		<-slots
		found, err := a.doorward.WaitForChecks(ctx)
		if ctx.Err() != nil && err != nil {
			return
		}
		a.health.record("checks", err)
		if err != nil {
			if _, ok := errors.AsType[*statusError](err); ok {
				slog.ErrorContext(ctx, "Doorward refused the agent, retrying", "error", err.Error())
			}
			if sleep(ctx, pollRetry) != nil {
				return
			}
			continue
		}
		for _, c := range found {
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				a.answer(context.WithoutCancel(ctx), c)
			})
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// answerTimeout bounds a password check and the sending of its result. The login of the check waits
// 14 s (checkTimeout in services/directory/agent/check.go).
const answerTimeout = 15 * time.Second

// answer runs a password check and sends its result.
func (a *Agent) answer(ctx context.Context, c Check) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	started := time.Now()
	result := a.server.Load().checkPassword(ctx, c)
	a.health.recordCheck(ctx, result, time.Since(started))
	if err := a.doorward.Answer(ctx, c.ID, result); err != nil {
		slog.WarnContext(ctx, "sending the result of a password check failed", "error", err.Error())
	}
}
