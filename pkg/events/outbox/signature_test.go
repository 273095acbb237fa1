package outbox_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/events/outbox"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/worktest"
)

func TestAMessageWithoutAValidSignatureBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(1) // its row has no signature, as those of the previous release: the relay signs
	stop := worktest.Start(b, b.outbox.Relay(b.cfg))
	b.eventually("an empty outbox", func() bool {
		n, err := pg.Value[int](t.Context(), b.db, `SELECT count(*) FROM outbox`)
		return err == nil && n == 0
	})
	stop()
	topic := outbox.Topic("sender")
	envelope := func(account id.ID) []byte {
		data, err := json.Marshal(events.AccountDeleted{Tenant: b.tenant, Account: account})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(events.Envelope{ID: id.New(time.Now()), Type: "AccountDeleted", Tenant: b.tenant, Subject: account, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	forged, other := envelope(id.New(time.Now())), b.cfg
	other.Secret = "another secret of thirty-two bytes"
	messages := []kafka.Message{
		{Value: forged},
		{Value: forged, Headers: []kafka.Header{{Key: "signature", Value: []byte("no hexadecimal text")}}},
		{Value: forged, Headers: []kafka.Header{outbox.Sign(other, topic, forged)}},
		{Value: forged, Headers: []kafka.Header{outbox.Sign(b.cfg, "doorward.other", forged)}},
		{Value: forged, Headers: []kafka.Header{outbox.Sign(b.cfg, topic, envelope(id.New(time.Now())))}},
		{Value: []byte("{"), Headers: []kafka.Header{outbox.Sign(b.cfg, topic, []byte("{"))}},
	}
	writer := &kafka.Writer{Addr: kafka.TCP(b.cfg.Brokers...), Topic: topic, BatchTimeout: time.Millisecond, RequiredAcks: kafka.RequireAll}
	defer func() { _ = writer.Close() }()
	if err := writer.WriteMessages(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	worktest.Start(b, b.consumer())
	for _, message := range b.deadLetters(len(messages)) {
		if header(message, "error") == "" {
			t.Errorf("the dead letter has the headers %v", message.Headers)
		}
	}
	b.want(accounts)
	if n := len(b.effects()); n != 1 {
		t.Errorf("%d effects, want that of the event that the relay has signed", n)
	}
}

func TestEventsNeedASecret(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.cfg.Secret = ""
	if err := b.outbox.Relay(b.cfg)(t.Context()); err == nil {
		t.Error("a relay starts without the internal secret")
	}
	if err := b.consumer()(t.Context()); err == nil {
		t.Error("a consumer starts without the internal secret")
	}
}

// A message is read during a rotation whichever of the two secrets it was signed under.
func TestAMessageUnderAnAcceptedSecretIsHandled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	accounts := b.emit(1)
	sending, reading := b.cfg, b.cfg
	sending.Secret = "another secret of thirty-two bytes"
	reading.Accepted = sending.Secret
	worktest.Start(b, b.outbox.Relay(sending))
	worktest.Start(b, reader(b.db).Consume(reading, []string{"sender"}, count(b.outbox)))
	b.want(accounts)
}
