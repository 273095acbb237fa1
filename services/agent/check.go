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

// checkTimeout is the time that the directory server has for one check.
const checkTimeout = 5 * time.Second

// Codes of checks that failed for technical reasons (docs/interface/connectors.md#delegated-logins).
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

func failureWithReason(reason string) CheckResult {
	return CheckResult{Result: "FAILURE", Reason: reason}
}

// checkPassword checks a password at the directory server: it finds the entry of the account by
// its id and binds as that entry (LDAP bind, delegated authentication).
func (s *server) checkPassword(ctx context.Context, c Check) CheckResult {
	ctx = telemetry.ExtractTrace(ctx, propagation.MapCarrier(c.Trace))
	ctx, span := telemetry.Span(ctx, "agent.Check")
	defer span.End()
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if c.Password == "" { // an LDAP bind without a password (unauthenticated bind) succeeds for anybody
		return failure
	}
	dn, err := s.findDN(ctx, c)
	if err == nil && dn == "" {
		return failure
	}
	if err == nil {
		err = s.bindAs(ctx, dn, c.Password.Reveal())
	}
	result := checkResult(ctx, err)
	if result.Result == "ERROR" {
		slog.WarnContext(ctx, "checking a password at the directory server failed", "code", result.Code, "error",
			err.Error())
	}
	return result
}

// findDN returns the distinguished name of the entry of an account; empty where there is none. The
// filter has only the id of the entry, so that no text of a user gets into it (LDAP injection).
func (s *server) findDN(ctx context.Context, c Check) (string, error) {
	ctx, span := telemetry.Span(ctx, "ldap.Search")
	defer span.End()
	e, err := parseID(c.ExternalID)
	if err != nil {
		return "", nil // the id is none that this agent has sent
	}
	filter := "(&" + s.settings.accountFilter() + s.settings.idFilter(e) + ")"
	result, err := s.search(ctx, ldap.NewSearchRequest(s.settings.accountBase(), ldap.ScopeWholeSubtree,
		ldap.NeverDerefAliases, 2,
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

// loginRefusedError is a login that the directory server refused for another reason than a wrong
// password: password expired, account locked (lockout) or disabled.
type loginRefusedError struct {
	reason string
	cause  error
}

func (r *loginRefusedError) Error() string { return r.cause.Error() }

// passwordPolicyError returns the error for a code of the password policy control of LDAP
// (draft-behera-ldap-password-policy): password expired, must be changed, or account locked.
func passwordPolicyError(code int8, cause error) error {
	switch code {
	case ldap.BeheraPasswordExpired, ldap.BeheraChangeAfterReset:
		return &loginRefusedError{"EXPIRED", cause}
	case ldap.BeheraAccountLocked:
		return &loginRefusedError{"LOCKED", cause}
	}
	return cause
}

// adSubCode is the code in the message of Active Directory for a refused login.
var adSubCode = regexp.MustCompile(`\bdata ([0-9a-f]{3,4})\b`)

// adSubCodes are the reasons of a login that Active Directory refused, other than a wrong
// password: password expired (532) or to be changed (773), account locked (775), disabled (533) or
// expired (701), not at this time (530) or from here (531).
var adSubCodes = map[string]string{
	"532": "EXPIRED", "773": "EXPIRED", "775": "LOCKED", "533": "DISABLED", "701": "DISABLED", "530": "DISABLED",
	"531": "DISABLED",
}

// isTimedOut reports whether the time of a check is over. Connections have the same deadline as
// the context, and may time out a little earlier.
func isTimedOut(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < checkTimeout/20
}

// checkResult returns the result of a check for the error of its search or bind.
func checkResult(ctx context.Context, err error) CheckResult {
	var refusal *loginRefusedError
	var dialing *net.OpError
	switch {
	case err == nil:
		return success
	case errors.As(err, &refusal):
		return failureWithReason(refusal.reason)
	case ldap.IsErrorWithCode(err, ldap.LDAPResultInvalidCredentials):
		if code := adSubCode.FindStringSubmatch(err.Error()); code != nil {
			return failureWithReason(adSubCodes[code[1]])
		}
		return failure
	case ldap.IsErrorWithCode(err, ldap.LDAPResultNoSuchObject), ldap.IsErrorWithCode(err, ldap.ErrorEmptyPassword):
		return failure
	case ldap.IsErrorWithCode(err, ldap.LDAPResultReferral), errors.Is(err, errReferral):
		return CheckResult{Result: "ERROR", Code: referralFailed}
	case !isTimedOut(ctx) && errors.As(err, &dialing) && dialing.Op == "dial":
		return CheckResult{Result: "ERROR", Code: serverUnreachable}
	case isTimedOut(ctx), ldap.IsErrorWithCode(err, ldap.LDAPResultTimeLimitExceeded),
		ldap.IsErrorWithCode(err, ldap.LDAPResultBusy):
		return CheckResult{Result: "ERROR", Code: serverSlow}
	case isBroken(err), ldap.IsErrorWithCode(err, ldap.LDAPResultUnavailable):
		return CheckResult{Result: "ERROR", Code: serverUnreachable}
	}
	return CheckResult{Result: "ERROR", Code: answerInvalid}
}
