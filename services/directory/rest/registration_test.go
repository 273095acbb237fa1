package rest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/rest/resttest"
)

// verifying returns a directory whose registrations must be verified.
func (b *bench) verifying() string {
	b.Helper()
	staff := b.directory("Staff")
	policy := strings.Replace(staff, "directories", "accountCreationPolicies", 1)
	b.Get(policy).Want(200).Golden("creation_policy")
	b.Post(policy, `{"verificationEmailStatus":"enabled"}`).Want(200).Golden("creation_policy_updated")
	return staff
}

func TestVerification(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.verifying()
	made := b.Post(staff+"/accounts", jo).Want(201).Golden("account_unverified")
	token := made.Href("emailVerificationToken")
	b.Get(token).WantError(405, 1100)
	var group sync.WaitGroup
	answers := make(chan resttest.Answer, 50)
	for range cap(answers) {
		group.Go(func() { answers <- b.Post(token, "") })
	}
	group.Wait()
	close(answers)
	count := map[int]int{}
	for answer := range answers {
		if count[answer.Status]++; answer.Status == 200 {
			answer.Golden("email_verified")
		}
	}
	if count[200] != 1 || count[404] != 49 {
		t.Fatalf("answers by status: %v; want one 200 and the rest 404", count)
	}
	b.Get(made.Href()).Want(200).Golden("account_verified")
}

func TestAVerificationTokenExpires(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := b.Post(b.verifying()+"/accounts", jo).Want(201).Href("emailVerificationToken")
	b.clock.Move(7*24*time.Hour + time.Millisecond)
	b.Post(token, "").Want(404).Golden("email_verification_refused")
}

func TestAChangedEmailEndsItsVerification(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	made := b.Post(b.verifying()+"/accounts", jo).Want(201)
	b.Post(made.Href(), `{"givenName":"Joanna"}`).Want(200)
	b.Post(made.Href(), `{"email":"other@example.test"}`).Want(200)
	b.Post(made.Href("emailVerificationToken"), "").WantError(404, 404)
}

func TestRegistrationStates(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.verifying()
	for i, c := range []struct{ body, query, status string }{
		{``, ``, "UNVERIFIED"},
		{`,"status":"ENABLED"`, ``, "UNVERIFIED"},
		{`,"status":"DISABLED"`, ``, "DISABLED"},
		{`,"status":"UNVERIFIED"`, ``, "UNVERIFIED"},
		{``, `?registrationWorkflowEnabled=false`, "ENABLED"},
		{``, `?registrationworkflowenabled=False`, "ENABLED"},
		{`,"status":"UNVERIFIED"`, `?registrationWorkflowEnabled=false`, "UNVERIFIED"},
	} {
		made := b.Post(staff+"/accounts"+c.query,
			fmt.Sprintf(`{"email":"a%d@example.test","password":"Changeme1!"%s}`, i, c.body)).Want(201)
		if made.Text("status") != c.status {
			t.Errorf("%s with %q is %s, want %s", c.body, c.query, made.Text("status"), c.status)
		}
		wantToken := c.query == "" && c.status == "UNVERIFIED"
		if hasToken := made.Object()["emailVerificationToken"] != nil; hasToken != wantToken {
			t.Errorf("%s with %q has a token: %v", c.body, c.query, hasToken)
		}
	}
}

func TestEmailDomains(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	policy := strings.Replace(staff, "directories", "accountCreationPolicies", 1)
	b.Post(
		policy, `{"emailDomainWhitelist":["*example.test","*.other.test"],"emailDomainBlacklist":["bad.example.test"]}`).Want(
		200)
	for domain, code := range map[string]int{
		"example.test": 0, "sub.example.test": 0, "myexample.test": 0, "a.other.test": 0,
		"other.test": 7206, "example.test.evil.test": 7206, "BAD.example.test": 7205,
	} {
		answer := b.Post(staff+"/accounts", fmt.Sprintf(`{"email":"jo@%s","password":"Changeme1!"}`, domain))
		if code == 0 {
			account := answer.Want(201).Href()
			b.Post(account, `{"email":"jo2@bad.example.test"}`).WantError(400, 7205)
			continue
		}
		answer.WantError(400, code)
	}
	b.Post(policy, `{"emailDomainWhitelist":"example.test"}`).WantError(400, 2004)
	refused := b.Post(policy, `{"emailDomainWhitelist":["a b"]}`).WantError(400, 2004).Text("message")
	if want := `"a b" cannot be listed. It is not a valid domain.`; refused != want {
		t.Errorf("an entry that is no domain is refused with %q, want %q", refused, want)
	}
	b.Post(policy, `{"emailDomainWhitelist":[]}`).Want(200)
	b.Post(staff+"/accounts", `{"email":"jo@other.test","password":"Changeme1!"}`).Want(201)
}
