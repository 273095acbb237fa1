package oauth_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/oauth"
	"github.com/doorward/doorward/services/oauth/oauthtest"
)

// Attacks on the signature, and on the choice of its key.
func TestForgedTokens(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	other := d.NewSite(t)
	issued := d.LogIn(t, d.Site)
	header, claims := decodeJWT(t, issued.Access)
	parts := strings.Split(issued.Access.Reveal(), ".")
	b64 := base64.RawURLEncoding.EncodeToString
	none := b64([]byte(`{"alg":"none","stt":"access","kid":"` + d.Key + `"}`))

	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	publicPEM := secure.Secret(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}))
	rs256 := b64([]byte(`{"alg":"RS256","stt":"access","kid":"`+d.Key+`"}`)) + "." + parts[1]
	digest := sha256.Sum256([]byte(rs256))
	signature, err := rsa.SignPKCS1v15(nil, private, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}

	endUserKey, err := d.Service.CreateAPIKey(t.Context(), d.Tenant, d.Account, oauth.NewAPIKey{})
	if err != nil {
		t.Fatal(err)
	}

	forgeries := map[string]secure.Secret{
		"nothing":                                "",
		"no JWT":                                 "abc",
		"two parts":                              secure.Secret(parts[0] + "." + parts[1]),
		"four parts":                             issued.Access + ".x",
		"a changed signature":                    secure.Secret(parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2]))),
		"the signature in another spelling":      secure.Secret(respelled(issued.Access.Reveal())),
		"no signature":                           secure.Secret(parts[0] + "." + parts[1] + "."),
		"claims of another token":                secure.Secret(parts[0] + "." + strings.Split(issued.Refresh.Reveal(), ".")[1] + "." + parts[2]),
		"alg none":                               secure.Secret(none + "." + parts[1] + "."),
		"alg none, signed":                       secure.Secret(none + "." + parts[1] + "." + parts[2]),
		"alg None":                               secure.Secret(b64([]byte(`{"alg":"None","kid":"`+d.Key+`"}`)) + "." + parts[1] + "."),
		"no alg":                                 signForgedJWT(t, with(header, "alg", nil), claims, d.Secret),
		"alg HS512 in the header":                signForgedJWT(t, with(header, "alg", "HS512"), claims, d.Secret),
		"RS256 by somebody's key":                secure.Secret(rs256 + "." + b64(signature)),
		"HS256 with a public key":                signForgedJWT(t, header, claims, publicPEM),
		"HS256 with an empty secret":             signForgedJWT(t, header, claims, ""),
		"a header that must be understood":       signForgedJWT(t, with(with(header, "crit", []string{"x"}), "x", 1), claims, d.Secret),
		"kid of another tenant, with its secret": signForgedJWT(t, with(header, "kid", other.Key), claims, other.Secret),
		"kid of an end user, with its secret":    signForgedJWT(t, with(header, "kid", endUserKey.ID), claims, endUserKey.Secret),
		"no kid":                                 signForgedJWT(t, with(header, "kid", nil), claims, d.Secret),
		"kid as a number":                        signForgedJWT(t, with(header, "kid", 7), claims, d.Secret),
		"kid as a list":                          signForgedJWT(t, with(header, "kid", []string{d.Key}), claims, d.Secret),
		"kid as SQL":                             signForgedJWT(t, with(header, "kid", "' OR ''='"), claims, ""),
		"kid as a path":                          signForgedJWT(t, with(header, "kid", "../../../../dev/null"), claims, ""),
		"kid as a URL":                           signForgedJWT(t, with(header, "kid", "https://evil.example/key"), claims, ""),
		"kid with NUL":                           signForgedJWT(t, with(header, "kid", d.Key+"\x00"), claims, d.Secret),
		"kid of great length":                    signForgedJWT(t, with(header, "kid", strings.Repeat(d.Key, 1000)), claims, d.Secret),
		"stt in other letters":                   signForgedJWT(t, with(header, "stt", "ACCESS"), claims, d.Secret),
		"stt of an assertion":                    signForgedJWT(t, with(header, "stt", "assertion"), claims, d.Secret),
		"no stt":                                 signForgedJWT(t, with(header, "stt", nil), claims, d.Secret),
		"no exp":                                 signForgedJWT(t, header, with(claims, "exp", nil), d.Secret),
		"no iat":                                 signForgedJWT(t, header, with(claims, "iat", nil), d.Secret),
		"exp as text":                            signForgedJWT(t, header, with(claims, "exp", "9999999999"), d.Secret),
		"a later exp":                            signForgedJWT(t, header, with(claims, "exp", claims["exp"].(float64)+1), d.Secret),
		"another account":                        signForgedJWT(t, header, with(claims, "sub", oauthtest.Base.To("accounts", d.Administrator)), d.Secret),
	}
	for name, token := range forgeries {
		t.Run(name, func(t *testing.T) { validate(t, d, d.Site, token, apierr.TokenSignature) })
	}
	for name, token := range map[string]secure.Secret{
		"no iss": signForgedJWT(t, header, with(claims, "iss", nil), d.Secret),
		"iss of another deployment": signForgedJWT(t, header, with(claims, "iss", "https://evil.example/v1/applications/"+d.Application.String()),
			d.Secret),
		"iss in part": signForgedJWT(t, header, with(claims, "iss", claims["iss"].(string)+"/"), d.Secret),
	} {
		t.Run(name, func(t *testing.T) { validate(t, d, d.Site, token, apierr.TokenOtherApplication) })
	}
	for name, token := range map[string]secure.Secret{
		"no jti":            signForgedJWT(t, header, with(claims, "jti", nil), d.Secret),
		"an unknown jti":    signForgedJWT(t, header, with(claims, "jti", d.Account.String()), d.Secret),
		"jti of a refresh":  signForgedJWT(t, header, with(claims, "jti", claims["rti"]), d.Secret),
		"a jti that is bad": signForgedJWT(t, header, with(claims, "jti", "' OR ''='"), d.Secret),
	} {
		t.Run(name, func(t *testing.T) { validate(t, d, d.Site, token, apierr.TokenRevoked) })
	}
	t.Run("no forgery revokes anything", func(t *testing.T) {
		for name, token := range forgeries {
			if token == issued.Refresh || token == "" {
				continue
			}
			err := d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application,
				Form: oauthtest.Form("token", token.Reveal())})
			if err != nil && !errors.Is(err, apierr.TokenTypeUnknown) {
				t.Errorf("%s: %v", name, err)
			}
		}
		validate(t, d, d.Site, issued.Access, nil)
	})
	t.Run("the real one of another tenant is no token here", func(t *testing.T) {
		validate(t, d, d.Site, d.LogIn(t, other).Access, apierr.TokenSignature)
	})
}

// respelled changes the bits of a token's last character that a lenient reader
// of Base64 leaves out: those that 32 bytes do not fill.
func respelled(token string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := len(token) - 1
	return token[:last] + digits[strings.IndexByte(digits, token[last])+1:][:1]
}

// FuzzValidate checks that a validation never panics, and refuses with an error of the catalogue,
// never with a failure of the server (5xx).
func FuzzValidate(f *testing.F) {
	d := oauthtest.Open(f)
	issued := d.LogIn(f, d.Site)
	header, claims := decodeJWT(f, issued.Access)
	for _, seed := range []secure.Secret{
		"", "abc", "..", issued.Access, issued.Refresh,
		signForgedJWT(f, with(header, "kid", 1), claims, d.Secret), signForgedJWT(f, header, object{}, d.Secret),
		signForgedJWT(f, header, with(claims, "exp", 1e300), d.Secret),
	} {
		f.Add(seed.Reveal(), []byte(`{"kid":"`+d.Key+`","alg":"HS256","stt":"access"}`), []byte(`{"jti":"x"}`))
	}
	f.Fuzz(func(t *testing.T, token string, header, claims []byte) {
		for _, text := range []string{token, signCompactJWT(header, claims, []byte(d.Secret.Reveal()))} {
			_, err := d.Service.Validate(t.Context(), validation(d.Tenant, d.Application, secure.Secret(text)))
			if apierr.From(err) == apierr.Internal {
				t.Fatalf("%q: %v", text, err)
			}
			err = d.Service.Revoke(t.Context(), oauth.Revocation{Tenant: d.Tenant, Application: d.Application, Form: oauthtest.Form("token", text)})
			if apierr.From(err) == apierr.Internal {
				t.Fatalf("%q: %v", text, err)
			}
		}
	})
}
