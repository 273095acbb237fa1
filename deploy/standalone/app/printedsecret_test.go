package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/operatorlog"
)

// On Kubernetes a command prints no secret that is not encrypted.
func TestACommandPrintsNoSecretInAPod(t *testing.T) {
	t.Parallel()
	pod := func() *env.Source { return env.New([]string{"KUBERNETES_SERVICE_HOST=10.0.0.1"}) }
	for _, recipient := range []string{"", "age1"} {
		if err := NewExportKeyPair(pod(), recipient, io.Discard); !errors.Is(err, ErrUsage) {
			t.Errorf("with the recipient %q tenant key returns %v, want a usage error", recipient, err)
		}
		if err := AdminKey(t.Context(), pod(), "calm-otter", recipient, new(operatorlog.Event), io.Discard); !errors.Is(err, ErrUsage) {
			t.Errorf("with the recipient %q admin key returns %v, want a usage error", recipient, err)
		}
	}
	mine, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := NewExportKeyPair(pod(), mine.Recipient().String(), &out); err != nil {
		t.Fatal(err)
	}
	var pair struct{ PublicKey, Sealed string }
	if err := json.Unmarshal(out.Bytes(), &pair); err != nil {
		t.Fatal(err)
	}
	identity := openSealed(t, pair.Sealed, mine)
	made, err := age.ParseIdentities(strings.NewReader(identity))
	if err != nil || len(made) != 1 || recipientOf(t, identity) != pair.PublicKey {
		t.Errorf("the sealed identity is %q, %v, and its public key %s", identity, err, pair.PublicKey)
	}
	if shown, err := agesecret.Show("the secret", nil); shown.Secret != "the secret" || shown.Sealed != "" || err != nil {
		t.Errorf("without a recipient the command prints %+v, %v", shown, err)
	}
}

// openSealed returns the secret that is sealed for an identity.
func openSealed(t *testing.T, sealed string, identity age.Identity) string {
	t.Helper()
	plain, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), identity)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
