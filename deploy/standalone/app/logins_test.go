package app

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/env"
)

func TestHowFarBackLoginsAreRead(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "24h": 24 * time.Hour, "30d": maxSince, "1d": 24 * time.Hour} {
		if got, err := parseSince(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "31d", "721h", "0h", "-1h", "d", "a day"} {
		if _, err := parseSince(text); !errors.Is(err, ErrUsage) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func failedLoginsAreFoundAndExplained(p *product) {
	application := p.verifying()
	const email = "locked@example.test"
	p.send("POST", application+"/accounts", `{"email":"`+email+`","password":"Changeme1!","status":"ENABLED"}`, 201)
	_, header := p.send("GET", "/tenants/current", "", 302)
	tenant, _ := p.send("GET", header.Get("Location"), "", 200)
	key, _ := tenant["key"].(string)
	attempt := `{"type":"basic","value":"` + base64.StdEncoding.EncodeToString([]byte(email+":Wrong1234!")) + `"}`
	for range 20 {
		p.send("POST", application+"/loginAttempts", attempt, 400)
	}
	p.send("POST", application+"/loginAttempts", attempt, 429)
	source := func() *env.Source {
		return env.New([]string{"DOORWARD_DATA_DIR=" + p.dir, "PATH=" + os.Getenv("PATH")})
	}

	named, _ := p.send("GET", strings.TrimPrefix(application, p.key.BaseURL), "", 200)
	name, _ := named["name"].(string)

	var lines []loginLine
	for deadline := time.Now().Add(30 * time.Second); len(lines) < 21; { // until the worker has recorded them
		var out bytes.Buffer
		if err := Logins(p.Context(), source(), key, strings.ToUpper(email), "1h", true, &out); err != nil {
			p.Fatal(err)
		}
		if err := json.Unmarshal(out.Bytes(), &lines); err != nil {
			p.Fatal(err)
		}
		if time.Now().After(deadline) {
			p.Fatalf("timeout: waited for 21 failed logins, found %d", len(lines))
		}
	}
	limits := 0
	for _, line := range lines {
		if line.Limit != nil && *line.Limit == "LOGIN_AND_ADDRESS" && line.Until != nil && line.Code == 429 {
			limits++
		}
		if line.RequestID == "" || line.Application != name || line.Directory == "" || len(line.Directory) == len(line.Account) {
			p.Errorf("a failed login is %+v, want it at the application %q", line, name)
		}
	}
	if limits != 1 {
		p.Errorf("%d of the failed logins were refused by the limit", limits)
	}
	var text bytes.Buffer
	if err := Logins(p.Context(), source(), key, email, "1h", false, &text); err != nil || strings.Count(text.String(), "\n") != len(lines) ||
		!strings.Contains(text.String(), " 429 LOGIN_AND_ADDRESS ") || !strings.Contains(text.String(), " 7100 - - "+word(name)+" ") {
		p.Errorf("the lines are, %v,\n%s", err, text.String())
	}
	for what, err := range map[string]error{
		"of an unknown login name": Logins(p.Context(), source(), key, "nobody@example.test", "1h", false, &text),
		"of an unknown tenant":     Logins(p.Context(), source(), "no-tenant", email, "1h", false, &text),
	} {
		if err == nil || errors.Is(err, ErrUsage) {
			p.Errorf("the failed logins %s: %v", what, err)
		}
	}

	explain := func(login string, asJSON bool) (string, error) {
		var out bytes.Buffer
		id := application[strings.LastIndexByte(application, '/')+1:]
		err := Explain(p.Context(), source(), key, id, login, asJSON, &out)
		return out.String(), err
	}
	if said, err := explain(email, false); !errors.Is(err, ErrWouldRefuse) || !strings.Contains(said, "counter LOGIN_AND_ADDRESS: 20 of 20 failed until ") ||
		!strings.Contains(said, "\nwould refuse: 429 ") {
		p.Errorf("of a login that is locked out, %v:\n%s", err, said)
	}
	if said, err := explain("nobody@example.test", false); !errors.Is(err, ErrWouldRefuse) || !strings.Contains(said, "would refuse: 7104 ") {
		p.Errorf("of an unknown login, %v:\n%s", err, said)
	}
	account := lines[0].Account
	p.send("DELETE", "/accounts/"+account+"/lockout", "", 204)
	if said, err := explain(email, false); err != nil || !strings.HasSuffix(said, "\nwould compare the password\n") {
		p.Errorf("after the lockout was lifted, %v:\n%s", err, said)
	}
	said, err := explain(email, true)
	var explained struct {
		Decision struct{ PasswordWouldBeCompared bool }
	}
	if err := errors.Join(err, json.Unmarshal([]byte(said), &explained)); err != nil || !explained.Decision.PasswordWouldBeCompared {
		p.Errorf("as JSON, %v:\n%s", err, said)
	}
}
