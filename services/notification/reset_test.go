package notification

import (
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

// What is sent for the requests of a user who cannot get in: the link with its
// token, once, however often the event comes.
func TestRequestsOfUsersAreMailed(t *testing.T) {
	t.Parallel()
	jwt, err := secure.SignJWT(map[string]any{"tid": "T1", "stt": "assertion"}, secure.Claims{"exp": 1, "jti": "J1"},
		"a key")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		workflow directoryapi.Workflow
		link     string
		take     func(*office, *Service, events.Envelope, id.ID) error
	}{
		{directoryapi.Reset, "https://id.example.test:8443/passwordReset?sptoken=" + jwt,
			func(o *office, s *Service, e events.Envelope, account id.ID) error {
				sealed := o.ring.Seal(secure.Secret(jwt), events.MailTokenPurpose(account))
				return s.passwordResetRequested(t.Context(), e,
					events.PasswordResetRequested{Tenant: o.tenant, Account: account, Application: o.application, Token: sealed})
			}},
		{directoryapi.ResetSuccess, "", func(o *office, s *Service, e events.Envelope, account id.ID) error {
			return s.passwordReset(t.Context(), e,
				events.PasswordReset{Tenant: o.tenant, Account: account, Application: o.application})
		}},
		{directoryapi.Verification, "https://id.example.test:8443/emailVerificationTokens?sptoken=" + token.Reveal(),
			func(o *office, s *Service, e events.Envelope, account id.ID) error {
				sealed := o.ring.Seal(token, events.MailTokenPurpose(account))
				return s.verificationRequested(t.Context(), e,
					events.VerificationRequested{Tenant: o.tenant, Account: account, Application: o.application, Token: sealed})
			}},
	} {
		t.Run(string(c.workflow), func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
				l := verification()
				l.Template.Workflow, l.Template.Subject = in.Workflow, string(in.Workflow)
				l.Template.TextBody = "$!{application.name}|$!{url}|$!{sptoken}|$!{sptokenNameValuePair}"
				return l.Mail, nil
			})
			s := o.service()
			account := id.New(clock)
			e := events.Envelope{ID: id.New(clock), Tenant: o.tenant, Subject: account, At: clock}
			for range 2 {
				if err := c.take(o, s, e, account); err != nil {
					t.Fatal(err)
				}
			}
			o.run(s)
			r := o.await("sent", all(store.Sent))
			if len(r) != 1 || r[0].Workflow != string(c.workflow) || r[0].HasToken {
				t.Errorf("what is left of the deliveries is %+v", r)
			}
			want := "Shop|" + c.link
			if _, sptoken, ok := strings.Cut(c.link, "sptoken="); ok {
				want += "|" + sptoken + "|sptoken=" + sptoken
			} else {
				want += "||"
			}
			if m := o.mail.Await(t, 1)[0]; strings.TrimSpace(m.Text) != want || m.Subject != string(c.workflow) {
				t.Errorf("the mail %q says\n%s, want\n%s", m.Subject, m.Text, want)
			}
		})
	}
}

func TestAResetMailIsNotSentOnceItsWorkflowIsOff(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	o.answers(func(directoryapi.MailOf) (directoryapi.Mail, error) { return directoryapi.Mail{}, errNotFound })
	s := o.service()
	account := id.New(clock)
	event := events.PasswordResetRequested{Tenant: o.tenant, Account: account,
		Token: o.ring.Seal(token, events.MailTokenPurpose(account))}
	if err := s.passwordResetRequested(t.Context(),
		events.Envelope{ID: id.New(clock), Tenant: o.tenant, Subject: account, At: clock.Add(time.Second)},
		event); err != nil {
		t.Fatal(err)
	}
	o.run(s)
	if r := o.await("unwanted", all(store.Obsolete))[0]; r.HasToken {
		t.Error("the delivery kept its token")
	}
	if n := len(o.mail.Taken()); n != 0 {
		t.Errorf("%d mails were sent", n)
	}
}
