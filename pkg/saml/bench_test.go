package saml

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"syscall"
	"testing"
	"time"
)

// processorTime runs a benchmark and reports the processor time of an operation too,
// which other work on the machine changes less than the time that it takes.
func processorTime(b *testing.B, name string, operation func() error) {
	b.Run(name, func(b *testing.B) {
		used := func() time.Duration {
			var usage syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
				b.Fatal(err)
			}
			return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		}
		before, operations := used(), 0
		for b.Loop() {
			if err := operation(); err != nil {
				b.Fatal(err)
			}
			operations++
		}
		b.ReportMetric(float64((used()-before).Microseconds())/float64(operations), "cpu-µs/op")
	})
}

// BenchmarkLogin is what a login costs at both ends, with the signatures and checks
// of signatures that BenchmarkSignatures measures alone.
func BenchmarkLogin(b *testing.B) {
	pair, err := NewKeyPair("idp", now)
	if err != nil {
		b.Fatal(err)
	}
	answer := Response{
		Issuer: otherEntity, Audience: ownEntity, ConsumerURL: ownConsumer, InResponseTo: "_request", NameID: "jo@example.test",
		Attributes: []Attribute{{Name: "mail", Values: []string{"jo@example.test"}}}, Now: now,
	}
	response, err := answer.Sign(pair, SHA256)
	if err != nil {
		b.Fatal(err)
	}
	encoded := encode(string(response))
	expected := ServiceProvider{
		EntityID: ownEntity, ConsumerURL: ownConsumer, RequestID: "_request", Certificates: []string{pair.Certificate}, Now: now,
	}
	processorTime(b, "request", func() error {
		request := LoginRequest{ID: "_r", Issuer: ownEntity, Destination: "https://idp.test", ConsumerURL: ownConsumer, Now: now}
		_, err := request.Redirect(pair, SHA256, "relay")
		return err
	})
	processorTime(b, "response with two signatures", func() error {
		_, err := expected.VerifyResponse(encoded)
		return err
	})
	processorTime(b, "sign a response twice", func() error {
		_, err := answer.Sign(pair, SHA256)
		return err
	})
}

// BenchmarkSignatures is one signature of RSA, and one check.
func BenchmarkSignatures(b *testing.B) {
	pair, err := NewKeyPair("idp", now)
	if err != nil {
		b.Fatal(err)
	}
	key := pair.Key
	sum := sha256.Sum256([]byte("x"))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
	if err != nil {
		b.Fatal(err)
	}
	processorTime(b, "sign", func() error {
		_, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		return err
	})
	processorTime(b, "verify", func() error { return rsa.VerifyPKCS1v15(&key.PublicKey, crypto.SHA256, sum[:], signature) })
}
