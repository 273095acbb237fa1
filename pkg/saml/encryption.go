package saml

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/rsa"
	"errors"

	"github.com/beevik/etree"
	"github.com/crewjam/saml/xmlenc"
)

// The allowed algorithms of XML Encryption 1.1. RSA with PKCS #1 v1.5 is not allowed, because of
// padding oracle attacks (Bleichenbacher).
var (
	keyTransports = map[string]bool{
		"http://www.w3.org/2001/04/xmlenc#rsa-oaep-mgf1p": true, "http://www.w3.org/2009/xmlenc11#rsa-oaep": true,
	}
	blockCiphers = map[string]cipherMode{
		"http://www.w3.org/2001/04/xmlenc#aes128-cbc": {16, false},
		"http://www.w3.org/2001/04/xmlenc#aes192-cbc": {24, false},
		"http://www.w3.org/2001/04/xmlenc#aes256-cbc": {32, false},
		"http://www.w3.org/2009/xmlenc11#aes128-gcm":  {16, true},
		"http://www.w3.org/2009/xmlenc11#aes192-gcm":  {24, true},
		"http://www.w3.org/2009/xmlenc11#aes256-gcm":  {32, true},
	}
	oaepHashes = map[string]crypto.Hash{
		"": crypto.SHA1, sha1Hash: crypto.SHA1, hashAlgorithms[0]: crypto.SHA256, hashAlgorithms[1]: crypto.SHA384,
		hashAlgorithms[2]: crypto.SHA512,
	}
	maskHashes = map[string]crypto.Hash{
		"": crypto.SHA1, "http://www.w3.org/2009/xmlenc11#mgf1sha1": crypto.SHA1,
		"http://www.w3.org/2009/xmlenc11#mgf1sha256": crypto.SHA256,
		"http://www.w3.org/2009/xmlenc11#mgf1sha384": crypto.SHA384,
		"http://www.w3.org/2009/xmlenc11#mgf1sha512": crypto.SHA512,
	}
)

type cipherMode struct {
	keySize int
	gcm     bool
}

var errEncrypted = errors.New("the encrypted assertion cannot be decrypted")

// decrypt returns the XML of an EncryptedAssertion (SAML 2.0 core, section 2.3.4). Its EncryptedKey is
// beside EncryptedData, or in the KeyInfo of it.
func decrypt(key *rsa.PrivateKey, encrypted *etree.Element) ([]byte, error) {
	data := childOf(encrypted, encryptionNamespace, "EncryptedData")
	if data == nil {
		return nil, errEncrypted
	}
	transported := childOf(encrypted, encryptionNamespace, "EncryptedKey")
	if info := childOf(data, signatureNamespace, "KeyInfo"); transported == nil && info != nil {
		transported = childOf(info, encryptionNamespace, "EncryptedKey")
	}
	if transported == nil {
		return nil, errEncrypted
	}
	mode, ok := blockCiphers[algorithmOf(data)]
	if !ok {
		return nil, errEncrypted
	}
	contentKey, err := decryptContentKey(key, transported)
	if err != nil || len(contentKey) != mode.keySize {
		return nil, errEncrypted
	}
	ciphertext, err := ciphertextOf(data)
	if err != nil {
		return nil, errEncrypted
	}
	return mode.open(contentKey, ciphertext)
}

// open decrypts with AES; the ciphertext begins with the initialization vector.
func (m cipherMode) open(key, ciphertext []byte) ([]byte, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errEncrypted
	}
	if m.gcm {
		opener, err := cipher.NewGCM(block)
		if err != nil || len(ciphertext) < opener.NonceSize() {
			return nil, errEncrypted
		}
		return opener.Open(nil, ciphertext[:opener.NonceSize()], ciphertext[opener.NonceSize():], nil)
	}
	if len(ciphertext) < 2*aes.BlockSize || len(ciphertext)%aes.BlockSize != 0 {
		return nil, errEncrypted
	}
	plain := make([]byte, len(ciphertext)-aes.BlockSize)
	cipher.NewCBCDecrypter(block, ciphertext[:aes.BlockSize]).CryptBlocks(plain, ciphertext[aes.BlockSize:])
	padding := int(plain[len(plain)-1])
	if padding < 1 || padding > aes.BlockSize {
		return nil, errEncrypted
	}
	return plain[:len(plain)-padding], nil
}

// decryptContentKey decrypts the key with which the data is encrypted.
func decryptContentKey(key *rsa.PrivateKey, element *etree.Element) ([]byte, error) {
	method := childOf(element, encryptionNamespace, "EncryptionMethod")
	if method == nil || !keyTransports[algorithmOf(element)] {
		return nil, errEncrypted
	}
	hash, known := oaepHashes[algorithmIn(method, signatureNamespace, "DigestMethod")]
	mask, knownMask := maskHashes[algorithmIn(method, "http://www.w3.org/2009/xmlenc11#", "MGF")]
	ciphertext, err := ciphertextOf(element)
	if err != nil || !known || !knownMask {
		return nil, errEncrypted
	}
	opened, err := key.Decrypt(rand.Reader, ciphertext, &rsa.OAEPOptions{Hash: hash, MGFHash: mask})
	if err == nil {
		return opened, nil
	}
	// Some libraries use the hash of DigestMethod for the mask too, and ignore MGF.
	return xmlenc.Decrypt(key, element)
}

func algorithmOf(element *etree.Element) string {
	return algorithmIn(element, encryptionNamespace, "EncryptionMethod")
}

func algorithmIn(element *etree.Element, namespace, name string) string {
	if child := childOf(element, namespace, name); child != nil {
		return child.SelectAttrValue("Algorithm", "")
	}
	return ""
}

func ciphertextOf(element *etree.Element) ([]byte, error) {
	data := childOf(element, encryptionNamespace, "CipherData")
	if data == nil {
		return nil, errEncrypted
	}
	return decodeBase64(textOf(childOf(data, encryptionNamespace, "CipherValue")))
}
