package app

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
)

// deadLettersAreResolved resolves the dead letters of a standalone from another process.
func deadLettersAreResolved(p *product) {
	source := func() *env.Source {
		return env.New([]string{"DOORWARD_DATA_DIR=" + p.dir, "PATH=" + os.Getenv("PATH")})
	}
	list := func(n int) {
		p.Helper()
		deadline := time.Now().Add(30 * time.Second)
		var out bytes.Buffer
		for {
			out.Reset()
			if err := ListDeadLetters(p.Context(), source(), DeadLetterSelection{}, &out); err != nil {
				p.Fatal(err)
			}
			if strings.Count(out.String(), "\n") == n {
				return
			}
			if time.Now().After(deadline) {
				p.Fatalf("the dead letters are, instead of %d:\n%s", n, out.String())
			}
		}
	}
	list(0)
	var cfg struct {
		URL secure.Secret `env:"DATABASE_URL"`
	}
	p.source.Load(&cfg)
	db, err := pg.OpenWithoutMigrating(p.Context(), pg.Config{URL: cfg.URL, Schema: "directory"})
	if err != nil {
		p.Fatal(err)
	}
	defer db.Close()
	if _, err := pg.Exec(p.Context(), db, `INSERT INTO outbox (tenant_id, id, topic, key, envelope) VALUES ($1, $1, 'doorward.directory', $1, '[]')`,
		id.New(time.Now())); err != nil {
		p.Fatal(err)
	}
	// An event of the process wakes the relay.
	made, _ := p.send("POST", "/directories", `{"name": "gone"}`, 201)
	p.send("DELETE", href(made), "", 204)
	list(5) // of application, oauth, mfa, notification and idsite
	var out bytes.Buffer
	only := DeadLetterSelection{Group: "doorward.mfa"}
	if err := ResolveDeadLetters(p.Context(), source(), true, only, &out); err != nil || out.String() != "1 dead letters were sent again\n" {
		p.Fatalf("sending the dead letters again printed %s, %v", out.String(), err)
	}
	list(9) // each group reads it again
	if err := ResolveDeadLetters(p.Context(), source(), false, DeadLetterSelection{}, io.Discard); err != nil {
		p.Fatal(err)
	}
	list(0)
}

func TestWithoutABrokerThereAreNoDeadLetters(t *testing.T) {
	err := ListDeadLetters(t.Context(), env.New([]string{"DOORWARD_DATA_DIR=" + t.TempDir()}), DeadLetterSelection{}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "KAFKA_BROKERS") {
		t.Errorf("listing dead letters without a broker returned %v", err)
	}
}
