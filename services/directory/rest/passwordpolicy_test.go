package rest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
)

// passwordPolicy is the address of the password policy of a directory.
func passwordPolicy(directory string) string {
	return strings.Replace(directory, "/directories/", "/passwordPolicies/", 1)
}

func TestPasswordPolicy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := b.Get(b.directory("Staff")).Want(200).Href("passwordPolicy")
	read := b.Get(policy).Want(200).Golden("password_policy")
	b.clock.Move(time.Minute)
	b.Post(
		policy, `{"resetTokenTtl":"48","resetEmailStatus":"disabled","resetSuccessEmailStatus":"Disabled","strength":{"minLength":1},"tenant":{"href":"x"}}`).
		Want(200).Golden("password_policy_updated")
	b.Get(policy + "/strength").Want(200).Golden("strength_untouched")
	b.Post(policy, string(read.Body)).Want(200)
	b.Get(policy).Want(200).Golden("password_policy")
}

func TestPasswordPolicyLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	policy := passwordPolicy(b.directory("Staff"))
	for _, c := range []struct {
		body string
		code int // 0: accepted
	}{
		{`{"resetTokenTtl":0}`, 2009},
		{`{"resetTokenTtl":-1}`, 2009},
		{`{"resetTokenTtl":"0"}`, 2009},
		{`{"resetTokenTtl":1}`, 0},
		{`{"resetTokenTtl":"24"}`, 0},
		{`{"resetTokenTtl":168}`, 0},
		{`{"resetTokenTtl":169}`, 2010},
		{`{"resetTokenTtl":1.5}`, 2004},
		{`{"resetTokenTtl":"a day"}`, 2004},
		{`{"resetTokenTtl":null}`, 2000},
		{`{"resetEmailStatus":"ON"}`, 2003},
		{`{"resetEmailStatus":null}`, 2000},
		{`{"resetTokenTtl":0,"resetEmailStatus":"ON"}`, 2003}, // a value comes before a form,
		{`{"resetTokenTtl":0,"resetEmailStatus":"ON","resetSuccessEmailStatus":null}`, 2000}, // and what is required first
		{`{"resetSuccessEmailStatus":"ON"}`, 2003},
		{`{"resetSuccessEmailStatus":""}`, 2000},
		{`{"minLength":8}`, 2015},
		{`{}`, 0},
	} {
		answer := b.Post(policy, c.body)
		if c.code == 0 {
			answer.Want(200)
			continue
		}
		answer.WantError(400, c.code)
	}
	b.Delete(policy).WantError(405, 1100)
	b.Get("/v1/passwordPolicies/"+id.New(b.clock.Now()).String()).WantError(404, 404)
	b.Post("/v1/passwordPolicies/"+id.New(b.clock.Now()).String(), `{}`).WantError(404, 404)
}

func TestThePasswordPolicyOfAMirrorIsReadOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	staff := b.directory("Staff")
	policy := passwordPolicy(staff)
	account, err := id.Parse(b.Post(staff+"/accounts", jo).Want(201).Href()[len(base.To("accounts", id.ID{})):])
	if err != nil {
		t.Fatal(err)
	}
	reset := directoryapi.MailOf{Tenant: b.signedUp.Tenant.ID, Account: account, Workflow: directoryapi.Reset}
	if _, err := b.svc.Mail(t.Context(), reset); err != nil {
		t.Fatal(err)
	}
	b.mirrored(staff)
	b.Get(policy).Want(200).Golden("password_policy_of_mirror")
	b.Post(policy, `{"resetEmailStatus":"ENABLED"}`).WantError(400, 7202)
	b.Post(policy+"/strength", `{"minLength":9}`).WantError(400, 7202)
	if _, err := b.svc.Mail(t.Context(), reset); apierr.From(err).Code != apierr.NotFound.Code {
		t.Errorf("a mirror sends a reset mail: %v", err)
	}
}
