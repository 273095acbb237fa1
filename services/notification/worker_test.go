package notification

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/services/notification/mailtest"
	"github.com/doorward/doorward/services/notification/store"
)

func TestADeliveryIsSentOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	r := o.await("sent", all(store.Sent))[0]
	if r.HasToken || r.Leased || r.LastError != "" || r.FinishedAt == nil {
		t.Errorf("what is left of the delivery is %+v", r)
	}
	m := o.mail.Taken()
	if len(m) != 1 || mailtest.Token(m[0].Text) != token.Reveal() || m[0].ID != r.ID.String()+"@id.example.test" {
		t.Errorf("the mails are %+v", m)
	}
	if m[0].EnvelopeFrom != "no-reply@id.example.test" || m[0].EnvelopeTo != m[0].To {
		t.Errorf("the envelope goes from %s to %s", m[0].EnvelopeFrom, m[0].EnvelopeTo)
	}
}

func TestReplicasShareTheDeliveries(t *testing.T) {
	t.Parallel()
	const mails = 300
	o := newOffice(t, mailtest.Behaviour{})
	first, second := o.service(), o.service(func(c *Config) { c.Senders = 4 })
	o.order(first, mails)
	o.run(first)
	o.run(second)
	o.await("sent", all(store.Sent))
	ids := map[string]int{}
	for _, m := range o.mail.Taken() {
		ids[m.ID]++
	}
	if len(ids) != mails || len(o.mail.Taken()) != mails {
		t.Errorf("%d mails of %d deliveries came, want %d", len(o.mail.Taken()), len(ids), mails)
	}
	if n := o.mail.Connections(); n > 3*6 {
		t.Errorf("six senders made %d connections for %d mails", n, mails)
	}
}

func TestAnUnwantedMailIsNotSent(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(directoryapi.MailOf) (directoryapi.Mail, error){
		"the account is gone or the workflow is off": func(directoryapi.MailOf) (directoryapi.Mail, error) {
			return directoryapi.Mail{}, errNotFound
		},
		"the address is proven meanwhile": func(directoryapi.MailOf) (directoryapi.Mail, error) {
			l := verification()
			l.Account.EmailVerificationStatus = directoryapi.Verified
			return l.Mail, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{})
			o.answers(answer)
			s := o.service()
			o.run(s)
			o.order(s, 1)
			if r := o.await("unwanted", all(store.Obsolete))[0]; r.HasToken {
				t.Error("the token is kept")
			}
			if n := len(o.mail.Taken()); n != 0 {
				t.Errorf("%d mails were sent", n)
			}
		})
	}
}

// A tenant with many mails does not make another's wait behind them.
func TestTenantsTakeTurnsWithTheirMails(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	tenants := []id.ID{id.New(clock), id.New(clock), id.New(clock)}
	slices.SortFunc(tenants, func(a, b id.ID) int { return bytes.Compare(a[:], b[:]) })
	for n, mails := range []int{4, 2, 1} {
		o.tenant = tenants[n]
		o.order(s, mails)
	}
	first, second, third := tenants[0], tenants[1], tenants[2]
	var last id.ID
	for n, want := range []id.ID{first, second, third, first, second, first, first} {
		d, err := o.leaseAfter(s, last)
		if err != nil || d.TenantID != want {
			t.Fatalf("mail %d is one of tenant %s (%v), want %s", n+1, d.TenantID, err, want)
		}
		last = d.TenantID
	}
	if d, err := o.leaseAfter(s, last); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a mail that is leased: %+v, %v", d, err)
	}
}

// Mails name the application as their author, and do not wait for that name.
func TestTheAuthorOfAMailIsTheApplication(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	if m := o.mail.Await(t, 1)[0]; m.FromName != "Shop" {
		t.Errorf("the mail comes from %s", m.FromName)
	}
	o.mu.Lock()
	o.question = func(directoryapi.Ref) (a applicationAnswered, err error) { return a, apierr.Unavailable }
	o.mu.Unlock()
	o.order(s, 1)
	if m := o.mail.Await(t, 2)[1]; m.FromName != "Customers" {
		t.Errorf("while the application service is away the mail comes from %s", m.FromName)
	}
}

func TestTheApplicationIsAskedForItsNameAlone(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	asked := 0
	o.question = func(in directoryapi.Ref) (a applicationAnswered, err error) {
		asked++
		a.Name = "Shop"
		return a, err
	}
	s := o.service(func(c *Config) { c.FromNamed = true })
	o.run(s)
	o.order(s, 1)
	o.mail.Await(t, 1)
	if asked != 0 {
		t.Error("the application was asked for a mail that does not name it")
	}
	speak := func(in directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		l.Template.TextBody = "[${application.name}]"
		return l.Mail, nil
	}
	o.answers(speak)
	o.order(s, 1)
	if m := o.mail.Await(t, 2)[1]; m.Text != "[Shop]\n" || asked != 1 {
		t.Errorf("the mail says %s", m.Text)
	}
	o.mu.Lock()
	o.question = func(directoryapi.Ref) (a applicationAnswered, err error) { return a, errNotFound }
	o.mu.Unlock()
	o.order(s, 1)
	if m := o.mail.Await(t, 3)[2]; m.Text != "[${application.name}]\n" {
		t.Errorf("the mail of a deleted application says %s", m.Text)
	}
	o.mu.Lock()
	o.question = func(directoryapi.Ref) (a applicationAnswered, err error) {
		a.Name, a.Builtin = "Console", true
		return a, nil
	}
	o.mu.Unlock()
	o.order(s, 1)
	if m := o.mail.Await(t, 4)[3]; m.Text != "["+s.cfg.From.Name+"]\n" || s.cfg.From.Name == "" {
		t.Errorf("the mail of the administrators' own application says %s", m.Text)
	}
}

func TestTheApplicationIsAskedForTheDataThatIsNamed(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	o.answers(func(directoryapi.MailOf) (directoryapi.Mail, error) {
		l := verification()
		l.Template.TextBody = "[$!{application.customData.plan}][${application.customData.none}][$!{account.customData.own}]"
		return l.Mail, nil
	})
	o.data = func(in applicationapi.CustomDataRequest) (applicationapi.CustomDataValues, error) {
		if !slices.Equal(in.Keys, []string{"plan", "none"}) || in.Tenant != o.tenant || in.ID != o.application {
			t.Errorf("the application was asked for %+v", in)
		}
		return applicationapi.CustomDataValues{Values: map[string]string{"plan": "gold"}}, nil
	}
	s := o.service()
	o.run(s)
	o.order(s, 1)
	if m := o.mail.Await(t, 1)[0]; m.Text != "[gold][${application.customData.none}][]\n" {
		t.Errorf("the mail says %s", m.Text)
	}
	o.application = id.ID{}
	o.order(s, 1)
	if m := o.mail.Await(t, 2)[1]; m.Text != "[][${application.customData.none}][]\n" {
		t.Errorf("the mail that no application caused says %s", m.Text)
	}
}

func TestTheMailServersAnswerDecides(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		mail     error
		rcpt     error
		data     error
		state    store.State
		failures int
		reason   string
	}{
		{name: "an unknown recipient is final", rcpt: mailtest.Answer(550, [3]int{5, 1, 1}, "no such user"),
			state: store.Failed, reason: "550 5.1.1"},
		{name: "refused content is final", data: mailtest.Answer(554, [3]int{5, 6, 0}, "no"), state: store.Failed,
			reason: "554 5.6.0"},
		{name: "a rule of the server may be fixed", rcpt: mailtest.Answer(554, [3]int{5, 7, 1}, "relay access denied"),
			state: store.Pending, failures: 1, reason: "554 5.7.1"},
		{name: "a full mailbox may empty", rcpt: mailtest.Answer(452, [3]int{4, 2, 2}, "full"),
			state: store.Pending, failures: 1, reason: "452 4.2.2"},
		{name: "a busy server is not the mail's fault", mail: mailtest.Answer(451, [3]int{4, 3, 0}, "busy"),
			state: store.Pending, reason: "451 4.3.0"},
		{name: "a refused sender is not the mail's fault", mail: mailtest.Answer(550, [3]int{5, 7, 1}, "who are you"),
			state: store.Pending, reason: "550 5.7.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice(t, mailtest.Behaviour{
				Mail: func() error { return c.mail },
				Rcpt: func(string) error { return c.rcpt },
				Data: func(m mailtest.Message) error { return repeating(c.data, m) },
			})
			s := o.service()
			o.run(s)
			o.order(s, 1)
			r := o.await("tried", func(rows []row) bool { return rows[0].LastError != "" })[0]
			if r.State != c.state || r.Failures != c.failures || !strings.Contains(r.LastError, c.reason) {
				t.Errorf("the delivery is %+v", r)
			}
			if (r.State == store.Failed) == r.HasToken {
				t.Errorf("the token is kept: %v", r.HasToken)
			}
			if strings.Contains(r.LastError, token.Reveal()) || strings.Contains(r.LastError, "@") {
				t.Errorf("the note of the failure tells too much: %s", r.LastError)
			}
		})
	}
}

// repeating is a refusal that repeats the mail, as spam filters do.
func repeating(refusal error, m mailtest.Message) error {
	if refusal == nil {
		return nil
	}
	return mailtest.Answer(554, [3]int{5, 6, 0}, "listed: "+mailtest.Token(m.Text))
}

func TestAFailedDeliveryIsTriedAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{Rcpt: func(string) error {
		return mailtest.Answer(450, [3]int{4, 7, 1},
			"greylisted")
	}})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	for failures := 1; failures <= 3; failures++ {
		r := o.await("tried", func(rows []row) bool { return rows[0].Failures == failures && !rows[0].Leased })[0]
		if want := o.now().Add(mailBackoff(failures)); !r.NextTryAt.Equal(want) {
			t.Errorf("after %d failures the next try is at %v, want %v", failures, r.NextTryAt, want)
		}
		o.turn(mailBackoff(failures))
	}
	o.mail.Behave(func(b *mailtest.Behaviour) { b.Rcpt = nil })
	o.await("tried", func(rows []row) bool { return rows[0].Failures == 4 || rows[0].State == store.Sent })
	o.turn(time.Hour)
	o.await("sent", all(store.Sent))
}

func TestADeliveryIsGivenUpAfterThreeDays(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{Rcpt: func(string) error {
		return mailtest.Answer(450, [3]int{4, 2, 0},
			"later")
	}})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	o.await("tried", tried)
	o.turn(maxDeliveryAge)
	if r := o.await("failed", all(store.Failed))[0]; r.HasToken || r.Failures != 1 {
		t.Errorf("what is left of the delivery is %+v", r)
	}
	tries := 0
	for age := time.Duration(0); age < maxDeliveryAge; tries++ {
		age += mailBackoff(tries + 1)
	}
	if tries < 60 || tries > 100 {
		t.Errorf("a delivery is tried %d times before it is given up", tries)
	}
}

func TestAnUnavailableMailServerIsNoFailureOfAMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	address := o.mail.Address
	o.mail.Stop()
	s := o.service()
	o.run(s)
	o.order(s, 5)
	o.await("tried", func(rows []row) bool { return rows[0].LastError != "" || rows[1].LastError != "" })
	for _, r := range o.rows() {
		if r.State != store.Pending || r.Failures != 0 {
			t.Errorf("the delivery is %+v", r)
		}
	}
	o.mail = mailtest.Start(t, address, mailtest.Behaviour{})
	o.turn(unavailableRetryDelay)
	o.await("sent", all(store.Sent))
	if n := len(o.mail.Taken()); n != 5 {
		t.Errorf("%d mails came, want 5", n)
	}
}

func TestAnUnavailableDirectoryServiceIsNoFailureOfAMail(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	answer := o.answer
	o.answers(func(directoryapi.MailOf) (directoryapi.Mail, error) { return directoryapi.Mail{}, apierr.Unavailable })
	s := o.service()
	o.run(s)
	o.order(s, 1)
	if r := o.await("tried", tried)[0]; r.Failures != 0 {
		t.Errorf("the delivery is %+v", r)
	}
	o.answers(answer)
	o.turn(unavailableRetryDelay)
	o.await("sent", all(store.Sent))
}

func TestATokenThatCannotBeOpenedWaitsForItsKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.run(s)
	e, event := o.registration()
	event.Token = []byte("sealed by somebody else")
	if err := s.accountRegistered(t.Context(), e, event); err != nil {
		t.Fatal(err)
	}
	if r := o.await("tried", tried)[0]; r.Failures != 1 || len(o.mail.Taken()) != 0 {
		t.Errorf("the delivery is %+v", r)
	}
}

func TestAPanicIsAFailureLikeAnother(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	o.answers(func(directoryapi.MailOf) (directoryapi.Mail, error) { panic("boo") })
	s := o.service()
	o.run(s)
	o.order(s, 1)
	if r := o.await("tried", tried)[0]; r.Failures != 1 || r.LastError != "panic: boo" {
		t.Errorf("the delivery is %+v", r)
	}
}

func TestAConnectionThatBreaksAfterTheMailLeavesOneDuplicate(t *testing.T) {
	t.Parallel()
	var once sync.Once
	o := newOffice(t, mailtest.Behaviour{Data: func(mailtest.Message) (err error) {
		once.Do(func() { err = mailtest.ErrDrop })
		return err
	}})
	s := o.service()
	o.run(s)
	o.order(s, 1)
	o.await("tried", tried)
	o.turn(mailBackoff(1))
	o.await("sent", all(store.Sent))
	m := o.mail.Taken()
	if len(m) != 2 || m[0].ID != m[1].ID {
		t.Errorf("%d mails came: %+v", len(m), m)
	}
}

func TestAServerThatStallsOpensTheCircuitBreaker(t *testing.T) {
	t.Parallel()
	stall := make(chan struct{})
	o := newOffice(t, mailtest.Behaviour{Rcpt: func(string) error {
		<-stall
		return nil
	}})
	t.Cleanup(func() { close(stall) })
	s := o.service(func(c *Config) { c.Timeout = 200 * time.Millisecond })
	o.run(s)
	o.order(s, 1)
	if r := o.await("tried", tried)[0]; r.Failures != 1 {
		t.Errorf("the delivery is %+v", r)
	}
}

func TestAShutdownDoesNotInterruptAMail(t *testing.T) {
	t.Parallel()
	reached, goOn := make(chan struct{}), make(chan struct{})
	o := newOffice(t, mailtest.Behaviour{Data: func(mailtest.Message) error {
		close(reached)
		<-goOn
		return nil
	}})
	s := o.service()
	stop := o.run(s)
	o.order(s, 1)
	<-reached
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	close(goOn)
	<-stopped
	if r := o.rows()[0]; r.State != store.Sent {
		t.Errorf("the delivery is %+v", r)
	}
}

func TestADatabaseOutageAfterTheMailDoesNotRepeatIt(t *testing.T) {
	t.Parallel()
	taken, end := make(chan struct{}), func() {}
	o := newOffice(t, mailtest.Behaviour{})
	o.mail.Behave(func(b *mailtest.Behaviour) {
		b.Data = func(mailtest.Message) error {
			end = pgtest.Outage(t, pgtest.URL(o.db))
			close(taken)
			return nil
		}
	})
	s := o.service()
	o.order(s, 1)
	o.run(s)
	<-taken
	end()
	o.await("sent", all(store.Sent))
	if n := len(o.mail.Taken()); n != 1 {
		t.Errorf("%d mails came, want 1", n)
	}
}

func TestTheLeaseOfADeadWorkerExpires(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.order(s, 1)
	dead, err := o.lease(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.lease(s); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a leased delivery is given again: %v", err)
	}
	o.turn(leaseTime - time.Second)
	if err := s.store.Tx(t.Context(),
		func(tx *store.Tx) error { return tx.RenewLease(t.Context(), dead, o.now().Add(leaseTime)) }); err != nil {
		t.Fatal(err)
	}
	o.turn(leaseTime - time.Second)
	if _, err := o.lease(s); !errors.Is(err, apierr.NotFound) {
		t.Errorf("a delivery whose lease was renewed is given again: %v", err)
	}
	o.turn(time.Second)
	taken, err := o.lease(s)
	if err != nil || taken.ID != dead.ID {
		t.Fatalf("the delivery is not given again: %v", err)
	}

	t.Run("the former holder cannot renew its lease", func(t *testing.T) {
		if err := s.store.Tx(t.Context(),
			func(tx *store.Tx) error { return tx.RenewLease(t.Context(), dead, o.now()) }); err != nil {
			t.Fatal(err)
		}
		if _, err := o.lease(s); !errors.Is(err, apierr.NotFound) {
			t.Errorf("the lease of the new holder ended: %v", err)
		}
	})
	t.Run("a failure of the former holder changes nothing", func(t *testing.T) {
		if result := s.recordOutcome(t.Context(), s.mail, dead, errors.New("late")); result != resultPostponed {
			t.Errorf("the result is %s", result)
		}
		if r := o.rows()[0]; !r.Leased || r.LastError != "" {
			t.Errorf("the delivery is %+v", r)
		}
	})
	t.Run("its success ends the delivery", func(t *testing.T) {
		s.recordOutcome(t.Context(), s.mail, dead, nil)
		s.recordOutcome(t.Context(), s.mail, taken, permanentError{errors.New("later")})
		if r := o.rows()[0]; r.State != store.Sent || r.LastError != "" {
			t.Errorf("the delivery is %+v", r)
		}
	})
}

func TestOldDeliveriesAreDeleted(t *testing.T) {
	t.Parallel()
	o := newOffice(t, mailtest.Behaviour{})
	s := o.service()
	o.order(s, 3)
	o.run(s)
	o.await("sent", all(store.Sent))
	o.turn(deliveryRetention)
	o.order(s, 1)
	deleted := func() int64 {
		n, err := s.store.Purge(t.Context(), store.DoneDeliveries, o.now().Add(-deliveryRetention))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := deleted(); n != 0 {
		t.Errorf("%d deliveries were deleted before their time", n)
	}
	o.turn(time.Second)
	if first, second := deleted(), deleted(); first != 3 || second != 0 {
		t.Errorf("%d deliveries were deleted, and then %d; want 3, and then none", first, second)
	}
	o.await("sent", func(rows []row) bool { return len(rows) == 1 && rows[0].State == store.Sent })
	o.turn(deliveryRetention + time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.Purger(ctx) }()
	o.await("gone", func(rows []row) bool { return len(rows) == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheLogLevelOfAResult(t *testing.T) {
	for _, c := range []struct {
		result  sendResult
		outcome error
		want    slog.Level
	}{
		{resultSent, nil, slog.LevelInfo},
		{resultUnwanted, errObsolete, slog.LevelInfo},
		{resultFailed, permanentError{errors.New("550 5.1.1")}, slog.LevelWarn},
		{resultFailed, errConnectionBroken, slog.LevelError}, // for three days
		{resultPostponed, errUnavailable, slog.LevelWarn},
		{resultLost, errNoSMSProviderAnswer, slog.LevelWarn},
		{resultBroken, deploymentError{errors.New("401")}, slog.LevelError},
	} {
		if got := logLevel(c.result, c.outcome); got != c.want {
			t.Errorf("%s by %v is logged as %s, want %s", c.result, c.outcome, got, c.want)
		}
	}
}
