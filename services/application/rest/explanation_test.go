package rest_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/application/applicationtest"
)

// explained returns the answer to a login attempt with explain=true, whose value has no password.
func (e *entry) explained(t *testing.T, email string, store object) answer {
	t.Helper()
	body := object{"type": "basic", "value": value(email, "")}
	if store != nil {
		body["accountStore"] = store
	}
	return e.want(t, 200, "POST", e.shop+"/loginAttempts?explain=true", body)
}

// member reads a member of an answer, at any depth.
func member(o object, path ...string) any {
	var v any = map[string]any(o)
	for _, name := range path {
		inner, _ := v.(map[string]any)
		v = inner[name]
	}
	return v
}

func TestAnExplainedLogin(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	bank, empty, closed := e.organization(t, "bank"), e.organization(t, "empty"), e.organization(t, "closed")
	staff, gone, vault := e.directory(t, "Staff"), e.directory(t, "Gone"), e.directory(t, "Vault")
	tellers := e.group(t, staff, "Tellers")
	e.mapping(t, e.shop, empty, object{"listIndex": 0})
	e.mapping(t, e.shop, bank, object{"listIndex": 1})
	e.mapping(t, e.shop, gone, object{"listIndex": 2})
	e.mapping(t, e.shop, closed, nil)
	e.organizationMapping(t, bank, tellers, nil)
	e.organizationMapping(t, bank, e.away, nil)
	e.organizationMapping(t, closed, vault, nil)
	e.update(t, closed, object{"status": "DISABLED"})
	if _, err := e.Directories.DeleteDirectory(t.Context(), e.ref(t, gone)); err != nil {
		t.Fatal(err)
	}
	jo, teller, shut := e.person(t, e.away, "jo@example.test"), e.person(t, staff, "teller@example.test"),
		e.person(t, vault, "shut@example.test")
	e.join(t, idOf(t, teller), tellers)
	idle := e.person(t, e.away, "idle@example.test")
	e.Directories.Change(t, e.ref(t, idle), directoryapi.NewAccount{Status: field.Some(directoryapi.Disabled)})

	for name, login := range map[string]string{
		"explanation": "jo@example.test", "explanation-unknown": "nobody@example.test",
		"explanation-refused-after-password": "shut@example.test", "explanation-group": "teller@example.test",
	} {
		t.Run(name, func(t *testing.T) { e.explained(t, login, nil).Golden(name) })
	}
	t.Run("explanation-organization", func(t *testing.T) {
		e.explained(t, "jo@example.test", object{"nameKey": "BANK"}).Golden("explanation-organization")
	})

	for _, c := range []struct {
		what, login         string
		store               object
		code, afterPassword any // null: none
		account             any
	}{
		{"let in", "jo@example.test", nil, nil, nil, jo},
		{"an unknown login", "nobody@example.test", nil, 7104.0, nil, nil},
		{"a disabled account", "idle@example.test", nil, nil, 7101.0, idle},
		{"behind a disabled organization", "shut@example.test", nil, nil, 7107.0, shut},
		{"a disabled organization by its key", "shut@example.test", object{"nameKey": "closed"}, 7107.0, nil, nil},
		{"an organization without stores", "jo@example.test", object{"nameKey": "empty"}, 4605.0, nil, nil},
		{"a store that is not mapped", "jo@example.test", link(staff), 5114.0, nil, nil},
		{"a store without the login", "jo@example.test", link(e.home), 7104.0, nil, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			got := e.explained(t, c.login, c.store).object(t)
			if member(got, "decision", "refusal", "code") != c.code ||
				member(got, "decision", "refusalAfterPassword", "code") != c.afterPassword ||
				member(got, "decision", "account", "href") != c.account ||
				member(got, "decision", "passwordCompared") != (c.code == nil) ||
				member(got, "decision", "passwordWouldBeCompared") != (c.code == nil) {
				t.Errorf("the decision is %v", got["decision"])
			}
			attempt := e.attempt(c.login, c.store)
			if code := c.code; code != nil || c.afterPassword != nil {
				if code == nil {
					code = c.afterPassword
				}
				refused := e.refused(t, 400, int(code.(float64)), "POST", e.shop+"/loginAttempts", attempt)
				said := member(got, "decision", "refusal")
				if c.code == nil {
					said = member(got, "decision", "refusalAfterPassword")
				}
				for _, name := range []string{"status", "message", "developerMessage"} {
					if want := refused[name]; said.(map[string]any)[name] != want {
						t.Errorf("its %s is %v, that of the attempt %v", name, said.(map[string]any)[name], want)
					}
				}
				return
			}
			e.want(t, 200, "POST", e.shop+"/loginAttempts", attempt)
		})
	}
	t.Run("a disabled application", func(t *testing.T) {
		e.update(t, e.shop, object{"status": "DISABLED"})
		got := e.explained(t, "jo@example.test", link(staff)).object(t)
		if member(got, "decision", "refusal", "code") != 7104.0 || len(got["accountStores"].([]any)) != 0 {
			t.Errorf("the explanation is %v", got)
		}
		e.update(t, e.shop, object{"status": "ENABLED"})
	})
	t.Run("an application without stores", func(t *testing.T) {
		bare := *e
		bare.shop = e.application(t, "Bare")
		if got := bare.explained(t, "jo@example.test", nil).object(t); member(got, "decision", "refusal", "code") != 5105.0 {
			t.Errorf("the explanation is %v", got)
		}
	})
}

// An administrator reads why a login is refused, needs no password for it, and lifts the lockout.
func TestAnExplainedLockout(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	jo := e.person(t, e.away, "jo@example.test")
	for range applicationtest.Config.Throttle.Pair.Failures {
		e.refused(t, 400, 7100, "POST", e.shop+"/loginAttempts", object{"type": "basic", "value": value("jo@example.test", "Wrong1234")})
	}
	bare := base64.StdEncoding.EncodeToString([]byte("jo@example.test"))
	explain := func() object {
		t.Helper()
		return e.want(t, 200, "POST", e.shop+"/loginAttempts?explain=true", object{"type": "basic", "value": bare}).object(t)
	}
	got := explain()
	if member(got, "throttle", "limit") == nil || member(got, "throttle", "until") == nil || len(member(got, "throttle", "counters").([]any)) == 0 ||
		member(got, "decision", "refusal", "code") != 429.0 || member(got, "decision", "passwordWouldBeCompared") != false ||
		member(got, "decision", "account", "href") != jo {
		t.Errorf("of an account that is locked out it is %v", got)
	}
	e.want(t, 204, "DELETE", jo+"/lockout", nil)
	e.refused(t, 400, 2006, "POST", e.shop+"/loginAttempts", object{"type": "basic", "value": bare}) // an attempt needs a password
	if got = explain(); member(got, "throttle", "limit") != nil || member(got, "decision", "passwordWouldBeCompared") != true {
		t.Errorf("after the lockout was lifted it is %v", got)
	}
}

func TestExplainedLinks(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	explain := func(t *testing.T, email string) object {
		t.Helper()
		return object(e.explained(t, email, nil).object(t)["linking"].(map[string]any))
	}
	want := func(t *testing.T, email, outcome string, account, code any) {
		t.Helper()
		got := explain(t, email)
		if got["outcome"] != outcome || member(got, "account", "href") != account || member(got, "refusal", "code") != code ||
			got["reason"] == "" {
			t.Errorf("the step of the account store is %v, want %s, %v, %v", got, outcome, account, code)
		}
	}
	linkedEmail, matched, copied, refused := e.email(), e.email(), e.email(), e.email()
	from, to := e.person(t, e.away, linkedEmail), e.person(t, e.home, e.email())
	e.link(t, from, to)
	e.person(t, e.away, matched)
	match := e.person(t, e.home, matched)
	origin := e.person(t, e.away, copied)
	disabled := e.person(t, e.home, refused)
	e.person(t, e.away, refused)
	e.Directories.Change(t, e.ref(t, disabled), directoryapi.NewAccount{Status: field.Some(directoryapi.Disabled)})

	t.Run("under a disabled policy", func(t *testing.T) { want(t, linkedEmail, "UNCHANGED", from, nil) })
	e.set(t, e.policy, true, true, true)
	t.Run("a link that is there", func(t *testing.T) { want(t, linkedEmail, "FOLLOWED", to, nil) })
	t.Run("a link that would be made", func(t *testing.T) { want(t, matched, "LINKED", match, nil) })
	t.Run("a copy that would be made", func(t *testing.T) { want(t, copied, "PROVISIONED", nil, nil) })
	t.Run("a link to who may not log in", func(t *testing.T) { want(t, refused, "REFUSED", nil, 7101.0) })
	t.Run("a login that is refused before", func(t *testing.T) { want(t, "nobody@example.test", "NOT_REACHED", nil, nil) })
	t.Run("makes nothing", func(t *testing.T) {
		e.set(t, e.policy, true, false, false)
		if got := e.login(t, copied, nil); got != origin {
			t.Errorf("%s logged in, want %s: there is a copy", got, origin)
		}
	})
	t.Run("a copy that is there has no password", func(t *testing.T) {
		e.set(t, e.policy, true, true, true)
		made := e.login(t, copied, nil)
		got := e.explained(t, copied, link(e.home)).object(t)
		if member(got, "decision", "account", "href") != made ||
			member(got, "decision", "refusalAfterPassword", "code") != 7100.0 {
			t.Errorf("the decision is %v", got["decision"])
		}
		want(t, copied, "FOLLOWED", made, nil)
	})
}

func TestAnExplanationIsRefusedAsTheAttempt(t *testing.T) {
	t.Parallel()
	e := newEntry(t, open(t))
	e.person(t, e.away, "jo@example.test")
	right := e.attempt("jo@example.test", nil)
	for what, body := range map[string]any{
		"no Base64":               object{"type": "basic", "value": "%%%"},
		"no UTF-8":                object{"type": "basic", "value": base64.StdEncoding.EncodeToString([]byte("jo:\xff"))},
		"another type":            object{"type": "digest", "value": right["value"]},
		"no type":                 object{"value": right["value"]},
		"no value":                object{"type": "basic"},
		"an unknown property":     object{"type": "basic", "value": right["value"], "explain": true},
		"a store that never was":  e.attempt("jo@example.test", link(applicationtest.Base.To("directories", e.NewID()))),
		"a store without a name":  e.attempt("jo@example.test", object{}),
		"an unknown organization": e.attempt("jo@example.test", object{"nameKey": "nobody"}),
		"no object":               `7`,
	} {
		t.Run(what, func(t *testing.T) {
			attempt, explain := e.send(t, "POST", e.shop+"/loginAttempts", body),
				e.send(t, "POST", e.shop+"/loginAttempts?explain=true", body)
			if attempt.status != 400 || explain.status != 400 || attempt.object(t)["code"] != explain.object(t)["code"] {
				t.Errorf("the attempt returned %s, the explanation %s", attempt.body, explain.body)
			}
		})
	}
	t.Run("a parameter that is neither true nor false", func(t *testing.T) {
		e.refused(t, 400, 2103, "POST", e.shop+"/loginAttempts?explain=yes", right)
	})
	t.Run("an attempt that is not to be explained", func(t *testing.T) {
		for _, path := range []string{"?explain=false", "?explain=FALSE", ""} {
			if got := e.want(t, 200, "POST", e.shop+"/loginAttempts"+path, right).object(t); got["account"] == nil {
				t.Errorf("the login attempt is %v", got)
			}
		}
	})
	t.Run("an application that never was", func(t *testing.T) {
		e.refused(t, 404, 404, "POST", applicationtest.Base.To("applications", e.NewID())+"/loginAttempts?explain=true",
			right)
	})
	t.Run("no password is checked", func(t *testing.T) {
		e.Directories.Break("Authenticate", fault.Before, func() error { return errors.New("a password is compared") })
		e.explained(t, "jo@example.test", nil)
	})
}
