package tenantmove

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/doorward/doorward/pkg/secure"
)

// An export is encrypted for a public key, so that a holder of that key could make another
// export for it. Therefore the manifest has the SHA-256 of each file, and signatureFile has the
// signature of the manifest (Ed25519, RFC 8032). The key of the signature is derived from the
// master key of the exporting deployment. The importing deployment needs the public key, unless it has
// the same master key.

const (
	signatureFile    = "manifest.json.sig" // <public key> <signature>
	signaturePurpose = "signature of tenant exports"
)

var signatureEncoding = base64.RawURLEncoding.Strict()

func signingKey(secret secure.Secret) (private ed25519.PrivateKey, signer string) {
	private = ed25519.NewKeyFromSeed([]byte(secret.Reveal()))
	return private, signatureEncoding.EncodeToString(private.Public().(ed25519.PublicKey))
}

// signManifest returns the public key of this deployment, and the content of signatureFile.
func signManifest(ring *secure.Keyring, content []byte) (signer string, signature []byte) {
	_, secret := ring.Derive(signaturePurpose)
	private, signer := signingKey(secret)
	return signer, []byte(signer + " " + signatureEncoding.EncodeToString(ed25519.Sign(private, content)) + "\n")
}

// checkSignature refuses a manifest that is not signed with the key signer or, where that is
// empty, with a key of this deployment.
func (m *manifest) checkSignature(ring *secure.Keyring, folder, signer string) error {
	raw, err := os.ReadFile(filepath.Join(folder, signatureFile))
	if err != nil {
		return fmt.Errorf("the export is not signed: %w", err)
	}
	signedBy, encoded, _ := strings.Cut(strings.TrimSuffix(string(raw), "\n"), " ")
	public, keyErr := signatureEncoding.DecodeString(signedBy)
	signature, err := signatureEncoding.DecodeString(encoded)
	if err := errors.Join(keyErr, err); err != nil || len(public) != ed25519.PublicKeySize {
		return fmt.Errorf("%s was changed since the export: it is not <public key> <signature>", signatureFile)
	}
	if !ed25519.Verify(public, m.raw, signature) {
		return fmt.Errorf("%s or %s was changed since the export", manifestFile, signatureFile)
	}
	if signedBy == signer || signer == "" && isSigner(ring, signedBy) {
		return nil
	}
	return fmt.Errorf("the export is signed with the key %s, which is not that of --signer or of this deployment: "+
		"take the key from the exporting deployment, whose doorward tenant export has printed it, "+
		"and give it as --signer", signedBy)
}

// isSigner reports whether a deployment with one of these master keys signs with a public key.
func isSigner(ring *secure.Keyring, public string) bool {
	for _, secret := range ring.DeriveAll(signaturePurpose) {
		if _, signer := signingKey(secret); signer == public {
			return true
		}
	}
	return false
}

// checkFiles refuses a folder in which a file of the export was changed or is missing, or in
// which there is another file.
func (m *manifest) checkFiles(ctx context.Context, folder string) error {
	known := map[string]bool{manifestFile: true, signatureFile: true}
	for _, t := range m.Tables {
		for _, file := range t.Files {
			_, err := file.read(folder)
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			known[file.Name] = true
		}
	}
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if !known[entry.Name()] {
			return fmt.Errorf("%s is not of this export", entry.Name())
		}
	}
	return err
}

// read returns the content of a file, or an error if it was changed since the export.
func (f exportedFile) read(folder string) ([]byte, error) {
	if filepath.Base(f.Name) != f.Name {
		return nil, fmt.Errorf("the manifest names a file outside the folder, %s", f.Name)
	}
	content, err := os.ReadFile(filepath.Join(folder, f.Name))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 {
		return nil, fmt.Errorf("%s was changed since the export", f.Name)
	}
	return content, nil
}
