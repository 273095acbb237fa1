package clientcredential

import (
	"encoding/base64"
	"testing"

	"github.com/valyala/fasthttp"
)

// jwt returns a text of the form of a JWT with claims.
func jwt(claims string) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"ES256"}`)) + "." + part([]byte(claims)) + ".c2lnbmF0dXJl"
}

func read(authorization, form string, from byte) (Credential, bool) {
	var r fasthttp.Request
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	r.SetBodyString(form)
	return Of(&r, [16]byte{from})
}

func TestACredentialIsTheSecretOrTheSignersAddress(t *testing.T) {
	basic := func(text string) string { return "basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	for name, test := range map[string]struct {
		authorization, form, client string
		signed                      bool
	}{
		"Basic":               {basic("c:s"), "client_id=x&client_secret=y", "c", false},
		"a secret in a form":  {"", "client_id=c&client_secret=s", "c", false},
		"a client assertion":  {"", "client_id=x&client_assertion=" + jwt(`{"sub":"c"}`), "c", true},
		"an access token":     {"Bearer " + jwt(`{"client_id":"c"}`), "", "c", true},
		"a token in a form":   {"", "access_token=" + jwt(`{"client_id":"c"}`), "c", true},
		"an opaque token":     {"DPoP opaque", "", "", false},
		"no name in a token":  {"Bearer " + jwt(`{}`), "", "", false},
		"a broken credential": {"Basic ,", "", "", false},
	} {
		here, ok := read(test.authorization, test.form, 1)
		there, _ := read(test.authorization, test.form, 2)
		if !ok || here.Client != test.client || here.Signed != test.signed || (here.Key != there.Key) != test.signed {
			t.Errorf("%s is %+v, %v, and from another address %+v", name, here, ok, there)
		}
	}
	for _, form := range []string{"", "client_id=c", "client_id=c&code=x&refresh_token=y", "%", "{}"} {
		if c, ok := read("", form, 1); ok {
			t.Errorf("the form %q has the credential %+v", form, c)
		}
	}
	right, _ := read(basic("c:s"), "", 1)
	wrong, _ := read(basic("c:t"), "", 1)
	posted, _ := read("", "client_id=c&client_secret=s", 1)
	if right.Key == wrong.Key || right.Key == posted.Key {
		t.Error("other credentials have the same key")
	}
}

func FuzzOf(f *testing.F) {
	f.Add("Bearer "+jwt(`{"client_id":"c"}`), "client_id=c&client_secret=s")
	f.Add("Basic Yzpz", "client_assertion=a.b.c")
	f.Fuzz(func(t *testing.T, authorization, form string) {
		if c, ok := read(authorization, form, 1); !ok && c != (Credential{}) {
			t.Errorf("no credential is %+v", c)
		}
	})
}
