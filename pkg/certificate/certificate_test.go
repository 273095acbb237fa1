package certificate

import (
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

func TestMain(m *testing.M) {
	reloadInterval = time.Millisecond
	os.Exit(m.Run())
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	p, err := run.New(t.Context(), "test", run.Config{OpsListen: "127.0.0.1:0", Stop: 10 * time.Second,
		Telemetry: telemetry.Config{LogLevel: "error"}}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	var files sync.Map // what a chain and a key are read from
	read := func() (pair Pair, err error) {
		chain, found := files.Load("chain")
		key, both := files.Load("key")
		if !found || !both {
			return pair, errors.New("there is no such file")
		}
		return Pair{chain.(string), secure.Secret(key.(string))}, nil
	}
	first, second := certtest.SelfSigned(time.Now(), time.Unix(2e9, 0)), certtest.SelfSigned(time.Now(), time.Unix(2e9, 0))
	files.Store("chain", first.Chain())
	if _, err := Open(p, read); err == nil {
		t.Fatal("a certificate without a key is opened")
	}
	files.Store("key", first.PrivateKey())
	c, err := Open(p, read)
	if err != nil {
		t.Fatal(err)
	}
	files.Store("chain", second.Chain())
	if err := c.load(); err == nil || !c.Current().Leaf.Equal(first.Certificate) {
		t.Fatalf("a certificate is used without its key: %v", err)
	}
	files.Store("key", second.PrivateKey())
	for deadline := time.Now().Add(20 * time.Second); !c.Current().Leaf.Equal(second.Certificate); {
		if time.Now().After(deadline) {
			t.Fatal("the renewed certificate is not used")
		}
	}
	answer := httptest.NewRecorder()
	p.Telemetry.Metrics.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(answer.Body.String(), "\ndoorward_certificate_not_after_timestamp_seconds 2e+09") {
		t.Error("no metric says when the certificate ends")
	}
}
