package secure

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// The algorithms of signatures with key pairs (RFC 7518, section 3.1; RFC 8037).
const (
	RS256 = "RS256"
	PS256 = "PS256"
	ES256 = "ES256"
	EdDSA = "EdDSA"
)

// SigningAlgorithms are all of them.
var SigningAlgorithms = []string{RS256, ES256, PS256, EdDSA}

var signingMethods = map[string]jwt.SigningMethod{
	RS256: jwt.SigningMethodRS256, PS256: jwt.SigningMethodPS256, ES256: jwt.SigningMethodES256,
	EdDSA: jwt.SigningMethodEdDSA,
}

// minRSABits is the least length of an RSA key (RFC 7518, section 3.3).
const minRSABits = 2048

// SigningKey is a key pair that signs JWTs with one algorithm.
type SigningKey struct {
	id, algorithm string
	signer        crypto.Signer
}

// NewSigningKey makes a key pair for an algorithm. The id is the kid of its signatures.
func NewSigningKey(id, algorithm string) (k SigningKey, err error) {
	k = SigningKey{id: id, algorithm: algorithm}
	switch algorithm {
	case RS256, PS256:
		k.signer, err = rsa.GenerateKey(rand.Reader, minRSABits)
	case ES256:
		k.signer, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case EdDSA:
		_, k.signer, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("secure: no signing algorithm %q", algorithm)
	}
	return k, err
}

// ParseSigningKey reads a text of Encode.
func ParseSigningKey(id, algorithm string, encoded Secret) (SigningKey, error) {
	k := SigningKey{id: id, algorithm: algorithm}
	der, err := base64.StdEncoding.DecodeString(encoded.Reveal())
	if err != nil {
		return k, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return k, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok || !fits(algorithm, signer.Public()) {
		return k, fmt.Errorf("secure: the key is not one of %s", algorithm)
	}
	k.signer = signer
	return k, nil
}

// Encode returns the private key (PKCS #8, in Base64), to be sealed.
func (k SigningKey) Encode() (Secret, error) {
	der, err := x509.MarshalPKCS8PrivateKey(k.signer)
	return Secret(base64.StdEncoding.EncodeToString(der)), err
}

// JWK returns the public key as a JSON Web Key (RFC 7517).
func (k SigningKey) JWK() (json.RawMessage, error) {
	return jose.JSONWebKey{Key: k.signer.Public(), KeyID: k.id, Algorithm: k.algorithm, Use: "sig"}.MarshalJSON()
}

// Sign returns the JWT of claims, whose header has the kid, the alg and the given members, such as typ.
func (k SigningKey) Sign(header map[string]any, claims Claims) (Secret, error) {
	token := jwt.NewWithClaims(signingMethods[k.algorithm], claims)
	maps.Copy(token.Header, header)
	token.Header["kid"] = k.id
	text, err := token.SignedString(k.signer)
	return Secret(text), err
}

// VerificationKey is a public key that verifies signatures of JWTs.
type VerificationKey struct{ jwk jose.JSONWebKey }

// ParseVerificationKey reads a public JSON Web Key. It returns ErrToken for any other text: a symmetric or a
// private key, an RSA key that is too short, a key that is not for signatures or for another algorithm.
func ParseVerificationKey(text []byte) (VerificationKey, error) {
	var k VerificationKey
	if err := k.jwk.UnmarshalJSON(text); err != nil || !k.jwk.Valid() || !k.jwk.IsPublic() || k.jwk.Use != "" &&
		k.jwk.Use != "sig" {
		return k, ErrToken
	}
	if !slices.ContainsFunc(SigningAlgorithms, k.Verifies) {
		return k, ErrToken
	}
	return k, nil
}

// ParseKeySet reads a set of public JSON Web Keys (RFC 7517, section 5). A key of a type that is not known is
// left out; a private or symmetric key makes the whole set ErrToken, because it was published.
func ParseKeySet(text []byte) ([]VerificationKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys == nil {
		return nil, ErrToken
	}
	var keys []VerificationKey
	for _, raw := range set.Keys {
		var jwk jose.JSONWebKey
		if err := jwk.UnmarshalJSON(raw); err == nil && !jwk.IsPublic() {
			return nil, ErrToken
		}
		if k, err := ParseVerificationKey(raw); err == nil {
			keys = append(keys, k)
		}
	}
	return keys, nil
}

// ID returns the kid of the key; empty where it has none.
func (k VerificationKey) ID() string { return k.jwk.KeyID }

// Verifies reports whether the key is one for an algorithm.
func (k VerificationKey) Verifies(algorithm string) bool {
	return (k.jwk.Algorithm == "" || k.jwk.Algorithm == algorithm) && fits(algorithm, k.jwk.Key)
}

// Thumbprint returns the thumbprint of the key (RFC 7638), as the claim jkt has it.
func (k VerificationKey) Thumbprint() string {
	sum, _ := k.jwk.Thumbprint(crypto.SHA256) // fails for keys that ParseVerificationKey refuses
	return base64.RawURLEncoding.EncodeToString(sum)
}

// fits reports whether a public key is one for an algorithm.
func fits(algorithm string, key crypto.PublicKey) bool {
	switch key := key.(type) {
	case *rsa.PublicKey:
		return (algorithm == RS256 || algorithm == PS256) && key.N.BitLen() >= minRSABits
	case *ecdsa.PublicKey:
		return algorithm == ES256 && key.Curve == elliptic.P256()
	case ed25519.PublicKey:
		return algorithm == EdDSA
	}
	return false
}

// UnverifiedHeader returns the header of a JWT, or ErrToken. It verifies no signature: the header says which
// key to try, and nothing may be allowed because of it.
func UnverifiedHeader(text Secret) (map[string]any, error) {
	token, _, err := parser.ParseUnverified(text.Reveal(), Claims{})
	if err != nil {
		return nil, ErrToken
	}
	return token.Header, nil
}

// Verify verifies the signature of a JWT with the algorithm that the caller names, whatever alg its header has
// (algorithm confusion), and returns its claims. A header with crit is refused, as no extension is known
// (RFC 7515, section 4.1.11). Times are not validated.
func (k VerificationKey) Verify(text Secret, algorithm string) (Claims, error) {
	claims := Claims{}
	if !k.Verifies(algorithm) {
		return nil, ErrToken
	}
	one := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithStrictDecoding(),
		jwt.WithoutClaimsValidation())
	token, err := one.ParseWithClaims(text.Reveal(), claims, func(*jwt.Token) (any, error) { return k.jwk.Key, nil })
	if err != nil {
		return nil, ErrToken
	}
	if _, critical := token.Header["crit"]; critical {
		return nil, ErrToken
	}
	return claims, nil
}
