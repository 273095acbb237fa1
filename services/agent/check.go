package agent

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"regexp"
	"time"

	"github.com/go-ldap/ldap/v3"
	"go.opentelemetry.io/otel/propagation"

	"github.com/doorward/doorward/pkg/telemetry"
)

// checkTimeout is how long the directory server has for one check.
const checkTimeout = 5 * time.Second

// Codes of a check that failed for another reason than the password.
const (
	serverUnreachable = 9001
	serverSlow        = 9003
	answerInvalid     = 9005
	referralFailed    = 9006
)

var (
	success = CheckResult{Result: "SUCCESS"}
	failure = CheckResult{Result: "FAILURE"}
)

func failedBy(reason string) CheckResult { return CheckResult{Result: "FAILURE", Reason: reason} }

// check compares a password at the directory server, as a bind of the user.
func (s *server) check(ctx context.Context, c Check) CheckResult {
	ctx = telemetry.ExtractTrace(ctx, propagation.MapCarrier(c.Trace))
	ctx, span := telemetry.Span(ctx, "agent.Check")
	defer span.End()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if c.Password == "" { // a bind without a password succeeds for anybody
		return failure
	}
	dn, err := s.find(ctx, c)
	if err == nil && dn == "" {
		return failure
	}
	if err == nil {
		err = s.bindAs(ctx, dn, c.Password.Reveal())
	}
	result := resultOf(ctx, err)
	if result.Result == "ERROR" {
		slog.WarnContext(ctx, "checking a password at the directory server failed", "code", result.Code, "error", err.Error())
	}
	return result
}

// find returns the name of the entry of an account; empty where there is none. It
// is found by its id, so that no part of a login gets into the filter.
func (s *server) find(ctx context.Context, c Check) (string, error) {
	ctx, span := telemetry.Span(ctx, "ldap.Search")
	defer span.End()
	e, err := parseID(c.ExternalID)
	if err != nil {
		return "", nil // not an account of this agent
	}
	filter := "(&" + s.settings.accountFilter() + s.settings.idFilter(e) + ")"
	result, err := s.search(ctx, ldap.NewSearchRequest(s.settings.accountBase(), ldap.ScopeWholeSubtree, ldap.NeverDerefAliases, 2,
		int(checkTimeout/time.Second), false, filter, []string{"1.1"}, nil))
	switch {
	case err != nil:
		return "", err
	case len(result.Entries) == 0:
		return "", nil
	case len(result.Entries) > 1:
		return "", errors.New("several entries have one id")
	}
	return result.Entries[0].DN, nil
}

// refusedError is a login that the directory server refuses for a reason of its
// own.
type refusedError struct {
	reason string
	cause  error
}

func (r *refusedError) Error() string { return r.cause.Error() }

func policyError(code int8, cause error) error {
	switch code {
	case ldap.BeheraPasswordExpired, ldap.BeheraChangeAfterReset:
		return &refusedError{"EXPIRED", cause}
	case ldap.BeheraAccountLocked:
		return &refusedError{"LOCKED", cause}
	}
	return cause
}

// subCode is how Active Directory says why it refuses a login.
var subCode = regexp.MustCompile(`\bdata ([0-9a-f]{3,4})\b`)

// subCodes are the reasons behind a refused login of Active Directory, beside a
// wrong password.
var subCodes = map[string]string{
	"532": "EXPIRED", "773": "EXPIRED", "775": "LOCKED", "533": "DISABLED", "701": "DISABLED", "530": "DISABLED", "531": "DISABLED",
}

// outOfTime reports whether the time of a check is over. Connections have the same
// deadline, and may fail by it a little before the context does.
func outOfTime(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < checkTimeout/20
}

// resultOf reads what came of a check.
func resultOf(ctx context.Context, err error) CheckResult {
	var no *refusedError
	var dialing *net.OpError
	switch {
	case err == nil:
		return success
	case errors.As(err, &no):
		return failedBy(no.reason)
	case ldap.IsErrorWithCode(err, ldap.LDAPResultInvalidCredentials):
		if code := subCode.FindStringSubmatch(err.Error()); code != nil {
			return failedBy(subCodes[code[1]])
		}
		return failure
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject), ldap.IsErrorWithCode(err, ldap.ErrorEmptyPassword):
		return failure
	case ldap.IsErrorWithCode(err, ldap.LDAPResultReferral), errors.Is(err, errReferral):
		return CheckResult{Result: "ERROR", Code: referralFailed}
	case !outOfTime(ctx) && errors.As(err, &dialing) && dialing.Op == "dial":
		return CheckResult{Result: "ERROR", Code: serverUnreachable}
	case outOfTime(ctx), ldap.IsErrorWithCode(err, ldap.LDAPResultTimeLimitExceeded), ldap.IsErrorWithCode(err, ldap.LDAPResultBusy):
		return CheckResult{Result: "ERROR", Code: serverSlow}
	case isBroken(err), ldap.IsErrorWithCode(err, ldap.LDAPResultUnavailable):
		return CheckResult{Result: "ERROR", Code: serverUnreachable}
	}
	return CheckResult{Result: "ERROR", Code: answerInvalid}
}
