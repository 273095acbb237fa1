package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/go-ldap/ldap/v3"
)

func TestWhatAnErrorOfTheDirectoryServerMeans(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	refusal := func(code uint16, text string) error { return ldap.NewError(code, errors.New(text)) }
	activeDirectory := func(data string) error {
		return refusal(ldap.LDAPResultInvalidCredentials, "80090308: LdapErr: DSID-0C090569, comment: AcceptSecurityContext error, data "+data+", v4563")
	}
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		what string
		ctx  context.Context
		err  error
		want CheckResult
	}{
		{"a good password", t.Context(), nil, success},
		{"a wrong password", t.Context(), refusal(ldap.LDAPResultInvalidCredentials, ""), failure},
		{"a wrong password of Active Directory", t.Context(), activeDirectory("52e"), failure},
		{"an expired one", t.Context(), activeDirectory("532"), failureWithReason("EXPIRED")},
		{"one that must be changed", t.Context(), activeDirectory("773"), failureWithReason("EXPIRED")},
		{"a locked user", t.Context(), activeDirectory("775"), failureWithReason("LOCKED")},
		{"a disabled user", t.Context(), activeDirectory("533"), failureWithReason("DISABLED")},
		{"an expired user", t.Context(), activeDirectory("701"), failureWithReason("DISABLED")},
		{"an expired one of a policy", t.Context(), passwordPolicyError(ldap.BeheraPasswordExpired, errors.New("x")), failureWithReason("EXPIRED")},
		{"a locked one of a policy", t.Context(), passwordPolicyError(ldap.BeheraAccountLocked, errors.New("x")), failureWithReason("LOCKED")},
		{"an empty password", t.Context(), refusal(ldap.ErrorEmptyPassword, ""), failure},
		{"no server", t.Context(), fmt.Errorf("connect: %w", dial), CheckResult{Result: "ERROR", Code: 9001}},
		{"a connection that broke", t.Context(), refusal(ldap.ErrorNetwork, ""), CheckResult{Result: "ERROR", Code: 9001}},
		{"a server that is slow", ended, refusal(ldap.ErrorNetwork, "timed out"), CheckResult{Result: "ERROR", Code: 9003}},
		{"a server that is busy", t.Context(), refusal(ldap.LDAPResultBusy, ""), CheckResult{Result: "ERROR", Code: 9003}},
		{"a referral", t.Context(), refusal(ldap.LDAPResultReferral, ""), CheckResult{Result: "ERROR", Code: 9006}},
		{"something else", t.Context(), refusal(ldap.LDAPResultProtocolError, ""), CheckResult{Result: "ERROR", Code: 9005}},
	} {
		if got := checkResult(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}
