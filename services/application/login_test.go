package application

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

func TestTheValueOfALoginAttempt(t *testing.T) {
	t.Parallel()
	std, urlSafe := base64.StdEncoding.EncodeToString, base64.URLEncoding.EncodeToString
	for _, c := range []struct {
		what, value, login, password string
	}{
		{"standard Base64", std([]byte("jo:secret")), "jo", "secret"},
		{"without padding", strings.TrimRight(std([]byte("jo@example.test:secret")), "="), "jo@example.test", "secret"},
		{"URL-safe Base64", urlSafe([]byte("jo:ÿÿ?~~>>")), "jo", "ÿÿ?~~>>"},
		{"standard Base64 of the same", std([]byte("jo:ÿÿ?~~>>")), "jo", "ÿÿ?~~>>"},
		{"in lines", "am86\r\nc2VjcmV0\n", "jo", "secret"},
		{"a password with colons", std([]byte("jo:a:b::c")), "jo", "a:b::c"},
		{"an empty password", std([]byte("jo:")), "jo", ""},
		{"an empty login", std([]byte(":secret")), "", "secret"},
	} {
		t.Run(c.what, func(t *testing.T) {
			login, password, err := readValue(field.Some(secure.Secret(c.value)))
			if err != nil || login != c.login || password.Reveal() != c.password {
				t.Errorf("the value is read as %q, %q, %v", login, password.Reveal(), err)
			}
		})
	}
	for what, c := range map[string]struct {
		value field.Nullable[secure.Secret]
		want  error
	}{
		"absent":         {field.Nullable[secure.Secret]{}, apierr.Required},
		"null":           {field.Nullable[secure.Secret]{Present: true, Null: true}, apierr.Required},
		"empty":          {field.Some(secure.Secret("")), apierr.Required},
		"no Base64":      {field.Some(secure.Secret("%%%")), apierr.Format},
		"half Base64":    {field.Some(secure.Secret("am86c2VjcmV0=")), apierr.Format},
		"no colon":       {field.Some(secure.Secret(std([]byte("jo")))), apierr.Format},
		"no UTF-8":       {field.Some(secure.Secret(std([]byte("jo:\xff")))), apierr.Encoding},
		"NUL in a login": {field.Some(secure.Secret(std([]byte("j\x00o:secret")))), apierr.Format},
	} {
		t.Run(what, func(t *testing.T) {
			if _, _, err := readValue(c.value); !errors.Is(err, c.want) {
				t.Errorf("the error is %v, want %v", err, c.want)
			}
		})
	}
}

func TestALoginAttemptDoesNotShowItsPassword(t *testing.T) {
	t.Parallel()
	var in LoginAttempt
	if err := field.Decode([]byte(`{"type":"basic","value":"am86c2VjcmV0"}`), &in, struct{}{}); err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", in, in, in); strings.Contains(shown, "am86c2VjcmV0") {
		t.Error(shown)
	}
}

// A value is refused with a code of the catalogue, or is exactly what a client
// encoded.
func FuzzLoginValue(f *testing.F) {
	for _, value := range []string{"am86c2VjcmV0", "am86c2VjcmV0=", "am86", "am8", "%%%", "", "am86\n", "__-_", "AAA6"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		body, err := json.Marshal(map[string]string{"type": "basic", "value": value})
		if err != nil {
			t.Fatal(err)
		}
		var in LoginAttempt
		if err := field.Decode(body, &in, struct{}{}); err != nil {
			t.Fatalf("the body returned %v", err)
		}
		login, password, err := readValue(in.Value)
		if err != nil {
			if code := apierr.From(err).Code; code != 2000 && code != 2005 && code != 2006 {
				t.Fatalf("%q returned %v", value, err)
			}
			return
		}
		if strings.ContainsAny(login, ":\x00") || !utf8.ValidString(login+password.Reveal()) {
			t.Fatalf("%q was read as %q", value, login)
		}
		again, rest, err := readValue(field.Some(
			secure.Secret(base64.StdEncoding.EncodeToString([]byte(login + ":" + password.Reveal())))))
		if err != nil || again != login || rest != password {
			t.Fatalf("%q was read as %q and then as %q, %v", value, login, again, err)
		}
	})
}

// readValue reads the value of a login attempt.
func readValue(value field.Nullable[secure.Secret]) (login string, password secure.Secret, err error) {
	c, err := LoginAttempt{Type: field.Some("basic"), Value: value}.parse()
	return c.login, c.password, err
}
