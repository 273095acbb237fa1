package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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
	agentstore "github.com/doorward/doorward/services/directory/agent/store"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// checkTimeout is how long a login waits for an agent: the caller gives up after 15 s, and the
	// answer takes a moment.
	checkTimeout = 14 * time.Second
	// checkLease is how long an agent has for a check before another agent gets it: 5 s for the
	// directory server, and a second for the network.
	checkLease = 6 * time.Second
	// maxChecksPerPoll bounds how many checks one call returns.
	maxChecksPerPoll = 50
	// checkRetry is how often a waiting login or agent polls the table, in case a notification was
	// lost or an agent went silent.
	checkRetry = time.Second
	// maxCheckAge is the age at which checks are purged that their logins did not delete.
	maxCheckAge = time.Minute
	// maxPoll bounds a long poll. A process that stops waits for it.
	maxPoll = 5 * time.Second
	// recordCallInterval is the least time between two updates of an agent's last call.
	recordCallInterval = 15 * time.Second
	// maxWaitingChecks bounds the logins that wait for one agent, so that a slow one holds no more
	// requests of its tenant.
	maxWaitingChecks = 20
	// maxCheckedPassword bounds a password that is sent to an agent, in bytes.
	maxCheckedPassword = 4 << 10
)

// pendingChecks are the logins and the agents that wait in this process. PostgreSQL notifies them
// (LISTEN, NOTIFY), also of what happens in other replicas.
type pendingChecks struct {
	mu            sync.Mutex
	logins        map[id.ID]chan int               // logins that wait for a result, by the id of their check
	polls         map[id.ID]map[chan struct{}]bool // agents that wait for checks (long poll)
	recordedCalls map[id.ID]time.Time              // when the last call of an agent was updated
}

func newPendingChecks() *pendingChecks {
	return &pendingChecks{
		logins: map[id.ID]chan int{}, polls: map[id.ID]map[chan struct{}]bool{}, recordedCalls: map[id.ID]time.Time{},
	}
}

// awaitResult registers a login that waits for the result of a check.
func (c *pendingChecks) awaitResult(check id.ID) (result <-chan int, end func()) {
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

// awaitChecks registers an agent that waits for checks.
func (c *pendingChecks) awaitChecks(agent id.ID) (wake <-chan struct{}, end func()) {
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

// notifyCheck wakes the agent of the payload: it has a new check.
func (c *pendingChecks) notifyCheck(payload string) {
	agent, err := id.Parse(payload)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for wake := range c.polls[agent] {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}

// notifyResult passes the result of a check to the login that waits for it.
func (c *pendingChecks) notifyResult(payload string) {
	check, text, _ := strings.Cut(payload, " ")
	checkID, err := id.Parse(check)
	result, malformed := strconv.Atoi(text)
	if err != nil || malformed != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer := c.logins[checkID]; answer != nil {
		select {
		case answer <- result:
		default:
		}
	}
}

// shouldRecordCall reports whether the last call of an agent is to be updated now.
func (c *pendingChecks) shouldRecordCall(agent id.ID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last, ok := c.recordedCalls[agent]; ok && now.Sub(last) < recordCallInterval && !now.Before(last) {
		return false
	}
	c.recordedCalls[agent] = now
	return true
}

// recordAgentCall updates the last call of an agent, at most once in recordCallInterval.
func (s *Service) recordAgentCall(ctx context.Context, at id.Ref) error {
	if !s.pending.shouldRecordCall(at.ID, s.now()) {
		return nil
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		tx.RecordAgentCall(ctx, at.Tenant, at.ID, s.now(), false)
		return nil
	})
}

func checkPurpose(check id.ID) string { return "directory.agentcheck/" + check.String() }

// CheckPassword lets the agent of a mirror directory check a password by an LDAP bind (delegated
// authentication). It stores the check in a table, from which an agent takes it by AgentChecks,
// and waits for the answer. It returns the errors 9000 to 9006
// (docs/interface/connectors.md#delegated-logins), and apierr.WrongPassword, also for a password
// that has expired and an account that is locked or disabled at the directory server. The agent's
// side is services/agent/check.go.
func (s *Service) CheckPassword(ctx context.Context, found store.Candidate, password secure.Secret) error {
	if password == "" || len(password) > maxCheckedPassword {
		return apierr.WrongPassword
	}
	ctx, span := telemetry.Span(ctx, "directory.AgentCheck")
	defer span.End()
	agent, err := s.agents.CheckingAgent(ctx, found.TenantID, found.DirectoryID, found.ID, s.onlineSince())
	switch {
	case errors.Is(err, apierr.NotFound):
		return apierr.AgentUnreachable.Because("no agent has synchronized the account")
	case err != nil:
		return err
	case agent.Status == store.Offline:
		s.recordUnanswered(ctx, found.TenantID, agent.AgentID, id.ID{})
		return apierr.AgentUnreachable.Because("the agent of the directory has not called for %s; see that it runs",
			agentSilence)
	}
	check := id.New(s.now())
	result, end := s.pending.awaitResult(check)
	defer end()
	trace := propagation.MapCarrier{} // of the login, for the agent
	telemetry.InjectTrace(ctx, trace)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		waiting, err := agentstore.CountWaitingChecks(ctx, tx.Tx, found.TenantID, agent.AgentID,
			s.now().Add(-checkTimeout))
		if err != nil {
			return err
		}
		if waiting >= maxWaitingChecks {
			return apierr.Unavailable.Because("%d logins wait for the agent of the directory; repeat the request later",
				waiting).
				WithRetryAfter(checkTimeout)
		}
		agentstore.InsertCheck(tx.Tx, agentstore.Check{
			TenantID: found.TenantID, AgentID: agent.AgentID, ID: check, ExternalID: agent.ExternalID,
			Username: found.Username, Password: s.ring.Seal(password, checkPurpose(check)), Trace: trace,
			CreatedAt: s.now(),
		})
		return nil
	})
	if err != nil {
		return err
	}
	err = s.awaitCheck(ctx, found.TenantID, check, result)
	countCheck(ctx, err)
	if isOneOf(err, apierr.AgentFailures) {
		s.recordUnanswered(ctx, found.TenantID, agent.AgentID, check)
	}
	return err
}

// recordUnanswered records that a check of an agent had no result, and deletes the check.
func (s *Service) recordUnanswered(ctx context.Context, tenant, agent, check id.ID) {
	err := s.store.Tx(context.WithoutCancel(ctx), func(tx *store.Tx) error {
		agentstore.RecordUnanswered(tx.Tx, tenant, agent, s.now())
		agentstore.DeleteCheck(tx.Tx, tenant, check)
		return nil
	})
	if err != nil {
		slog.WarnContext(ctx, "recording a password check without a result failed", "error", err.Error())
	}
}

// isOneOf reports whether an error is one of others.
func isOneOf(err error, others []error) bool {
	return slices.ContainsFunc(others, func(other error) bool { return errors.Is(err, other) })
}

// awaitCheck waits for the result of a check and returns the error of its login, which is apierr.AgentSlow
// without a result.
func (s *Service) awaitCheck(ctx context.Context, tenant, check id.ID, result <-chan int) error {
	timeout, retry := time.NewTimer(checkTimeout), time.NewTicker(checkRetry)
	defer timeout.Stop()
	defer retry.Stop()
	slow := apierr.AgentSlow.Because("the agent of the directory did not check the password in time")
	for {
		select {
		case answer := <-result:
			return checkError(answer)
		case <-retry.C:
			if answer, err := s.agents.CheckResult(ctx, tenant, check); err == nil && answer != nil {
				return checkError(*answer)
			}
		case <-timeout.C:
			return slow
		case <-ctx.Done():
			return slow
		}
	}
}

// Results of a check for which the answer FAILURE has a reason: password expired, account locked
// (lockout), account disabled.
const (
	checkExpired = iota + agentstore.CheckFailure + 1
	checkLocked
	checkDisabled
)

// refusalReasons are the results by the reason of the answer FAILURE. To the end user each is a
// wrong password.
var refusalReasons = map[string]int{"EXPIRED": checkExpired, "LOCKED": checkLocked, "DISABLED": checkDisabled}

// checkErrors are the errors of a login by the result of its check.
var checkErrors = map[int]error{
	agentstore.CheckFailure: apierr.WrongPassword,
	checkExpired: apierr.WrongPassword.Because(
		"the password has expired at the directory server; change it there"),
	checkLocked: apierr.WrongPassword.Because("the directory server has locked the account"),
	checkDisabled: apierr.WrongPassword.Because(
		"the directory server has disabled the account, or does not let it in now"),
	9001: apierr.ServerUnreachable.Because("the agent does not reach the directory server"),
	9002: apierr.AgentSlow.Because("the agent has too much to do"),
	9003: apierr.ServerSlow.Because("the directory server did not answer the agent in time"),
	9004: apierr.AgentAnswer.Because("the agent could not make the check; its log says why"),
	9005: apierr.ServerAnswer.Because(
		"the agent does not understand what the directory server answered; its log says more"),
	9006: apierr.ReferralFailed.Because(
		"the directory server referred the agent to another that it does not follow or reach"),
}

// checkError returns the error of a login for the result of its check.
func checkError(result int) error {
	if result == agentstore.CheckSuccess {
		return nil
	}
	if err := checkErrors[result]; err != nil {
		return err
	}
	return apierr.AgentAnswer.Because("the agent answered the check with the unknown result %d", result)
}

// Check is a password check for an agent.
type Check struct {
	agentstore.Check               // with the sealed password
	PlainPassword    secure.Secret // the password, decrypted
}

// AgentChecks returns some of the password checks that logins need of the agent; without any it
// waits (long poll). Each check is returned once, and again when the agent did not answer it
// within checkLease.
func (s *Service) AgentChecks(ctx context.Context, at id.Ref, wait time.Duration) ([]Check, error) {
	if _, err := s.Agent(ctx, at); err != nil {
		return nil, err
	}
	if err := s.recordAgentCall(ctx, at); err != nil {
		return nil, err
	}
	woken, end := s.pending.awaitChecks(at.ID)
	defer end()
	timeout, retry := time.NewTimer(min(wait, maxPoll)), time.NewTicker(checkRetry)
	defer timeout.Stop()
	defer retry.Stop()
	for {
		leased, err := s.leaseChecks(ctx, at)
		if err != nil || len(leased) > 0 || wait == 0 {
			return leased, err
		}
		select {
		case <-woken:
		case <-retry.C:
		case <-timeout.C:
			return leased, nil
		case <-ctx.Done():
			return leased, nil
		}
	}
}

// leaseChecks takes some checks for checkLease and decrypts their passwords.
func (s *Service) leaseChecks(ctx context.Context, at id.Ref) (leased []Check, err error) {
	now := s.now()
	var found []agentstore.Check
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		found, err = agentstore.LeaseChecks(ctx, tx.Tx, at.Tenant, at.ID, now.Add(-checkTimeout), now,
			now.Add(checkLease), maxChecksPerPoll)
		return err
	})
	for _, check := range found {
		plain, err := s.ring.Open(check.Password, checkPurpose(check.ID))
		if err != nil {
			return nil, err
		}
		leased = append(leased, Check{check, plain})
	}
	return leased, err
}

// CheckAnswer is the result of a check in an agent's answer.
type CheckAnswer struct {
	Result field.Text `json:"result"`
	Code   field.Int  `json:"code"`
	Reason field.Text `json:"reason"`
}

// AnswerCheck stores the result of a check, and its login continues. It returns apierr.NotFound
// for a check that was answered already or whose login has ended.
func (s *Service) AnswerCheck(ctx context.Context, at id.Ref, check id.ID, in CheckAnswer) error {
	result, err := in.result()
	if err != nil {
		return err
	}
	if err := s.recordAgentCall(ctx, at); err != nil {
		return err
	}
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		return agentstore.AnswerCheck(ctx, tx.Tx, at.Tenant, at.ID, check, result)
	})
}

// result validates an answer and returns its result as it is stored.
func (in CheckAnswer) result() (int, error) {
	if !in.Result.Given() {
		return 0, apierr.Required.Because("result is required: SUCCESS, FAILURE or ERROR")
	}
	kind, err := field.Enum(in.Result, "result", "", "SUCCESS", "FAILURE", "ERROR")
	switch {
	case err != nil:
		return 0, err
	case kind == "SUCCESS":
		return agentstore.CheckSuccess, nil
	case kind == "FAILURE" && !in.Reason.Given():
		return agentstore.CheckFailure, nil
	case kind == "FAILURE":
		reason, err := field.Enum(in.Reason, "reason", "", "EXPIRED", "LOCKED", "DISABLED")
		return refusalReasons[reason], err
	case !in.Code.Given():
		return 0, apierr.Required.Because("code is required with the result ERROR: 9001 to 9006")
	}
	return field.Whole(in.Code, "code", 0, 9001, 9006)
}
