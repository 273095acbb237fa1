package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
)

func TestTheChangesOfAReleaseAreItsSection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "CHANGELOG.md")
	text := "# Changelog\n\n## 1.1.0 - 2027-01-15\n\n- Newer.\n\n### Upgrade\n\nUpgrade from 1.0.2 or later.\n\n" +
		"## 1.0.0\n\n- First.\n\n### Upgrade\n\nUpgrade from no release.\n\n## 0.9.0\n\n- Nothing else.\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	newer, err := readChanges(path, "1.1.0")
	if err != nil || newer.from == nil || *newer.from != "1.0.2" || strings.TrimSpace(newer.notes) != "- Newer." {
		t.Errorf("1.1.0 has the changes %+v, %v", newer, err)
	}
	first, err := readChanges(path, "1.0.0")
	if err != nil || first.from != nil || strings.TrimSpace(first.notes) != "- First." {
		t.Errorf("1.0.0 has the changes %+v, %v", first, err)
	}
	for version, want := range map[string]string{"0.9.0": "### Upgrade", "2.0.0": "no section"} {
		if _, err := readChanges(path, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s has the error %v, want %q", version, err, want)
		}
	}
}

// The key is as cosign generate-key-pair makes it, under a password.
func TestTheChecksumsAreSignedAsCosignSigns(t *testing.T) {
	t.Setenv("COSIGN_PASSWORD", "open sesame")
	private, public, err := cryptoutils.GeneratePEMEncodedECDSAKeyPair(elliptic.P256(), cryptoutils.StaticPasswordFunc([]byte("open sesame")))
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "cosign.key")
	if err := os.WriteFile(key, private, 0o600); err != nil {
		t.Fatal(err)
	}
	r := &release{to: t.TempDir()}
	sums := []byte("00  file\n")
	if err := r.write("SHA256SUMS", sums); err != nil {
		t.Fatal(err)
	}
	if err := r.sign(key); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(filepath.Join(r.to, "cosign.pub"))
	if err != nil || string(written) != string(public) {
		t.Errorf("the public key is\n%s, %v, want\n%s", written, err, public)
	}
	text, err := os.ReadFile(filepath.Join(r.to, "SHA256SUMS.sig"))
	if err != nil {
		t.Fatal(err)
	}
	signature, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(written)
	verifier, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if digest := sha256.Sum256(sums); !ecdsa.VerifyASN1(verifier.(*ecdsa.PublicKey), digest[:], signature) {
		t.Error("the signature does not verify")
	}
	t.Setenv("COSIGN_PASSWORD", "wrong")
	if err := r.sign(key); err == nil {
		t.Error("a wrong password opens the key")
	}
}

// The image of a process has one manifest for each platform, and the digest is the same whenever it is made.
func TestAnImageHasEachPlatformAndOneDigest(t *testing.T) {
	from := t.TempDir()
	for _, platform := range []string{"linux_amd64", "linux_arm64"} {
		for _, name := range []string{"bin/oauth", "sbom/oauth.cdx.json", "root/etc/passwd"} {
			path := filepath.Join(from, platform, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(platform), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var digests []string
	for range 2 {
		r := &release{Version: "1.0.0", from: from, to: t.TempDir(), platforms: []string{"darwin_arm64", "linux_amd64", "linux_arm64"}}
		if err := r.images(); err != nil {
			t.Fatal(err)
		}
		sums, err := r.sums()
		if err != nil || len(sums) != 1 || sums[0].name != "images/oauth_1.0.0.oci.tar" {
			t.Fatalf("the release has %v, %v", sums, err)
		}
		archive, err := os.ReadFile(filepath.Join(r.to, sums[0].name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"architecture":"amd64"`, `"architecture":"arm64"`, strings.TrimPrefix(r.Images["oauth"], "sha256:")} {
			if !strings.Contains(string(archive), want) {
				t.Errorf("the archive of the image has no %s", want)
			}
		}
		digests = append(digests, r.Images["oauth"]+sums[0].sha256)
	}
	if digests[0] != digests[1] {
		t.Errorf("the image is %s once and %s twice", digests[0], digests[1])
	}
}
