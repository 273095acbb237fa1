package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

// sign writes cosign.pub, and SHA256SUMS.sig as cosign sign-blob does: an ECDSA signature over the SHA-256 of the
// file, in base64. The key is one of cosign generate-key-pair, which COSIGN_PASSWORD opens, or of openssl in PEM.
func (r *release) sign(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	password := func(bool) ([]byte, error) { return []byte(os.Getenv("COSIGN_PASSWORD")), nil }
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(content, password)
	if err != nil {
		return fmt.Errorf("read the key %s: %w", path, err)
	}
	key, ok := private.(*ecdsa.PrivateKey)
	if !ok {
		return fmt.Errorf("the key %s is none of ECDSA, as cosign makes it", path)
	}
	sums, err := os.ReadFile(filepath.Join(r.to, "SHA256SUMS"))
	if err != nil {
		return err
	}
	digest := sha256.Sum256(sums)
	signature, err := ecdsa.SignASN1(rand.Reader, key, digest[:])
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	if err := r.write("SHA256SUMS.sig", []byte(base64.StdEncoding.EncodeToString(signature))); err != nil {
		return err
	}
	return r.write("cosign.pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
}
