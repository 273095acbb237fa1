package field

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestAnInvisibleCharacterIsRefusedInAName(t *testing.T) {
	for _, text := range []string{"Jo", "Jo Doe", "jo@example.test", "Ünï", "名前", "Ελένη", "שלום", "e\u0301", "№ 5 €", "\U0001F600"} {
		if got, err := Name(Some(text), "name", 255); err != nil || got != text {
			t.Errorf("Name(%q) = %q, %v", text, got, err)
		}
	}
	for what, r := range map[string]rune{
		"control": '\x07', "line break": '\n', "delete": '\x7f', "C1 control": '\u0085', "soft hyphen": '\u00ad',
		"zero width space": '\u200b', "zero width joiner": '\u200d', "left-to-right mark": '\u200e',
		"right-to-left override": '\u202e', "isolate": '\u2066', "line separator": '\u2028', "word joiner": '\u2060',
		"byte order mark": '\ufeff', "tag": '\U000e0041', "private use": '\ue000', "private use plane": '\U000f0000',
		"unassigned": '\u0378', "noncharacter": '\uffff', "combining grapheme joiner": '\u034f', "Hangul filler": '\u3164',
		"half-width Hangul filler": '\uffa0', "variation selector": '\ufe0f', "Mongolian vowel separator": '\u180e',
		"Khmer vowel": '\u17b4', "blank of braille": '\u2800',
	} {
		if _, err := Name(Some("Jo"+string(r)+"Doe"), "name", 255); !errors.Is(err, apierr.Format) {
			t.Errorf("%s U+%04X: %v", what, r, err)
		}
	}
	if _, err := Name(Some(" "), "name", 255); !errors.Is(err, apierr.Required) {
		t.Errorf("blank: %v", err)
	}
}

func TestAnEmailIsOneThatMailCanGoTo(t *testing.T) {
	for _, good := range []string{
		"jo@example.test", "Jo.Doe+shop@mail.example.co.uk", "o'neil@example.test", "jo_doe-1@xn--bcher-kva.example",
		"jo@bücher.example", "jö@example.test", "1@2.example", "jo@1.example", strings.Repeat("a", 64) + "@example.test",
	} {
		if err := Email("email", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "jo", "jo@", "@example.test", "jo@localhost", "jo@@example.test", "jo@a@example.test", "jo doe@example.test",
		".jo@example.test", "jo.@example.test", "jo..doe@example.test", "jo@.example.test", "jo@example..test", "jo@example.test.",
		"jo@-example.test", "jo@example-.test", "jo@exa_mple.test", "jo@127.0.0.1", "jo@[127.0.0.1]", "jo@example.1",
		"Jo <jo@example.test>", "jo@example.test, al@example.test", `"jo doe"@example.test`, "jo(comment)@example.test",
		"jo@exa\u2488mple.test", "jo@a\u3002example.test", "jo\uff20mail@example.test", "jo@a\uff0eexample.test",
		"jo\u200b@example.test", "jo@exam\u00adple.test", "jo\n@example.test", "jo@example.test\r\nBcc: al@example.test",
		strings.Repeat("a", 65) + "@example.test", "jo@" + strings.Repeat("a", 64) + ".test", "jo@" + strings.Repeat("a.", 127) + "test",
	} {
		if err := Email("email", bad); !errors.Is(err, apierr.Format) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzEmail(f *testing.F) {
	f.Add("jo@example.test")
	f.Add("\"a\"@b.c")
	f.Fuzz(func(t *testing.T, text string) {
		if err := Email("email", text); err == nil && strings.ContainsAny(text, "\r\n\t <>,;\"\x00") {
			t.Fatalf("%q is taken", text)
		}
	})
}
