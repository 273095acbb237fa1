package rest_test

import (
	"crypto/pbkdf2"
	"crypto/sha1"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/doorward/doorward/services/oauth/oauthtest"
)

const (
	salt      = "AAECAwQFBgcICQoLDA0ODw" // bytes 00 to 0f
	encrypted = "encryptSecret=true&encryptionKeySalt=" + salt
)

// derived returns the key that the site's caller and the service agree on.
func derived(t *testing.T, s oauthtest.Site, bits, iterations int) []byte {
	t.Helper()
	bytes := make([]byte, 16)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	key, err := pbkdf2.Key(sha1.New, s.Secret.Reveal(), bytes, iterations, bits/8)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestSecretsAreEncryptedOnRequest(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/accounts/" + d.Account.String() + "/apiKeys"
	made := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection, nil)))
	key, secret := made["id"].(string), made["secret"].(string)
	item := func(body object) object { return body["items"].([]any)[0].(object) }
	whole := func(body object) object { return body }

	for _, c := range []struct {
		name, method, path string
		body               any
		status             int
		of                 func(object) object
	}{
		{"a key", "GET", "/apiKeys/" + key + "?", nil, 200, whole},
		{"the keys of an account", "GET", collection + "?orderBy=name&limit=1&", nil, 200, item},
		{"the key of an application", "GET", "/applications/" + d.Application.String() + "/apiKeys?id=" + key + "&", nil, 200, item},
		{"a key that is changed", "POST", "/apiKeys/" + key + "?", `{"name":"x"}`, 200, whole},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []struct {
				query string
				key   []byte
			}{
				{"", derived(t, d.Site, 128, 1024)},
				{"&encryptionKeySize=256", derived(t, d.Site, 256, 1024)},
				{"&encryptionKeySize=192&encryptionKeyIterations=1", derived(t, d.Site, 192, 1)},
				{"&encryptionKeyIterations=65536", derived(t, d.Site, 128, 65536)},
				{"&encryptionKeySize=128&encryptionKeyIterations=2048", derived(t, d.Site, 128, 2048)},
			} {
				answer := want(t, c.status, d.Do(t, d.Site, c.method, c.path+encrypted+size.query, c.body))
				if strings.Contains(answer.Body, secret) {
					t.Fatalf("the secret is there in clear: %s", answer.Body)
				}
				if got := oauthtest.Decrypt(t, size.key, c.of(decode(t, answer))["secret"].(string)); got != secret {
					t.Errorf("with %q the secret is %q, want %q", size.query, got, secret)
				}
			}
		})
	}
	t.Run("a new key", func(t *testing.T) {
		body := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection+"?"+encrypted, nil)))
		got := oauthtest.Decrypt(t, derived(t, d.Site, 128, 1024), body["secret"].(string))
		if plain := decode(t, want(t, 200, d.Do(t, d.Site, "GET", "/apiKeys/"+body["id"].(string), nil))); plain["secret"] != got ||
			len(got) != 43 {
			t.Errorf("the secret is %q and %v", got, plain["secret"])
		}
	})
	t.Run("parameters in other forms", func(t *testing.T) {
		for _, query := range []string{
			"encryptSecret=TRUE&encryptionKeySalt=" + salt + "==", "encryptSecret=true&encryptionKeySalt=" + salt + "%3D%3D",
			"%65ncryptSecret=tru%65&encryptionKeySalt=" + salt, "encryptionKeySalt=" + salt + "&x=y&encryptSecret=true",
		} {
			body := decode(t, want(t, 200, d.Do(t, d.Site, "GET", "/apiKeys/"+key+"?"+query, nil)))
			if got := oauthtest.Decrypt(t, derived(t, d.Site, 128, 1024), body["secret"].(string)); got != secret {
				t.Errorf("%s returns %q", query, got)
			}
		}
		if body := decode(t, want(t, 200, d.Do(t, d.Site, "GET", "/apiKeys/"+key+"?encryptSecret=false&encryptionKeySalt=x",
			nil))); body["secret"] != secret {
			t.Errorf("the secret is %v", body["secret"])
		}
	})
	t.Run("the address of a collection is bare", func(t *testing.T) {
		if body := decode(t, d.Do(t, d.Site, "GET", collection+"?"+encrypted, nil)); body["href"] != string(oauthtest.Base)+collection {
			t.Errorf("href is %v", body["href"])
		}
		refused(t, 400, 2105, d.Do(t, d.Site, "GET", collection+"?"+encrypted+"&nonsense=1", nil))
	})
	t.Run("a new key is not made where they are wrong", func(t *testing.T) {
		before := decode(t, d.Do(t, d.Site, "GET", collection, nil))["size"]
		refused(t, 400, 2101, d.Do(t, d.Site, "POST", collection+"?encryptSecret=true", nil))
		if after := decode(t, d.Do(t, d.Site, "GET", collection, nil))["size"]; after != before {
			t.Errorf("there were %v keys, and are %v", before, after)
		}
	})
}

func TestParametersOfEncryptionAreRefused(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/accounts/" + d.Account.String() + "/apiKeys"
	key := decode(t, want(t, 201, d.Do(t, d.Site, "POST", collection, nil)))["id"].(string)
	for query, code := range map[string]int{
		"encryptSecret=true":                     2101,
		"encryptSecret=true&encryptionKeySalt=":  2101,
		"encryptSecret=":                         2101,
		"encryptSecret":                          2101,
		"encryptSecret=yes":                      2103,
		"encryptSecret=1":                        2103,
		"encryptSecret=true&encryptSecret=false": 2102,
		encrypted + "&encryptionKeySalt=AAECAwQFBgcICQoLDA0ODg":           2102,
		encrypted + "&encryptionKeySize=%zz":                              2100,
		"encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0O":       2103, // 15 bytes
		"encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0ODxA":    2103, // 17 bytes
		"encryptSecret=true&encryptionKeySalt=AAECAwQFBgcICQoLDA0O%2F%2F": 2103, // another alphabet
		"encryptSecret=true&encryptionKeySalt=" + url.QueryEscape("§§"):   2103,
		encrypted + "&encryptionKeySize=64":                               2103,
		encrypted + "&encryptionKeySize=129":                              2103,
		encrypted + "&encryptionKeySize=512":                              2103,
		encrypted + "&encryptionKeySize=big":                              2103,
		encrypted + "&encryptionKeySize=":                                 2101,
		encrypted + "&encryptionKeyIterations=0":                          2103,
		encrypted + "&encryptionKeyIterations=-1":                         2103,
		encrypted + "&encryptionKeyIterations=65537":                      2103,
		encrypted + "&encryptionKeyIterations=1e3":                        2103,
		encrypted + "&encryptionKeyIterations=99999999999999999999":       2103,
	} {
		t.Run(query, func(t *testing.T) {
			for _, path := range []string{"/apiKeys/" + key + "?", collection + "?",
				"/applications/" + d.Application.String() + "/apiKeys?id=" + key + "&"} {
				refused(t, 400, code, d.Do(t, d.Site, "GET", path+query, nil))
			}
		})
	}
}

// A page of a hundred keys derives the key once: deriving it for each would take
// a hundred times as long as for a page of one.
func TestTheKeyOfAPageIsDerivedOnce(t *testing.T) {
	t.Parallel()
	d := oauthtest.Open(t)
	collection := "/accounts/" + d.Account.String() + "/apiKeys"
	for i := range 100 {
		want(t, 201, d.Do(t, d.Site, "POST", collection, `{"name":"`+strconv.Itoa(i)+`"}`))
	}
	took := func(limit int) time.Duration {
		start := time.Now()
		page := decode(t, want(t, 200, d.Do(t, d.Site, "GET", collection+"?limit="+strconv.Itoa(limit)+"&encryptionKeyIterations=65536&"+encrypted, nil)))
		if n := len(page["items"].([]any)); n != limit {
			t.Fatalf("the page has %d keys", n)
		}
		return time.Since(start)
	}
	if one, all := took(1), took(100); all > 25*one {
		t.Errorf("a page of one key takes %s, one of a hundred %s", one, all)
	}
}
