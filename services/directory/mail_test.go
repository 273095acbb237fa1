package directory_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/services/directory"
)

// emitted returns the types of the events in the outbox, and deletes them.
func (w world) emitted(t *testing.T) []string {
	t.Helper()
	types, err := pg.Values[string](t.Context(), w.db,
		`DELETE FROM outbox RETURNING convert_from(envelope, 'UTF8')::jsonb ->> 'type'`)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func (w world) merge(t *testing.T, data customdata.Store, owner id.ID, text string) {
	t.Helper()
	document, err := customdata.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := data.Merge(t.Context(), id.Ref{Tenant: w.tenant, ID: owner}, document); err != nil {
		t.Fatal(err)
	}
}

// reword changes the text of the template of a workflow.
func (w world) reword(t *testing.T, workflow directoryapi.Workflow, text string) {
	t.Helper()
	template, err := pg.Value[id.ID](t.Context(), w.db,
		`SELECT id FROM email_templates WHERE directory_id = $1 AND workflow = $2`, w.directory, string(workflow))
	if err == nil {
		_, err = w.UpdateTemplate(t.Context(), id.Ref{Tenant: w.tenant, ID: template},
			directory.TemplateChange{TextBody: field.Some(text)})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w world) mail(t *testing.T, workflow directoryapi.Workflow) (directoryapi.Mail, error) {
	t.Helper()
	return w.Mail(t.Context(), directoryapi.MailOf{Tenant: w.tenant, Account: w.account.ID, Workflow: workflow})
}

func TestAMailBringsTheDataThatItsTemplateNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	w.merge(t, w.CustomData().Accounts, w.account.ID, `{"plan":"gold","secret":"s3cret","limits":{"seats":1}}`)
	w.merge(t, w.CustomData().Directories, w.directory, `{"phone":"+1 555","secret":"s3cret"}`)
	mail, err := w.mail(t, directoryapi.Reset)
	if err != nil || len(mail.AccountData)+len(mail.DirectoryData) > 0 {
		t.Errorf("the default template brings %v and %v, %v", mail.AccountData, mail.DirectoryData, err)
	}
	w.reword(t, directoryapi.Reset,
		"$!{url} ${account.customData.plan} $!{account.customData.limits} $!{account.customData.none} $!{account.directory.customData.phone}")
	if mail, err = w.mail(t, directoryapi.Reset); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(mail.AccountData, map[string]string{"plan": "gold"}) ||
		!maps.Equal(mail.DirectoryData, map[string]string{"phone": "+1 555"}) {
		t.Errorf("the mail brings %v and %v", mail.AccountData, mail.DirectoryData)
	}
	if text, err := json.Marshal(mail); err != nil || strings.Contains(string(text), "s3cret") {
		t.Errorf("what was not named travels along: %s, %v", text, err)
	}
}

func TestAResetMailTellsTheLifetimeOfItsToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, directory.CreationPolicyChange{})
	mail, err := w.mail(t, directoryapi.Reset)
	if err != nil || mail.ResetTokenTTL != 24 {
		t.Fatalf("the lifetime is %d, %v", mail.ResetTokenTTL, err)
	}
	for _, body := range []string{mail.Template.TextBody, mail.Template.HTMLBody} {
		if !strings.Contains(body, "$!{passwordPolicy.resetTokenLifetime}") || strings.Contains(body, "24") {
			t.Errorf("the default mail says %s", body)
		}
	}
	if _, err := w.UpdatePasswordPolicy(t.Context(), id.Ref{Tenant: w.tenant, ID: w.directory},
		directory.PasswordPolicyChange{ResetTokenTTL: field.Some(3)}); err != nil {
		t.Fatal(err)
	}
	if mail, err = w.mail(t, directoryapi.Reset); err != nil || mail.ResetTokenTTL != 3 {
		t.Errorf("the lifetime is %d, %v", mail.ResetTokenTTL, err)
	}
	if mail, err = w.mail(t, directoryapi.ResetSuccess); err != nil || mail.ResetTokenTTL != 0 {
		t.Errorf("a mail without a link names %d hours, %v", mail.ResetTokenTTL, err)
	}
}

// Every row of the interface's table of events that ends in a mail: the event is
// there and the mail may go out while the workflow is on, and neither while it is
// off; a mirror has no workflows.
func TestEventsAndTheirMails(t *testing.T) {
	t.Parallel()
	on, off := field.Some("ENABLED"), field.Some("DISABLED")
	register := func(t *testing.T, w *world, workflow bool) {
		t.Helper()
		var err error
		w.account, err = w.CreateAccount(t.Context(), directoryapi.CreateAccount{
			Tenant: w.tenant, ID: id.New(now()), Directory: w.directory, Workflow: workflow,
			Account: directoryapi.NewAccount{Email: field.Some("new@example.test"), Password: field.Some(password)},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	login := func(w *world) []directoryapi.Store {
		return []directoryapi.Store{{Kind: directoryapi.Directories, ID: w.directory}}
	}
	verify := func(t *testing.T, w *world) {
		t.Helper()
		register(t, w, true)
		w.emitted(t)
		if w.account.VerificationToken == "" {
			return
		}
		if _, err := w.VerifyEmail(t.Context(),
			directoryapi.VerifyEmail{Tenant: w.tenant, Token: w.account.VerificationToken}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(t *testing.T, w *world) {
		t.Helper()
		_, err := w.RequestReset(t.Context(), directoryapi.RequestReset{Tenant: w.tenant, Stores: login(w), Login: "jo"})
		if err != nil {
			t.Fatal(err)
		}
	}
	spend := func(t *testing.T, w *world) {
		t.Helper()
		reset, err := w.RequestReset(t.Context(), directoryapi.RequestReset{Tenant: w.tenant, Stores: login(w), Login: "jo"})
		if err != nil {
			t.Fatal(err)
		}
		w.emitted(t)
		if _, err := w.ResetPassword(t.Context(),
			directoryapi.ResetPassword{
				ResetToken: directoryapi.ResetToken{Tenant: w.tenant, Token: reset.Token}, Password: field.Some("Another1!"),
			}); err != nil {
			t.Fatal(err)
		}
	}
	again := func(t *testing.T, w *world) {
		t.Helper()
		_, err := w.RequestVerification(t.Context(),
			directoryapi.RequestVerification{Tenant: w.tenant, Stores: login(w), Login: "jo"})
		if err != nil && !errors.Is(err, apierr.VerificationDisabled) {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		creation directory.CreationPolicyChange
		password directory.PasswordPolicyChange
		trigger  func(*testing.T, *world)
		event    string                  // "": none
		mails    []directoryapi.Workflow // that go out for the event
	}{
		{"registration with the verification workflow", directory.CreationPolicyChange{VerificationEmailStatus: on},
			directory.PasswordPolicyChange{},
			func(t *testing.T, w *world) { register(t, w, true) }, "AccountRegistered", []directoryapi.Workflow{directoryapi.Verification}},
		{"registration with both workflows asks for the proof first",
			directory.CreationPolicyChange{VerificationEmailStatus: on, WelcomeEmailStatus: on},
			directory.PasswordPolicyChange{},
			func(t *testing.T, w *world) { register(t, w, true) }, "AccountRegistered", []directoryapi.Workflow{directoryapi.Verification}},
		{"registration with the welcome workflow alone", directory.CreationPolicyChange{WelcomeEmailStatus: on},
			directory.PasswordPolicyChange{},
			func(t *testing.T, w *world) { register(t, w, true) }, "AccountRegistered", []directoryapi.Workflow{directoryapi.Welcome}},
		{"registration without workflows", directory.CreationPolicyChange{}, directory.PasswordPolicyChange{},
			func(t *testing.T, w *world) { register(t, w, true) }, "", nil},
		{"registration with registrationWorkflowEnabled=false",
			directory.CreationPolicyChange{VerificationEmailStatus: on, WelcomeEmailStatus: on},
			directory.PasswordPolicyChange{},
			func(t *testing.T, w *world) { register(t, w, false) }, "", nil},
		{"verification with success and welcome mails",
			directory.CreationPolicyChange{
				VerificationEmailStatus: on, VerificationSuccessEmailStatus: on, WelcomeEmailStatus: on,
			}, directory.PasswordPolicyChange{},
			verify, "AccountVerified", []directoryapi.Workflow{directoryapi.VerificationSuccess, directoryapi.Welcome}},
		{"verification with the welcome mail",
			directory.CreationPolicyChange{VerificationEmailStatus: on, WelcomeEmailStatus: on},
			directory.PasswordPolicyChange{},
			verify, "AccountVerified", []directoryapi.Workflow{directoryapi.Welcome}},
		{"verification without further mails", directory.CreationPolicyChange{VerificationEmailStatus: on},
			directory.PasswordPolicyChange{},
			verify, "AccountVerified", nil},
		{
			"a reset that is asked for", directory.CreationPolicyChange{}, directory.PasswordPolicyChange{}, ask,
			"PasswordResetRequested", []directoryapi.Workflow{directoryapi.Reset},
		},
		{
			"a reset without its workflow", directory.CreationPolicyChange{},
			directory.PasswordPolicyChange{ResetEmailStatus: off}, ask, "", nil,
		},
		{
			"a new password", directory.CreationPolicyChange{}, directory.PasswordPolicyChange{}, spend,
			"PasswordChanged PasswordReset", []directoryapi.Workflow{directoryapi.ResetSuccess},
		},
		{
			"a new password without its workflow", directory.CreationPolicyChange{},
			directory.PasswordPolicyChange{ResetSuccessEmailStatus: off}, spend, "PasswordChanged", nil,
		},
		{"a verification mail that is asked for again", directory.CreationPolicyChange{VerificationEmailStatus: on},
			directory.PasswordPolicyChange{},
			again, "VerificationRequested", []directoryapi.Workflow{directoryapi.Verification}},
		{
			"a verification mail without its workflow", directory.CreationPolicyChange{}, directory.PasswordPolicyChange{},
			again, "", nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, directory.CreationPolicyChange{})
			at := id.Ref{Tenant: w.tenant, ID: w.directory}
			if _, err := w.UpdateCreationPolicy(t.Context(), at, c.creation); err != nil {
				t.Fatal(err)
			}
			if _, err := w.UpdatePasswordPolicy(t.Context(), at, c.password); err != nil {
				t.Fatal(err)
			}
			w.emitted(t)
			c.trigger(t, &w)
			if got := strings.Join(w.emitted(t), " "); got != c.event {
				t.Errorf("the events are %q, want %q", got, c.event)
			}
			wanted := map[string][]directoryapi.Workflow{
				"AccountRegistered":      {directoryapi.Welcome},
				"AccountVerified":        {directoryapi.VerificationSuccess, directoryapi.Welcome},
				"VerificationRequested":  {directoryapi.Verification},
				"PasswordResetRequested": {directoryapi.Reset},

				"PasswordChanged PasswordReset": {directoryapi.ResetSuccess},
			}[c.event]
			if c.event == "AccountRegistered" && w.account.VerificationToken != "" {
				wanted = []directoryapi.Workflow{directoryapi.Verification} // its token travels with the event
			}
			var mails []directoryapi.Workflow
			for _, workflow := range wanted {
				if _, err := w.mail(t, workflow); err == nil {
					mails = append(mails, workflow)
				} else if !errors.Is(err, apierr.NotFound) {
					t.Fatal(err)
				}
			}
			if len(mails) != len(c.mails) {
				t.Errorf("the mails are %v, want %v", mails, c.mails)
			}
			if _, err := pg.Exec(t.Context(), w.db, `UPDATE directories SET provider_id = 'google' WHERE id = $1`,
				w.directory); err != nil {
				t.Fatal(err)
			}
			for _, workflow := range wanted {
				if _, err := w.mail(t, workflow); !errors.Is(err, apierr.NotFound) {
					t.Errorf("a mirror sends the mail %s: %v", workflow, err)
				}
			}
		})
	}
}
