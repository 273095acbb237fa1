package rpc_test

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/certificate/certtest"
	"github.com/doorward/doorward/pkg/rpc"
)

// trusted is a certificate that the system trusts while the tests run.
var trusted tls.Certificate

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "rpc")
	if err != nil {
		panic(err)
	}
	var chain []byte
	trusted, chain = issue("127.0.0.1", name)
	file := filepath.Join(dir, "authorities.pem")
	if err := os.WriteFile(file, chain, 0o600); err != nil {
		panic(err)
	}
	// The authorities of the system are read once.
	_ = os.Setenv("SSL_CERT_FILE", file)
	_ = os.Setenv("SSL_CERT_DIR", dir)
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// issue makes a certificate for hosts that signs itself.
func issue(hosts ...string) (pair tls.Certificate, chain []byte) {
	made := certtest.Now(hosts...)
	return made.TLS(), []byte(made.Chain())
}

// encrypted is a replica that speaks TLS alone.
func encrypted(t *testing.T, certificate tls.Certificate, answer func(context.Context, question) (reply, error)) (address string) {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	serve(t, listener, answer)
	return "https://" + listener.Addr().String()
}

func TestACallGoesByTLSToAReplicaWhoseCertificateIsTrusted(t *testing.T) {
	unknown, _ := issue("127.0.0.1")
	stranger := encrypted(t, unknown, func(context.Context, question) (reply, error) {
		t.Error("a replica is asked whose certificate is not trusted")
		return reply{}, nil
	})
	peer := peerOf(t, stranger, encrypted(t, trusted, echo))
	for range 4 {
		if got, err := ask(t.Context(), t, peer, "hello"); err != nil || got.Text != "hello" {
			t.Fatalf("Call = %+v, %v", got, err)
		}
	}
	_, err := rpc.Call[question, reply](t.Context(), peerOf(t, stranger), "test.Ask", question{"hello"})
	var untrusted *tls.CertificateVerificationError
	if !errors.Is(err, apierr.Unavailable) || !errors.As(err, &untrusted) {
		t.Errorf("Call = %v", err)
	}
	plain, _ := replica(t, echo)
	if _, err := ask(t.Context(), t, peerOf(t, "https"+plain[len("http"):]), "hello"); !errors.Is(err, apierr.Unavailable) {
		t.Errorf("a call by TLS to a replica without is %v", err)
	}
}
