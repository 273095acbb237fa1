package directory

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// checkTimeout is how long a login waits for an agent: 15 s, less what its
	// answer needs to arrive before the caller's own deadline of 15 s.
	checkTimeout = 14 * time.Second
	// checkLease is how long an agent has for a check before another agent gets it: the 5 s
	// that the directory server has, and a second for the network.
	checkLease = 6 * time.Second
	// checkPage bounds how many checks one call returns.
	checkPage = 50
	// checkRetry is how often a login and an agent that wait look at the table, for
	// a notification that was lost or an agent that went silent.
	checkRetry = time.Second
	// checkAge is the age at which the rows of logins that ended without removing them are
	// deleted.
	checkAge = time.Minute
	// maxPoll bounds a long poll. A process that stops waits for it.
	maxPoll = 5 * time.Second
	// seenEvery is how often the calls of an agent are written down.
	seenEvery = 15 * time.Second
	// maxDelegated bounds a password that is sent to an agent, in bytes.
	maxDelegated = 4 << 10
)

// checks are the logins and the agents of this process that wait for each other
// or for those of other replicas.
type checks struct {
	mu     sync.Mutex
	logins map[id.ID]chan int               // by check
	polls  map[id.ID]map[chan struct{}]bool // by agent
	seen   map[id.ID]time.Time              // when the calls of an agent were last written down
}

func newChecks() *checks {
	return &checks{logins: map[id.ID]chan int{}, polls: map[id.ID]map[chan struct{}]bool{}, seen: map[id.ID]time.Time{}}
}

// login registers a login that waits for a check.
func (c *checks) login(check id.ID) (result <-chan int, end func()) {
	answer := make(chan int, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logins[check] = answer
	return answer, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.logins, check)
	}
}

// poll registers an agent that waits for checks.
func (c *checks) poll(agent id.ID) (wake <-chan struct{}, end func()) {
	woken := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.polls[agent] == nil {
		c.polls[agent] = map[chan struct{}]bool{}
	}
	c.polls[agent][woken] = true
	return woken, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.polls[agent], woken); len(c.polls[agent]) == 0 {
			delete(c.polls, agent)
		}
	}
}

// created takes the notification that an agent has a new check.
func (c *checks) created(payload string) {
	agent, err := id.Parse(payload)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for woken := range c.polls[agent] {
		select {
		case woken <- struct{}{}:
		default:
		}
	}
}

// answered takes the notification that a check has a result.
func (c *checks) answered(payload string) {
	check, text, _ := strings.Cut(payload, " ")
	of, err := id.Parse(check)
	result, malformed := strconv.Atoi(text)
	if err != nil || malformed != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.logins[of]; answer != nil {
		select {
		case answer <- result:
		default:
		}
	}
}

// isNew reports whether a call of an agent is to be written down.
func (c *checks) isNew(agent id.ID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.seen[agent]; ok && now.Sub(last) < seenEvery && !now.Before(last) {
		return false
	}
	c.seen[agent] = now
	return true
}

// agentSeen notes that an agent called for checks.
func (s *Service) agentSeen(ctx context.Context, at id.Ref) error {
	if !s.checks.isNew(at.ID, s.now()) {
		return nil
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		tx.AgentSeen(ctx, at.Tenant, at.ID, s.now(), false)
		return nil
	})
}

func checkPurpose(check id.ID) string { return "directory.agentcheck/" + check.String() }

// delegated reports whether the password of an account is compared at its
// directory server.
func delegated(found store.Candidate) bool {
	return found.PasswordHash == "" && (found.ProviderID == ldap || found.ProviderID == ad)
}

// delegate lets the agent of a mirror compare a password. It returns the errors
// 9000 to 9006 (docs/interface/connectors.md#delegated-logins), and
// apierr.WrongPassword.
func (s *Service) delegate(ctx context.Context, found store.Candidate, password secure.Secret) error {
	if password == "" || len(password) > maxDelegated {
		return apierr.WrongPassword
	}
	ctx, span := telemetry.Span(ctx, "directory.AgentCheck")
	defer span.End()
	to, err := s.store.Delegate(ctx, found.TenantID, found.DirectoryID, found.ID, s.onlineSince())
	switch {
	case errors.Is(err, apierr.NotFound):
		return apierr.AgentUnreachable.Because("no agent has synchronized the account")
	case err != nil:
		return err
	case to.Status == store.Offline:
		return apierr.AgentUnreachable.Because("the agent of the directory has not called for %s; see that it runs", agentSilence)
	}
	check := id.New(s.now())
	result, end := s.checks.login(check)
	defer end()
	trace := propagation.MapCarrier{} // of the login, for the agent
	telemetry.InjectTrace(ctx, trace)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		return tx.InsertCheck(ctx, store.AgentCheck{TenantID: found.TenantID, AgentID: to.AgentID, ID: check, ExternalID: to.ExternalID,
			Username: found.Username, Password: s.ring.Seal(password, checkPurpose(check)), Trace: trace, CreatedAt: s.now()})
	})
	if err != nil {
		return err
	}
	answer, err := s.awaitCheck(ctx, found.TenantID, check, result)
	if err != nil {
		_ = s.store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error { return tx.DropCheck(ctx, found.TenantID, check) })
	}
	observeCheck(ctx, answer, err)
	if err != nil {
		return err
	}
	return checkError(answer)
}

// awaitCheck returns the result of a check, or apierr.AgentSlow.
func (s *Service) awaitCheck(ctx context.Context, tenant, check id.ID, result <-chan int) (int, error) {
	timeout, retry := time.NewTimer(checkTimeout), time.NewTicker(checkRetry)
	defer timeout.Stop()
	defer retry.Stop()
	slow := apierr.AgentSlow.Because("the agent of the directory did not check the password in time")
	for {
		select {
		case answer := <-result:
			return answer, nil
		case <-retry.C:
			if answer, err := s.store.CheckResult(ctx, tenant, check); err == nil && answer != nil {
				return *answer, nil
			}
		case <-timeout.C:
			return 0, slow
		case <-ctx.Done():
			return 0, slow
		}
	}
}

// What an agent says of a check, beside the codes of errors.
const (
	checkExpired = iota + store.CheckFailure + 1
	checkLocked
	checkDisabled
)

// refusalReasons are the reasons that the answer FAILURE may have. All are a
// wrong password to the user.
var refusalReasons = map[string]int{"EXPIRED": checkExpired, "LOCKED": checkLocked, "DISABLED": checkDisabled}

// checkErrors are what becomes of a login by the result of its check.
var checkErrors = map[int]error{
	store.CheckFailure: apierr.WrongPassword,
	checkExpired:       apierr.WrongPassword.Because("the password has expired at the directory server; change it there"),
	checkLocked:        apierr.WrongPassword.Because("the directory server has locked the account"),
	checkDisabled:      apierr.WrongPassword.Because("the directory server has disabled the account, or does not let it in now"),
	9001:               apierr.ServerUnreachable.Because("the agent does not reach the directory server"),
	9002:               apierr.AgentSlow.Because("the agent has too much to do"),
	9003:               apierr.ServerSlow.Because("the directory server did not answer the agent in time"),
	9004:               apierr.AgentAnswer.Because("the agent could not make the check; its log says why"),
	9005:               apierr.ServerAnswer.Because("the agent does not understand what the directory server answered; its log says more"),
	9006:               apierr.ReferralFailed.Because("the directory server referred the agent to another that it does not follow or reach"),
}

func checkError(result int) error {
	if result == store.CheckSuccess {
		return nil
	}
	if err := checkErrors[result]; err != nil {
		return err
	}
	return apierr.AgentAnswer.Because("the agent answered the check with the unknown result %d", result)
}

// AgentCheck is a password check as an agent gets it.
type AgentCheck struct {
	store.AgentCheck
	Plain secure.Secret
}

// AgentChecks waits until logins need the agent to check passwords, and returns
// some of the checks. Each is handed out once, and again when the agent that took
// it did not answer.
func (s *Service) AgentChecks(ctx context.Context, at id.Ref, wait time.Duration) ([]AgentCheck, error) {
	if _, err := s.Agent(ctx, at); err != nil {
		return nil, err
	}
	if err := s.agentSeen(ctx, at); err != nil {
		return nil, err
	}
	woken, end := s.checks.poll(at.ID)
	defer end()
	timeout, retry := time.NewTimer(min(wait, maxPoll)), time.NewTicker(checkRetry)
	defer timeout.Stop()
	defer retry.Stop()
	for {
		taken, err := s.takeChecks(ctx, at)
		if err != nil || len(taken) > 0 || wait == 0 {
			return taken, err
		}
		select {
		case <-woken:
		case <-retry.C:
		case <-timeout.C:
			return taken, nil
		case <-ctx.Done():
			return taken, nil
		}
	}
}

func (s *Service) takeChecks(ctx context.Context, at id.Ref) (taken []AgentCheck, err error) {
	now := s.now()
	var found []store.AgentCheck
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		found, err = tx.TakeChecks(ctx, at.Tenant, at.ID, now.Add(-checkTimeout), now, now.Add(checkLease), checkPage)
		return err
	})
	for _, check := range found {
		plain, err := s.ring.Open(check.Password, checkPurpose(check.ID))
		if err != nil {
			return nil, err
		}
		taken = append(taken, AgentCheck{check, plain})
	}
	return taken, err
}

// CheckAnswer is what an agent says of a check.
type CheckAnswer struct {
	Result field.Text `json:"result"`
	Code   field.Int  `json:"code"`
	Reason field.Text `json:"reason"`
}

// AnswerCheck takes the result of a check, and the login goes on. A check that
// was answered, or whose login has ended, is apierr.NotFound.
func (s *Service) AnswerCheck(ctx context.Context, at id.Ref, check id.ID, in CheckAnswer) error {
	result, err := in.result()
	if err != nil {
		return err
	}
	if err := s.agentSeen(ctx, at); err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error { return tx.AnswerCheck(ctx, at.Tenant, at.ID, check, result) })
}

func (in CheckAnswer) result() (int, error) {
	if !in.Result.Given() {
		return 0, apierr.Required.Because("result is required: SUCCESS, FAILURE or ERROR")
	}
	kind, err := field.Enum(in.Result, "result", "", "SUCCESS", "FAILURE", "ERROR")
	switch {
	case err != nil:
		return 0, err
	case kind == "SUCCESS":
		return store.CheckSuccess, nil
	case kind == "FAILURE" && !in.Reason.Given():
		return store.CheckFailure, nil
	case kind == "FAILURE":
		reason, err := field.Enum(in.Reason, "reason", "", "EXPIRED", "LOCKED", "DISABLED")
		return refusalReasons[reason], err
	case !in.Code.Given():
		return 0, apierr.Required.Because("code is required with the result ERROR: 9001 to 9006")
	}
	return field.Whole(in.Code, "code", 0, 9001, 9006)
}
