package saml

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/beevik/etree"

	"github.com/doorward/doorward/pkg/apierr"
)

// encrypted puts an assertion encrypted into its response. The key is transported
// with OAEP, with the hash and that of its mask.
func encrypted(t *testing.T, key *rsa.PublicKey, response, assertion *etree.Element, algorithm string, hash, mask crypto.Hash) {
	t.Helper()
	mode, content := blockCiphers[algorithm], make([]byte, 32)
	content = content[:mode.keySize]
	plain, err := marshalCanonical(assertion)
	if err != nil {
		t.Fatal(err)
	}
	vector := make([]byte, aes.BlockSize)
	for _, random := range [][]byte{content, vector} {
		if _, err := rand.Read(random); err != nil {
			t.Fatal(err)
		}
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		t.Fatal(err)
	}
	var ciphertext []byte
	if mode.gcm {
		sealer, err := cipher.NewGCM(block)
		if err != nil {
			t.Fatal(err)
		}
		ciphertext = sealer.Seal(vector[:sealer.NonceSize()], vector[:sealer.NonceSize()], plain, nil)
	} else {
		padding := aes.BlockSize - len(plain)%aes.BlockSize
		plain = append(plain, bytes.Repeat([]byte{byte(padding)}, padding)...)
		ciphertext = append(ciphertext, vector...)
		ciphertext = append(ciphertext, plain...)
		cipher.NewCBCEncrypter(block, vector).CryptBlocks(ciphertext[aes.BlockSize:], ciphertext[aes.BlockSize:])
	}
	transported, err := rsa.EncryptOAEPWithOptions(rand.Reader, key, content, &rsa.OAEPOptions{Hash: hash, MGFHash: mask})
	if err != nil {
		t.Fatal(err)
	}
	hashName, maskName := sha1Hash, "http://www.w3.org/2009/xmlenc11#mgf1sha1"
	if hash == crypto.SHA256 {
		hashName = hashAlgorithms[0]
	}
	if mask == crypto.SHA256 {
		maskName = "http://www.w3.org/2009/xmlenc11#mgf1sha256"
	}
	element := root(t, `<saml:EncryptedAssertion xmlns:saml="`+assertionNamespace+`"><xenc:EncryptedData xmlns:xenc="`+encryptionNamespace+
		`"><xenc:EncryptionMethod Algorithm="`+algorithm+`"/><ds:KeyInfo xmlns:ds="`+signatureNamespace+`"><xenc:EncryptedKey>`+
		`<xenc:EncryptionMethod Algorithm="http://www.w3.org/2009/xmlenc11#rsa-oaep"><ds:DigestMethod Algorithm="`+hashName+
		`"/><x:MGF xmlns:x="http://www.w3.org/2009/xmlenc11#" Algorithm="`+maskName+`"/></xenc:EncryptionMethod><xenc:CipherData><xenc:CipherValue>`+
		base64.StdEncoding.EncodeToString(transported)+`</xenc:CipherValue></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo><xenc:CipherData>`+
		`<xenc:CipherValue>`+base64.StdEncoding.EncodeToString(ciphertext)+`</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion>`)
	response.RemoveChild(assertion)
	response.AddChild(element)
}

func TestEncryptedAssertions(t *testing.T) {
	p := newParty(t)
	own, key := newPair(t)
	expected := p.expects()
	expected.KeyPair = func() (KeyPair, error) { return own, nil }
	for algorithm := range blockCiphers {
		for _, hash := range []crypto.Hash{crypto.SHA1, crypto.SHA256} {
			response, assertion := p.parts()
			p.sign(assertion)
			encrypted(t, &key.PublicKey, response, assertion, algorithm, hash, hash)
			login, err := expected.VerifyResponse(encode(text(t, response)))
			if err != nil || login.NameID != "jo@example.test" {
				t.Errorf("%s with %s returns %+v, %v", algorithm, hash, login, err)
			}
		}
	}
	const algorithm = "http://www.w3.org/2009/xmlenc11#aes256-gcm"
	t.Run("in a signed response", func(t *testing.T) {
		response, assertion := p.parts()
		encrypted(t, &key.PublicKey, response, assertion, algorithm, crypto.SHA256, crypto.SHA1)
		p.sign(response)
		if _, err := expected.VerifyResponse(encode(text(t, response))); err != nil {
			t.Error(err)
		}
	})
	t.Run("what is wrong with one is one error", func(t *testing.T) {
		unsigned, assertion := p.parts()
		encrypted(t, &key.PublicKey, unsigned, assertion, algorithm, crypto.SHA256, crypto.SHA256)
		foreign, assertion := p.parts()
		p.sign(assertion)
		_, other := newPair(t)
		encrypted(t, &other.PublicKey, foreign, assertion, algorithm, crypto.SHA256, crypto.SHA256)
		nested, assertion := p.parts()
		p.sign(assertion)
		assertion.AddChild(assertion.Copy())
		encrypted(t, &key.PublicKey, nested, assertion, algorithm, crypto.SHA256, crypto.SHA256)
		reason := ""
		for what, response := range map[string]string{
			"no signature": text(t, unsigned), "another key": text(t, foreign), "an assertion in an assertion": text(t, nested),
			"RSA without OAEP":     strings.Replace(text(t, unsigned), "xmlenc11#rsa-oaep", "xmlenc#rsa-1_5", 1),
			"another cipher":       strings.Replace(text(t, unsigned), "aes256-gcm", "tripledes-cbc", 1),
			"a ciphertext cut off": strings.Replace(text(t, unsigned), "</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>", "AAAA</xenc:CipherValue></xenc:CipherData></xenc:EncryptedData>", 1),
		} {
			_, err := expected.VerifyResponse(encode(response))
			if !errors.Is(err, apierr.SAMLSignature) || reason != "" && apierr.From(err).Reason != reason {
				t.Errorf("%s returns %v", what, err)
				continue
			}
			reason = apierr.From(err).Reason
		}
	})
}
