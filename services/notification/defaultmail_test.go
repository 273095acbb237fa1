package notification

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/locale"
	"github.com/doorward/doorward/pkg/mailtext"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

// unchanged is a mail whose template no tenant has changed, to an account with a locale, caused by a request
// in a language; both may be empty.
func unchanged(workflow directoryapi.Workflow, tag, language string) mailContent {
	content := verification()
	content.delivery.Language, content.ResetTokenTTL = language, 24
	content.Template = directoryapi.EmailTemplate{Workflow: workflow, Unchanged: true, MimeType: "text/plain",
		Subject: "shown", TextBody: "shown $!{url}"}
	content.application, content.homeURL = text("Shop & Co"), text("https://shop.example.test/?a=1&b=2")
	if tag != "" {
		content.Account.Locale = &tag
	}
	if workflow.Page() == "" {
		content.token = ""
	}
	content.chooseTexts()
	return content
}

func TestAMailOfTheDeploymentIsInTheLanguageOfItsReader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ locale, request, want, subject, says string }{
		{"", "", "en", "Verify your account", "Hello Jo,"},
		{"de-AT", "", "de", "Bestätigen Sie Ihr Konto", "Hallo Jo,"},
		{"", "fr", "fr", "Vérifiez votre compte", "Bonjour Jo,"},
		{"es", "fr", "es", "Verifica tu cuenta", "Hola, Jo:"},
		{"uk", "ja", "ja", "アカウントの確認", "Jo 様"}, // a language that the deployment does not have
		{"uk", "", "en", "Verify your account", "Hello Jo,"},
	} {
		m := read(t, unchanged(directoryapi.Verification, c.locale, c.request))
		if m.Type != "multipart/alternative" || m.Header.Get("Content-Language") != c.want || m.Subject != c.subject {
			t.Errorf("for the locale %q and the request %q the mail is %s in %q, %q; want %q, %q", c.locale, c.request, m.Type,
				m.Header.Get("Content-Language"), m.Subject, c.want, c.subject)
		}
		if !strings.Contains(m.Text, c.says) || !strings.Contains(m.HTML, c.says) ||
			!strings.Contains(m.HTML, `<html lang="`+c.want+`"`) {
			t.Errorf("for the locale %q and the request %q the mail lacks %q:\n%s\n%s", c.locale, c.request, c.says, m.Text,
				m.HTML)
		}
	}
}

func TestAMailOfTheDeploymentHasAButtonAndItsAddressOnce(t *testing.T) {
	t.Parallel()
	const page = "https://id.example.test:8443/emailVerificationTokens?sptoken=" + string(token)
	m := read(t, unchanged(directoryapi.Verification, "", ""))
	if strings.Count(m.HTML, `href="`+page+`"`) != 2 || strings.Count(m.HTML, ">"+page+"<") != 1 ||
		strings.Count(m.Text, page) != 1 {
		t.Errorf("the mail does not have its address as a button, once in full, and in the text:\n%s\n%s", m.HTML, m.Text)
	}
	if !strings.Contains(m.HTML, "Shop &amp; Co") || !strings.Contains(m.Text, "Shop & Co") {
		t.Errorf("the mail does not name the application:\n%s\n%s", m.HTML, m.Text)
	}
	m = read(t, unchanged(directoryapi.ExistingAccount, "", ""))
	for _, want := range []string{`href="https://shop.example.test/?a=1&amp;b=2"`,
		`href="https://id.example.test:8443/passwordReset?sptoken=`, "24 hours"} {
		if !strings.Contains(m.HTML, want) {
			t.Errorf("the mail to an existing account lacks %s:\n%s", want, m.HTML)
		}
	}
}

func TestHostileTextStaysTextInAMailOfTheDeployment(t *testing.T) {
	t.Parallel()
	content := unchanged(directoryapi.ExistingAccount, "de", "")
	content.Account.GivenName = text("<b>Jo</b> https://evil.example $!{sptoken}")
	content.Account.Username = `"><script>alert(1)</script>`
	content.application = text("Shop\r\nBcc: eve@evil.example")
	m := read(t, content)
	if strings.Contains(m.HTML, "<b>") || strings.Contains(m.HTML, "<script") ||
		strings.Contains(m.HTML, "https://evil") || m.Header.Has("Bcc") {
		t.Errorf("a name became a part of the mail:\n%s", m.Raw)
	}
}

func TestMacrosAreExpandedInTheSubject(t *testing.T) {
	t.Parallel()
	content := verification()
	content.Template.Subject = "Hi $!{account.givenName}${account.none}$!{account.none}"
	if got := read(t, content).Subject; got != "Hi Jo${account.none}" {
		t.Errorf("the subject is %q", got)
	}
	content.Account.GivenName = text("Jo\r\nBcc: eve@evil.example\r\n\r\n<b>")
	m := read(t, content)
	if strings.ContainsAny(m.Subject, "\r\n") || m.Header.Has("Bcc") || !strings.HasPrefix(m.Subject, "Hi Jo") {
		t.Errorf("a name injects a header: %q", m.Raw)
	}
}

// The owner of an account hears of a second factor that somebody added or removed.
func TestAChangeOfTheSecondFactorsIsMailed(t *testing.T) {
	t.Parallel()
	for removed, want := range map[bool]string{false: "A second factor was added to your account",
		true: "A second factor was removed from your account"} {
		o := newOffice(t, mailtest.Behaviour{})
		o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
			l := verification()
			l.Template = directoryapi.EmailTemplate{Workflow: in.Workflow, Unchanged: true}
			return l.Mail, nil
		})
		s, account := o.service(), id.New(clock)
		event := events.FactorChanged{Tenant: o.tenant, Account: account, Type: "google-authenticator", Removed: removed}
		e := events.Envelope{ID: id.New(clock), Tenant: o.tenant, Subject: account, At: clock}
		for range 2 { // it may come twice
			if err := s.factorChanged(t.Context(), e, event); err != nil {
				t.Fatal(err)
			}
		}
		o.run(s)
		o.await("sent", all(store.Sent))
		mails := o.mail.Taken()
		if len(mails) != 1 || mails[0].Subject != want || !strings.Contains(mails[0].Text, "authenticator app") {
			t.Errorf("where removed is %v, the mails are %+v", removed, mails)
		}
	}
}

// The owner of a tenant hears of an API key that an operator has created: who did it, when and why, and which key.
func TestTheOwnerHearsOfAnAdministratorsKey(t *testing.T) {
	t.Parallel()
	for want, reason := range map[string]*string{
		"Reason: locked out Bcc: eve@evil.example": text("locked out\nBcc: eve@evil.example"), "Reason: -": nil,
	} {
		o := newOffice(t, mailtest.Behaviour{})
		s := o.service()
		own, _ := o.relay(s, mailtest.Behaviour{})
		account := id.New(clock)
		event := events.AdminKeyCreated{Tenant: o.tenant, Account: account, Key: "486FVJJZ", At: clock, Operator: "jo", Reason: reason}
		e := events.Envelope{ID: id.New(clock), Tenant: o.tenant, Subject: account, At: clock}
		if err := s.adminKeyCreated(t.Context(), e, event); err != nil {
			t.Fatal(err)
		}
		o.run(s)
		o.await("sent", all(store.Sent))
		mails := o.mail.Taken()
		if len(mails) != 1 || mails[0].Header.Has("Bcc") || len(own.Taken()) != 0 {
			t.Fatalf("the mails are %+v, and those through the tenant's server %+v", mails, own.Taken())
		}
		for _, line := range []string{"Key id: 486FVJJZ", "Created: " + clock.UTC().Format("2006-01-02 15:04") + " UTC", "By: jo", want} {
			if !strings.Contains(mails[0].Text, line) {
				t.Errorf("the mail lacks %q:\n%s", line, mails[0].Text)
			}
		}
	}
}

// The language of the request that caused the event reaches the mail.
func TestTheLanguageOfARequestIsThatOfItsMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		l.Template = directoryapi.EmailTemplate{Workflow: in.Workflow, Unchanged: true}
		return l.Mail, nil
	})
	o.question = func(directoryapi.Ref) (applicationapi.Application, error) {
		return applicationapi.Application{Name: "Laden"}, nil
	}
	s := o.service(func(cfg *Config) { cfg.HeloName = "mail.example.test" })
	e, event := o.registration()
	e.Language = "de"
	if err := s.accountRegistered(t.Context(), e, event); err != nil {
		t.Fatal(err)
	}
	o.run(s)
	o.await("sent", all(store.Sent))
	m := o.mail.Taken()[0]
	if m.Subject != "Bestätigen Sie Ihr Konto" || !strings.Contains(m.Text, "bei Laden") {
		t.Errorf("the mail is %q:\n%s", m.Subject, m.Text)
	}
	if m.Helo != "mail.example.test" {
		t.Errorf("the mail server was greeted as %q, want the configured name", m.Helo)
	}
}

func TestAMailServerIsGreetedWithTheHostOfTheBaseAddress(t *testing.T) {
	t.Parallel()
	s := writer()
	for configured, want := range map[string]string{
		"": "id.example.test", "mail.example.test": "mail.example.test", "täst.test": "xn--tst-qla.test",
		"192.0.2.1": "[192.0.2.1]", "2001:db8::1": "[IPv6:2001:db8::1]",
	} {
		s.cfg.HeloName = configured
		if got := s.heloName(); got != want {
			t.Errorf("with the name %q a mail server is greeted as %q, want %q", configured, got, want)
		}
	}
}

// Every mail in every language is composed and read as by a mail program. With DOORWARD_MAIL_DIR their HTML is
// written there, to look at.
func TestEveryMailOfTheDeploymentIsComposed(t *testing.T) {
	t.Parallel()
	for _, language := range locale.Languages {
		for _, workflow := range []directoryapi.Workflow{
			directoryapi.Verification, directoryapi.VerificationSuccess, directoryapi.Welcome, directoryapi.Reset,
			directoryapi.ResetSuccess,
			directoryapi.ExistingAccount, directoryapi.SigningUp, directoryapi.Invitation, directoryapi.FactorAdded,
			directoryapi.FactorRemoved, circuitAlert, adminKeyAlert,
		} {
			content := unchanged(workflow, "", language)
			content.values = map[string]string{
				"smtpServer.host": "mail.example.test", "smtpServer.port": "25", "smtpServer.failures": "5",
				"factor.name": mailtext.Factor(language, "SMS"),
				"adminKey.id": "486FVJJZ3WBR4FD8FXAR2EA1HC", "adminKey.createdAt": "2026-11-28 07:30 UTC", "adminKey.operator": "jo",
				"adminKey.reason": "locked out",
			}
			m := read(t, content)
			if strings.Contains(m.Subject+m.Text+m.HTML, "$!{") || strings.Contains(m.Text, "\n\n\n") ||
				strings.TrimSpace(m.Subject) == "" {
				t.Errorf("the mail %s in %s is not whole: %s\n%s", workflow, language, m.Subject, m.Text)
			}
			if dir := os.Getenv("DOORWARD_MAIL_DIR"); dir != "" {
				if err := os.WriteFile(fmt.Sprintf("%s/%s-%s.html", dir, workflow, language), []byte(m.HTML), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
