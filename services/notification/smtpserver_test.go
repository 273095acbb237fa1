package notification

import (
	"net/netip"
	"strings"
	"testing"
	"unicode"

	"github.com/doorward/doorward/pkg/field"
)

func TestHosts(t *testing.T) {
	for given, want := range map[string]string{
		"mail.test": "mail.test", " Mail.Test ": "mail.test", "a_b.test": "a_b.test", "mail.test.": "mail.test.",
		"bücher.test": "xn--bcher-kva.test", "127.0.0.1": "127.0.0.1", "::1": "::1",
	} {
		host, err := readHost(field.Some(given))
		if err != nil || asciiHost(host) != want {
			t.Errorf("%q became %q, %v; want %q", given, asciiHost(host), err, want)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"mail.test", "::1", "fe80::1%lo", "bücher.test", "a..b", "a:25", "[::1]",
		"mail.test\r\n", "１２７.0.0.1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, err := readHost(field.Some(text))
		if err != nil {
			return
		}
		name := asciiHost(host)
		if _, err := netip.ParseAddr(name); err == nil {
			return
		}
		if name == "" || strings.ContainsFunc(name, func(r rune) bool {
			return r > unicode.MaxASCII || !unicode.IsGraphic(r) || strings.ContainsRune(" /@:[]%", r)
		}) {
			t.Fatalf("%q became the host %q", text, name)
		}
	})
}
