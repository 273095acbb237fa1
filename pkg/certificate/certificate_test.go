package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/run"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/pkg/telemetry"
)

func TestMain(m *testing.M) {
	reloadInterval = time.Millisecond
	os.Exit(m.Run())
}

// made is a new certificate and its key.
func made(t *testing.T, serial int64) (chain, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Unix(2e9, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
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
	chain, key := made(t, 1)
	files.Store("chain", chain)
	if _, err := Open(p, read); err == nil {
		t.Fatal("a certificate without a key is opened")
	}
	files.Store("key", key)
	c, err := Open(p, read)
	if err != nil {
		t.Fatal(err)
	}
	chain, key = made(t, 2)
	files.Store("chain", chain)
	if err := c.load(); err == nil || c.Current().Leaf.SerialNumber.Int64() != 1 {
		t.Fatalf("a certificate is used without its key: %v", err)
	}
	files.Store("key", key)
	for deadline := time.Now().Add(20 * time.Second); c.Current().Leaf.SerialNumber.Int64() != 2; {
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
