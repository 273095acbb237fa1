package agesecret

import (
	"errors"
	"io"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"
)

func TestARecipientAloneOpensASealedSecret(t *testing.T) {
	t.Parallel()
	owner, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	recipients, err := Recipients(owner.Recipient().String())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := Seal("the secret", recipients...)
	if err != nil || !strings.HasPrefix(sealed, armor.Header) || strings.Contains(sealed, "the secret") {
		t.Fatalf("the sealed secret is %q, %v", sealed, err)
	}
	plain, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), owner)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(plain); err != nil || string(text) != "the secret" {
		t.Errorf("the secret is %q, %v", text, err)
	}
	if _, err := age.Decrypt(armor.NewReader(strings.NewReader(sealed)), other); err == nil {
		t.Error("another identity opens the secret")
	}
	for _, text := range []string{"age1", "", "ssh"} {
		if _, err := Recipients(text); !errors.Is(err, ErrRecipient) {
			t.Errorf("the recipient %q is %v", text, err)
		}
	}
}
