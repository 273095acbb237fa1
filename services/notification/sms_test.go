package notification_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/mail"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/pg/pgtest"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/worktest"
	"github.com/doorward/doorward/services/notification"
	"github.com/doorward/doorward/services/notification/smstest"
	"github.com/doorward/doorward/services/notification/store"
)

const (
	number = "+18883910959"
	code   = "493817"
	host   = "https://id.example.test:8443"
)

// exchange is what a test of texts works with: a database, a provider, and a
// clock that the test turns.
type exchange struct {
	t        *testing.T
	db       *pg.DB
	ring     *secure.Keyring
	provider *smstest.Provider
	service  *notification.Service
	tenant   id.ID
	started  time.Time
	elapsed  atomic.Int64
}

func open(t *testing.T, change ...func(*notification.Config)) *exchange {
	t.Helper()
	x := &exchange{t: t, db: pgtest.Open(t, store.Config), provider: smstest.Start(t),
		started: time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)}
	x.tenant = id.New(x.started)
	var err error
	if x.ring, err = secure.ParseKeyring(secure.NewMasterKey("test")); err != nil {
		t.Fatal(err)
	}
	x.service = x.replica(change...)
	return x
}

func (x *exchange) now() time.Time { return x.started.Add(time.Duration(x.elapsed.Load())) }

func (x *exchange) turn(d time.Duration) { x.elapsed.Add(int64(d)) }

// replica returns another process of the service.
func (x *exchange) replica(change ...func(*notification.Config)) *notification.Service {
	cfg := notification.Config{From: mail.Address{Address: "no-reply@id.example.test"}, SMSProvider: x.provider.Config(),
		SMSSenders: 2}
	for _, c := range change {
		c(&cfg)
	}
	return notification.New(store.New(x.db, x.now), notification.Peers{Directory: enabledTenants{}}, x.ring, host+"/v1", x.now, cfg)
}

// enabledTenants is the directory service, whose tenants are enabled.
type enabledTenants struct{ directoryapi.API }

func (enabledTenants) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	return directoryapi.Tenant{ID: in.ID, Status: directoryapi.Enabled}, nil
}

func (enabledTenants) AccessChanges(context.Context, cache.Position) (cache.Page, error) {
	return cache.Page{Behind: true}, nil
}

// run lets a replica send until the test ends.
func (x *exchange) run(s *notification.Service) {
	worktest.Start(x.t, s.Send)
}

// challenge is an event as it comes from the mfa service.
func (x *exchange) challenge() (events.Envelope, events.ChallengeCreated) {
	challenge, account := id.New(x.now()), id.New(x.now())
	return events.Envelope{ID: id.New(x.now()), Tenant: x.tenant, Subject: account, RequestID: "request-1"},
		events.ChallengeCreated{
			Tenant: x.tenant, Account: account, Challenge: challenge, Number: number, Message: "Say ${code}, Jo",
			Code: x.ring.Seal(code, events.CodePurpose(challenge)), ExpiresAt: x.now().Add(5 * time.Minute),
		}
}

// order lets the service take a challenge, and returns the event.
func (x *exchange) order(change ...func(*events.ChallengeCreated)) events.ChallengeCreated {
	x.t.Helper()
	envelope, event := x.challenge()
	for _, c := range change {
		c(&event)
	}
	if err := x.service.Challenged(x.t.Context(), envelope, event); err != nil {
		x.t.Fatal(err)
	}
	return event
}

// row is a text as it stands in the table.
type row struct {
	ID        id.ID
	State     store.State
	Failures  int
	LastError string
	NextTryAt time.Time
	Erased    bool
	Attempted bool
}

func (x *exchange) rows() []row {
	x.t.Helper()
	rows, err := pg.All[row](x.t.Context(), x.db, `SELECT id, state, failures, last_error, next_try_at,
		token_sealed IS NULL AND number = '' AND message = '' AS erased, attempted_at IS NOT NULL AS attempted FROM deliveries
		ORDER BY id`)
	if err != nil {
		x.t.Fatal(err)
	}
	return rows
}

// await waits until the only text is as the test wants it.
func (x *exchange) await(what string, is func(row) bool) row {
	x.t.Helper()
	return x.awaitAll(what, func(rows []row) bool { return len(rows) == 1 && is(rows[0]) })[0]
}

func (x *exchange) awaitAll(what string, are func([]row) bool) []row {
	x.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(30 * time.Second)
	for {
		if rows := x.rows(); are(rows) {
			return rows
		}
		select {
		case <-tick.C:
		case <-limit:
			x.t.Fatalf("the texts are not %s: %+v", what, x.rows())
		}
	}
}

func (x *exchange) awaitState(state store.State) row {
	x.t.Helper()
	return x.await(string(state), func(r row) bool { return r.State == state })
}

// news are the states that the mfa service gets, in order.
func (x *exchange) news(event events.ChallengeCreated) (news []events.SMSStatus) {
	x.t.Helper()
	envelopes, err := pg.Values[[]byte](x.t.Context(), x.db, `SELECT envelope FROM outbox ORDER BY seq`)
	if err != nil {
		x.t.Fatal(err)
	}
	for _, text := range envelopes {
		var envelope events.Envelope
		var reported events.TextReported
		if err := json.Unmarshal(text, &envelope); err != nil {
			x.t.Fatal(err)
		}
		if err := json.Unmarshal(envelope.Data, &reported); err != nil {
			x.t.Fatal(err)
		}
		if envelope.Type != "TextReported" || reported.Tenant != event.Tenant || reported.Account != event.Account ||
			reported.Challenge != event.Challenge {
			x.t.Errorf("the event is %s %+v", envelope.Type, reported)
		}
		news = append(news, reported.Status)
	}
	return news
}

func (x *exchange) reported(event events.ChallengeCreated, want ...events.SMSStatus) {
	x.t.Helper()
	if got := x.news(event); !reflect.DeepEqual(got, want) {
		x.t.Errorf("the mfa service gets %v, want %v", got, want)
	}
}

func TestAnSMSGoesToTheProvider(t *testing.T) {
	for name, c := range map[string]struct {
		from, field string
		receipts    bool
		state       store.State
		news        []events.SMSStatus
	}{
		"that sends receipts":    {"+15005550006", "From", true, store.Sent, []events.SMSStatus{events.SMSAccepted}},
		"by a messaging service": {"MG0123", "MessagingServiceSid", true, store.Sent, []events.SMSStatus{events.SMSAccepted}},
		"that sends none": {"Doorward", "From", false, store.Delivered,
			[]events.SMSStatus{events.SMSAccepted, events.SMSDelivered}},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t, func(cfg *notification.Config) { cfg.SMSProvider.From, cfg.SMSProvider.Receipts = c.from, c.receipts })
			event := x.order()
			x.run(x.service)
			r := x.awaitState(c.state)
			want := url.Values{"To": {number}, "Body": {"Say " + code + ", Jo"}, c.field: {c.from}}
			if c.receipts {
				want.Set("StatusCallback", host+"/sms/receipts/"+x.tenant.String()+"/"+r.ID.String())
			}
			if asked := x.provider.Asked(); len(asked) != 1 || !reflect.DeepEqual(asked[0], want) {
				t.Errorf("the provider was asked %v, want %v", asked, want)
			}
			if !r.Erased || r.LastError != "" {
				t.Errorf("what is left is %+v", r)
			}
			x.reported(event, c.news...)
		})
	}
}

// What the provider answers, and what follows. refused repeats the number and
// the text, as providers do.
func TestTheProvidersAnswerDecides(t *testing.T) {
	const refused = `{"code":21211,"message":"The 'To' number ` + number + ` is not valid for: Say ` + code +
		`, Jo","status":400}`
	for name, c := range map[string]struct {
		status int
		body   string
		state  store.State
		says   string
		news   []events.SMSStatus
	}{
		"refused": {400, refused, store.Failed, "the provider answered 400 with the code 21211",
			[]events.SMSStatus{events.SMSAccepted, events.SMSFailed}},
		"refused in words": {422, code + number, store.Failed, "the provider answered 422",
			[]events.SMSStatus{events.SMSAccepted, events.SMSFailed}},
		"a wrong token": {401, refused, store.DeploymentError,
			"the provider answered 401", []events.SMSStatus{events.SMSUnsendable}},
		"no such account": {404, "", store.DeploymentError,
			"the provider answered 404", []events.SMSStatus{events.SMSUnsendable}},
		"a redirect": {307, "", store.DeploymentError,
			"the provider answered 307", []events.SMSStatus{events.SMSUnsendable}},
		"no answer": {smstest.Drop, "", store.Lost, "there is no answer of the provider",
			[]events.SMSStatus{events.SMSAccepted}},
		"a gateway before it that gives up": {504, "", store.Lost, "the provider answered 504",
			[]events.SMSStatus{events.SMSAccepted}},
		"too many": {429, refused, store.Pending, "unavailable at present: the provider answered 429", nil},
		"a fault":  {500, refused, store.Pending, "the provider is busy: the provider answered 500", nil},
		"overload": {503, "", store.Pending, "the provider is busy: the provider answered 503", nil},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t)
			x.provider.Answers(func(url.Values) (int, string) { return c.status, c.body })
			event := x.order()
			x.run(x.service)
			r := x.await("tried", func(r row) bool { return r.LastError != "" })
			if r.State != c.state || !strings.Contains(r.LastError, c.says) || r.Erased != (c.state != store.Pending) {
				t.Errorf("the text is %+v, want %s because %s", r, c.state, c.says)
			}
			if strings.Contains(r.LastError, code) || strings.Contains(r.LastError, number[4:]) {
				t.Errorf("the note tells too much: %s", r.LastError)
			}
			x.reported(event, c.news...)
			if c.state != store.Pending {
				return
			}
			if r.Attempted {
				t.Error("the attempt stands, so that the text would not be tried again")
			}
			x.provider.Answers(nil)
			x.turn(10 * time.Second)
			x.awaitState(store.Sent)
			x.reported(event, events.SMSAccepted)
		})
	}
}

func TestAnUnavailableSMSProviderIsRetried(t *testing.T) {
	x := open(t, func(cfg *notification.Config) { cfg.SMSProvider.Address = "http://127.0.0.1:1" })
	x.order()
	x.run(x.service)
	if r := x.await("tried", func(r row) bool { return r.LastError != "" }); r.State != store.Pending || r.Failures != 0 ||
		r.Attempted {
		t.Errorf("the text is %+v", r)
	}
}

func TestAnSMSIsRetriedUntilItsCodeExpires(t *testing.T) {
	x := open(t)
	x.provider.Answers(func(url.Values) (int, string) { return http.StatusInternalServerError, "" })
	event := x.order()
	x.run(x.service)
	for failures := 1; failures <= 6; failures++ {
		r := x.await("tried", func(r row) bool { return r.Failures == failures })
		want := min(time.Second<<(failures-1), 30*time.Second)
		if !r.NextTryAt.Equal(x.now().Add(want)) {
			t.Errorf("after %d failures the next try is at %v, want %v later", failures, r.NextTryAt, want)
		}
		x.turn(want)
	}
	x.await("tried", func(r row) bool { return r.Failures == 7 })
	x.turn(5 * time.Minute)
	x.provider.Answers(nil)
	asked := len(x.provider.Asked())
	if r := x.awaitState(store.Obsolete); !r.Erased || len(x.provider.Asked()) != asked {
		t.Errorf("a late code was sent: %+v", r)
	}
	x.reported(event)
}

func TestAnExpiredCodeIsNotSent(t *testing.T) {
	x := open(t)
	x.order(func(e *events.ChallengeCreated) { e.ExpiresAt = x.now() })
	x.run(x.service)
	x.awaitState(store.Obsolete)
	if len(x.provider.Asked()) != 0 {
		t.Error("it was sent")
	}
}

func TestAnSMSThatCannotBeSentIsReported(t *testing.T) {
	for name, broken := range map[string]func(*exchange){
		"without a provider": func(x *exchange) {
			x.service = x.replica(func(cfg *notification.Config) { cfg.SMSProvider = notification.SMSProvider{} })
		},
		"with a seal that does not open": func(x *exchange) {
			if _, err := pg.Exec(x.t.Context(), x.db, `UPDATE deliveries SET token_sealed = 'x'`); err != nil {
				x.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t)
			event := x.order()
			broken(x)
			x.run(x.service)
			x.awaitState(store.DeploymentError)
			x.reported(event, events.SMSUnsendable)
			if len(x.provider.Asked()) != 0 {
				t.Error("it was sent")
			}
		})
	}
}

// A process that dies after the attempt was noted may have sent the text: no
// other sends it again.
func TestAnSMSIsSentOnceWhenItsProcessDies(t *testing.T) {
	x := open(t)
	event := x.order()
	if _, err := pg.Exec(t.Context(), x.db, `UPDATE deliveries SET attempted_at = $1, leased_by = tenant_id, leased_until =
		$2`, x.now(), x.now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	x.run(x.service)
	x.turn(time.Minute)
	if r := x.awaitState(store.Lost); !r.Erased || len(x.provider.Asked()) != 0 {
		t.Errorf("the text is %+v, the provider was asked %d times", r, len(x.provider.Asked()))
	}
	x.reported(event, events.SMSAccepted)
}

func TestReplicasSendEachSMSOnce(t *testing.T) {
	x := open(t)
	const texts = 60
	var group sync.WaitGroup
	for range texts {
		group.Go(func() {
			envelope, event := x.challenge()
			event.Message = event.Challenge.String() + " ${code}"
			for range 2 { // as Kafka does after a crash
				if err := x.service.Challenged(t.Context(), envelope, event); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	x.run(x.service)
	x.run(x.replica())
	x.awaitAll("sent", func(rows []row) bool {
		return !slices.ContainsFunc(rows, func(r row) bool { return r.State != store.Sent })
	})
	bodies := map[string]bool{}
	for _, form := range x.provider.Asked() {
		bodies[form.Get("Body")] = true
	}
	if len(bodies) != texts || len(x.provider.Asked()) != texts {
		t.Errorf("%d texts were sent, %d of them different, want %d", len(x.provider.Asked()), len(bodies), texts)
	}
}

// receipt sends a receipt as the provider does.
func (x *exchange) receipt(delivery id.ID, status string) error {
	address := host + "/sms/receipts/" + x.tenant.String() + "/" + delivery.String()
	return x.service.RecordSMSReceipt(x.t.Context(), id.Ref{Tenant: x.tenant, ID: delivery}, notification.SMSReceipt{
		Signature: smstest.Sign(smstest.Token, address, "ErrorCode30003", "MessageSidSM0", "MessageStatus"+status),
		Form:      url.Values{"MessageStatus": {status}, "MessageSid": {"SM0"}, "ErrorCode": {"30003"}},
	})
}

func TestReceiptsReportTheDeliveryOfAnSMS(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []string
		state    store.State
		news     []events.SMSStatus
	}{
		"on its way": {[]string{"queued", "sending", "sent"}, store.Sent,
			[]events.SMSStatus{events.SMSAccepted}},
		"arrived": {[]string{"sent", "delivered"}, store.Delivered,
			[]events.SMSStatus{events.SMSAccepted, events.SMSDelivered}},
		"lost on its way": {[]string{"undelivered"}, store.Failed,
			[]events.SMSStatus{events.SMSAccepted, events.SMSFailed}},
		"never sent": {[]string{"failed"}, store.Failed,
			[]events.SMSStatus{events.SMSAccepted, events.SMSFailed}},
		"reported twice": {[]string{"delivered", "delivered"}, store.Delivered,
			[]events.SMSStatus{events.SMSAccepted, events.SMSDelivered}},
		"reported out of order": {[]string{"delivered", "sent", "undelivered"}, store.Delivered,
			[]events.SMSStatus{events.SMSAccepted, events.SMSDelivered}},
		"what nobody has heard of": {[]string{"teleported", ""}, store.Sent, []events.SMSStatus{events.SMSAccepted}},
	} {
		t.Run(name, func(t *testing.T) {
			x := open(t)
			event := x.order()
			x.run(x.service)
			r := x.awaitState(store.Sent)
			for _, status := range c.statuses {
				if err := x.receipt(r.ID, status); err != nil {
					t.Fatal(err)
				}
			}
			r = x.awaitState(c.state)
			if c.state == store.Failed && r.LastError != "the provider could not deliver it: code 30003" {
				t.Errorf("the reason is %q", r.LastError)
			}
			x.reported(event, c.news...)
		})
	}
}

func TestAReceiptThatComesBeforeTheAnswerCounts(t *testing.T) {
	x := open(t)
	x.provider.Answers(func(form url.Values) (int, string) {
		callback := form.Get("StatusCallback")
		delivery, err := id.Parse(callback[len(callback)-22:])
		if err == nil {
			err = x.receipt(delivery, "delivered")
		}
		if err != nil {
			t.Error(err)
		}
		return http.StatusCreated, "{}"
	})
	event := x.order()
	x.run(x.service)
	x.awaitState(store.Delivered)
	x.reported(event, events.SMSAccepted, events.SMSDelivered)
}

func TestAReceiptAfterALostAnswerCounts(t *testing.T) {
	x := open(t)
	x.provider.Answers(func(url.Values) (int, string) { return smstest.Drop, "" })
	event := x.order()
	x.run(x.service)
	r := x.awaitState(store.Lost)
	if err := x.receipt(r.ID, "delivered"); err != nil {
		t.Fatal(err)
	}
	x.awaitState(store.Delivered)
	x.reported(event, events.SMSAccepted, events.SMSDelivered)
}

func TestAReceiptThatTheProviderHasNotSignedChangesNothing(t *testing.T) {
	x := open(t)
	event := x.order()
	x.run(x.service)
	r := x.awaitState(store.Sent)
	address := host + "/sms/receipts/" + x.tenant.String() + "/" + r.ID.String()
	form := url.Values{"MessageStatus": {"undelivered"}}
	for name, signature := range map[string]string{
		"none":                    "",
		"no Base64":               "***",
		"an empty one":            "====",
		"of another token":        smstest.Sign("another", address, "MessageStatusundelivered"),
		"of no token":             smstest.Sign("", address, "MessageStatusundelivered"),
		"of another address":      smstest.Sign(smstest.Token, address+"/", "MessageStatusundelivered"),
		"of another status":       smstest.Sign(smstest.Token, address, "MessageStatusdelivered"),
		"of the address alone":    smstest.Sign(smstest.Token, address),
		"a part of the right one": smstest.Sign(smstest.Token, address, "MessageStatusundelivered")[:20],
	} {
		err := x.service.RecordSMSReceipt(t.Context(), id.Ref{Tenant: x.tenant, ID: r.ID},
			notification.SMSReceipt{Signature: signature, Form: form})
		if apierr.From(err).Status != http.StatusForbidden {
			t.Errorf("a signature %s returns %v", name, err)
		}
	}
	if err := x.receipt(id.New(x.now()), "delivered"); apierr.From(err).Status != http.StatusNotFound {
		t.Errorf("a receipt of nothing returns %v", err)
	}
	quiet := x.replica(func(cfg *notification.Config) { cfg.SMSProvider = notification.SMSProvider{} })
	err := quiet.RecordSMSReceipt(t.Context(), id.Ref{Tenant: x.tenant, ID: r.ID},
		notification.SMSReceipt{Signature: smstest.Sign("", address, "MessageStatusundelivered"), Form: form})
	if apierr.From(err).Status != http.StatusForbidden {
		t.Errorf("without a provider a receipt returns %v", err)
	}
	x.awaitState(store.Sent)
	x.reported(event, events.SMSAccepted)
}

// The example of the provider's documentation of its signatures.
func TestASignatureIsReadAsTheProviderWritesIt(t *testing.T) {
	form := url.Values{
		"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675310"}, "Digits": {"1234"}, "From": {"+14158675310"},
		"To": {"+18005551212"},
	}
	const address = "https://mycompany.com/myapp.php?foo=1&bar=2"
	if r := (notification.SMSReceipt{Signature: "GvWf1cFY/Q7PnoempGyD5oXAezc=", Form: form}); !r.IsSigned("12345",
		address) {
		t.Error("the example's signature is refused")
	}
	if r := (notification.SMSReceipt{Signature: "GvWf1cFY/Q7PnoempGyD5oXAezc=", Form: form}); r.IsSigned("12346",
		address) {
		t.Error("the signature of another token is accepted")
	}
}

// The signatures are those of the provider's own library.
func TestThePortOfAnAddressIsSignedOrLeftOut(t *testing.T) {
	const name, path = "https://id.example.test", "/sms/receipts/1/2"
	const plain, port443, port8443 = "iRLfQGfoIr1WmkpGXHfhLc3u+xc=", "Bko+NQOla4UOL/UvYWuBOaU4u0c=",
		"dspLnGS62RjUZzwRv3mUNty8jf0="
	for _, c := range []struct {
		address, signature string
		want               bool
	}{
		{name + path, plain, true}, {name + path, port443, true}, {name + path, port8443, false},
		{name + ":443" + path, plain, true}, {name + ":443" + path, port443, true},
		{name + ":8443" + path, plain, true}, {name + ":8443" + path, port8443, true},
		{name + ":8443" + path, port443, false},
	} {
		r := notification.SMSReceipt{Signature: c.signature,
			Form: url.Values{"MessageStatus": {"delivered"}, "MessageSid": {"SM0"}}}
		if got := r.IsSigned("12345", c.address); got != c.want {
			t.Errorf("the signature %s at %s is accepted: %v", c.signature, c.address, got)
		}
	}
}

// logged collects what is logged until the test ends.
func logged(t *testing.T) *lockedText {
	before, text := slog.Default(), &lockedText{}
	slog.SetDefault(slog.New(slog.NewJSONHandler(text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { slog.SetDefault(before) })
	return text
}

type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func TestCodesAndNumbersAreNotLogged(t *testing.T) {
	text := logged(t)
	x := open(t)
	answers := []int{500, smstest.Drop}
	var asked atomic.Int64
	x.provider.Answers(func(form url.Values) (int, string) {
		return answers[min(int(asked.Add(1)), len(answers))-1], `{"code":1,"message":"` + form.Get("Body") + form.Get("To") +
			`"}`
	})
	x.order()
	x.run(x.service)
	x.await("tried", func(r row) bool { return r.Failures == 1 })
	n, err := pg.Value[int](t.Context(), x.db, `SELECT count(*) FROM deliveries d
		WHERE strpos(d::text, $1) > 0 OR strpos(d::text, $2) > 0`, code, "343933383137")
	if err != nil || n != 0 {
		t.Errorf("%d rows hold the code, %v", n, err)
	}
	x.turn(time.Minute)
	x.awaitState(store.Lost)
	for _, place := range []string{"deliveries", "outbox"} {
		n, err := pg.Value[int](t.Context(), x.db, `SELECT count(*) FROM `+place+` r
			WHERE strpos(r::text, $1) > 0 OR strpos(r::text, $2) > 0`, code, number[1:])
		if err != nil || n != 0 {
			t.Errorf("%d rows of %s hold the code or the number, %v", n, place, err)
		}
	}
	if reported := text.String(); !strings.Contains(reported, "SMS lost") || strings.Contains(reported, code) ||
		strings.Contains(reported, number[1:]) || strings.Contains(reported, smstest.Token) {
		t.Errorf("the log says:\n%s", reported)
	}
}
