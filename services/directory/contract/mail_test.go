package contract_test

import (
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
)

func mails(t *testing.T, s subject) {
	n, other := newTenant(t, s), newTenant(t, s)
	d := n.directory(t, "People")
	account := n.account(t, d, "jo@example.test")
	mail := func(workflow directoryapi.Workflow) directoryapi.MailOf {
		return directoryapi.MailOf{Tenant: n.id, Account: account.ID, Workflow: workflow}
	}

	t.Run("a workflow that is on has a template", func(t *testing.T) {
		made := must(s.API.Mail(t.Context(), mail(directoryapi.Reset)))(t)
		wantEqual(t, "the account", made.Account.ID, account.ID)
		wantEqual(t, "the directory", made.Directory.ID, d)
		wantEqual(t, "the workflow", made.Template.Workflow, directoryapi.Reset)
		wantEqual(t, "the directory of the template", made.Template.DirectoryID, d)
		if made.Template.Subject == "" || !strings.Contains(made.Template.TextBody, "{url}") ||
			!strings.Contains(made.Template.HTMLBody, "{url}") {
			t.Errorf("the template lacks its subject or its link: %+v", made.Template)
		}
	})
	t.Run("a workflow that is off", func(t *testing.T) {
		wantError(s.API.Mail(t.Context(), mail(directoryapi.Verification)))(t, apierr.NotFound)
		wantError(s.API.Mail(t.Context(), mail(directoryapi.Welcome)))(t, apierr.NotFound)
	})
	t.Run("a workflow that was turned on", func(t *testing.T) {
		s.EnableVerification(t, n.ref(d))
		got := must(s.API.Mail(t.Context(), mail(directoryapi.Verification)))(t)
		wantEqual(t, "the workflow", got.Template.Workflow, directoryapi.Verification)
	})
	t.Run("a workflow that does not exist", func(t *testing.T) {
		wantError(s.API.Mail(t.Context(), mail("birthday")))(t, apierr.NotFound)
	})
	t.Run("an account that is gone", func(t *testing.T) {
		wantError(s.API.Mail(t.Context(),
			directoryapi.MailOf{Tenant: n.id, Account: NewID(), Workflow: directoryapi.Reset}))(t, apierr.NotFound)
	})
	t.Run("an account of another tenant", func(t *testing.T) {
		wantError(s.API.Mail(t.Context(),
			directoryapi.MailOf{Tenant: other.id, Account: account.ID, Workflow: directoryapi.Reset}))(t,
			apierr.NotFound)
	})
}
