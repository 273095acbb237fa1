package notification

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

func TestEventsAskForTheirMails(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	workflows := func() (list []directoryapi.Workflow) {
		for _, r := range o.rows() {
			list = append(list, directoryapi.Workflow(r.Workflow))
		}
		return list
	}
	e, event := o.registration()
	for range 3 { // the same event again changes nothing
		if err := s.accountRegistered(t.Context(), e, event); err != nil {
			t.Fatal(err)
		}
	}
	if got := workflows(); len(got) != 1 || got[0] != directoryapi.Verification {
		t.Errorf("a registration with a token asks for %v", got)
	}

	o.turn(time.Second)
	e, event = o.registration()
	event.Token = nil
	if err := s.accountRegistered(t.Context(), e, event); err != nil {
		t.Fatal(err)
	}
	if got := workflows(); len(got) != 2 || got[1] != directoryapi.Welcome {
		t.Errorf("a registration without a token asks for %v", got[1:])
	}

	o.turn(time.Second)
	e.ID = id.New(clock)
	for range 2 {
		if err := s.accountVerified(t.Context(), e,
			events.AccountVerified{Tenant: o.tenant, Account: event.Account}); err != nil {
			t.Fatal(err)
		}
	}
	asked := map[directoryapi.Workflow]int{}
	for _, workflow := range workflows()[2:] {
		asked[workflow]++
	}
	if len(asked) != 2 || asked[directoryapi.VerificationSuccess] != 1 || asked[directoryapi.Welcome] != 1 {
		t.Errorf("a proof asks for %v", asked)
	}
}

// What waits for accounts that were deleted is not sent, and its token, number and message are erased.
func TestDeletedAccountsGetNoMoreMessages(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	e, event := o.registration()
	if err := s.accountRegistered(t.Context(), e, event); err != nil {
		t.Fatal(err)
	}
	pending := func() (n int64) {
		n, _, err := s.store.Waiting(t.Context(), 10, store.Mail)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	e.ID = id.New(clock)
	if err := s.accountDeleted(t.Context(), e,
		events.AccountDeleted{Tenant: o.tenant, Account: id.New(clock)}); err != nil {
		t.Fatal(err)
	}
	if n := pending(); n != 1 {
		t.Errorf("the end of another account left %d mails waiting, want 1", n)
	}
	e.ID = id.New(clock)
	if err := s.accountsDeleted(t.Context(), e,
		events.AccountsDeleted{Tenant: o.tenant, Accounts: []id.ID{event.Account}}); err != nil {
		t.Fatal(err)
	}
	if n := pending(); n != 0 {
		t.Errorf("%d mails wait for a deleted account", n)
	}
}

// A user who registers in an application is welcomed to it, also after a proof.
func TestTheMailsAfterAVerificationNameItsApplication(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	o.answers(func(in directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		l.Template.Workflow, l.Template.Subject, l.Template.TextBody = in.Workflow, string(in.Workflow),
			"[$!{application.name}]"
		return l.Mail, nil
	})
	s := o.service()
	prove := func(application id.ID) {
		t.Helper()
		e, event := o.registration()
		event.Application = application
		if err := s.accountRegistered(t.Context(), e, event); err != nil {
			t.Fatal(err)
		}
		e.ID = id.New(clock)
		if err := s.accountVerified(t.Context(), e,
			events.AccountVerified{Tenant: o.tenant, Account: event.Account}); err != nil {
			t.Fatal(err)
		}
	}
	prove(o.application)
	prove(id.ID{})
	o.run(s)
	said := map[string]int{}
	for _, m := range o.mail.Await(t, 6) {
		said[m.Subject+strings.TrimSpace(m.Text)]++
	}
	for _, workflow := range []directoryapi.Workflow{directoryapi.Verification, directoryapi.VerificationSuccess,
		directoryapi.Welcome} {
		if said[string(workflow)+"[Shop]"] != 1 || said[string(workflow)+"[]"] != 1 {
			t.Errorf("the mails say %v", said)
		}
	}
}

func TestAnEventWaitsForTheDatabase(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	e, event := o.registration()
	end := pgtest.Outage(t, pgtest.URL(o.db))
	if err := s.accountRegistered(t.Context(), e, event); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("without a database the consumer gets %v", err)
	}
	end()
	if err := s.accountRegistered(t.Context(), e, event); err != nil {
		t.Fatal(err)
	}
	if rows := o.rows(); len(rows) != 1 {
		t.Errorf("there are %d deliveries, want 1", len(rows))
	}
}
