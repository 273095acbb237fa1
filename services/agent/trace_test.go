package agent

import (
	"testing"

	"github.com/go-ldap/ldap/v3"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/doorward/doorward/pkg/secure"
)

// The check of a password, the search for its entry and the bind are spans of the
// trace of the login, which comes with the check.
func TestACheckIsPartOfTheTraceOfItsLogin(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	before := otel.GetTracerProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSyncer(spans)))
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Cleanup(func() { otel.SetTracerProvider(before) })

	_, server := start(t, personEntry(1, "20260101000000Z"))
	m := mirrorOf(t, newPeer(t), corp(server), Config{})
	login := map[string]string{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	if got := m.checkPassword(t.Context(), Check{ExternalID: uuid(1), Password: "right", Trace: login}); got != success {
		t.Fatalf("the check of the password returned %+v", got)
	}
	parents, ids := map[string]string{}, map[string]string{}
	for _, span := range spans.GetSpans() {
		if got := span.SpanContext.TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of the trace %s", span.Name, got)
		}
		parents[span.Name], ids[span.Name] = span.Parent.SpanID().String(), span.SpanContext.SpanID().String()
	}
	if parents["agent.Check"] != "b7ad6b7169203331" || parents["ldap.Search"] != ids["agent.Check"] || parents["ldap.Bind"] != ids["agent.Check"] ||
		len(ids) != 3 {
		t.Errorf("the spans %v have the parents %v", ids, parents)
	}
}

// What the agent answers by what the directory server does.
func TestChecks(t *testing.T) {
	_, server := start(t, personEntry(1, "20260101000000Z"))
	server.Bind = func(dn, password string) (uint16, string) {
		switch {
		case dn == "cn=agent":
			return ldap.LDAPResultSuccess, ""
		case password == "referred":
			return ldap.LDAPResultReferral, ""
		case password == "locked":
			return ldap.LDAPResultInvalidCredentials, "80090308: LdapErr: DSID-0C090569, comment: AcceptSecurityContext error, data 775, v4563"
		case password != "right" || dn != "uid=user1,dc=corp":
			return ldap.LDAPResultInvalidCredentials, ""
		}
		return ldap.LDAPResultSuccess, ""
	}
	m := mirrorOf(t, newPeer(t), corp(server), Config{})
	check := func(what string, c Check, want CheckResult) {
		t.Helper()
		if got := m.checkPassword(t.Context(), c); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("the right password", Check{ExternalID: uuid(1), Password: "right"}, success)
	check("a wrong one", Check{ExternalID: uuid(1), Password: "wrong"}, failure)
	check("one of a locked user", Check{ExternalID: uuid(1), Password: "locked"}, failureWithReason("LOCKED"))
	check("an entry that is gone", Check{ExternalID: uuid(2), Password: "right"}, failure)
	check("a referral", Check{ExternalID: uuid(1), Password: "referred"}, CheckResult{Result: "ERROR", Code: 9006})
	binds := server.Binds.Load()
	check("no password", Check{ExternalID: uuid(1)}, failure)
	for _, attack := range []string{"*", "*)(uid=*", ")(|(uid=*", "\x00", "uid=user1,dc=corp"} {
		check(attack+" for an id", Check{ExternalID: attack, Username: attack, Password: "right"}, failure)
	}
	if n := server.Binds.Load() - binds; n != 0 {
		t.Errorf("%d binds without a password or an account", n)
	}
	for _, attack := range []secure.Secret{"*", "\x00", "right\x00", ")(uid=*"} {
		check("an attack for a password", Check{ExternalID: uuid(1), Password: attack}, failure)
	}
	server.Stop()
	check("a server that is away", Check{ExternalID: uuid(1), Password: "right"}, CheckResult{Result: "ERROR", Code: 9001})
}

// A server that does not answer within 5 s.
func TestASlowServer(t *testing.T) {
	_, server := start(t, personEntry(1, "20260101000000Z"))
	waiting := make(chan struct{})
	server.Searched = func() bool { <-waiting; return false }
	m := mirrorOf(t, newPeer(t), corp(server), Config{})
	got := m.checkPassword(t.Context(), Check{ExternalID: uuid(1), Password: "right"})
	close(waiting)
	if want := (CheckResult{Result: "ERROR", Code: 9003}); got != want {
		t.Errorf("the check is %+v, want %+v", got, want)
	}
}
