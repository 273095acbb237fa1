package field

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/doorward/doorward/pkg/apierr"
)

func TestAnInvisibleCharacterIsRefusedInAName(t *testing.T) {
	for _, text := range []string{"Jo", "Jo Doe", "jo@example.test", "Ünï", "名前", "Ελένη", "שלום", "e\u0301", "№ 5 €", "\U0001F600",
		"می\u200cخواهم", "Jo می\u200cخواهم 2", "क्\u200dष", "क्\u200cष", "\U0001F468\u200d\U0001F469\u200d\U0001F467",
		"\u2764\ufe0f\u200d\U0001F525", "\U0001F44B\U0001F3FD\u200d\U0001F525 team"} {
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
	for _, text := range []string{
		"Jo\u200cDoe", "\u200cJo", "Jo\u200d", "می\u200c", "\u200cمی", "می\u200c خواهم", "می\u200dخواهم", "\U0001F468\u200dJo", "Jo\u200d\U0001F468",
		"\U0001F468\u200d", "\U0001F468\u200d\u200d\U0001F469", "\U0001F468\u200c\U0001F469", "a\ufe0f\u200d\U0001F525", "\ufe0f", "1\u200d2",
		"می\u200c\u200cخواهم", "می\u200c\u202eخواهم",
	} {
		if _, err := Name(Some(text), "name", 255); !errors.Is(err, apierr.Format) {
			t.Errorf("a joiner that nothing needs in %+q: %v", text, err)
		}
	}
	if _, err := Name(Some(" "), "name", 255); !errors.Is(err, apierr.Required) {
		t.Errorf("a blank name returned %v", err)
	}
}

func TestAnEmailHasOneAtAndADotInItsDomain(t *testing.T) {
	for _, good := range []string{
		"jo@example.test", "Jo.Doe+shop@mail.example.co.uk", "o'neil@example.test", "jo_doe-1@xn--bcher-kva.example",
		"jo@bücher.example", "jö@example.test", "1@2.example", "jo@1.example", strings.Repeat("a", 68) + "@example.test",
		".jo@example.test", "jo.@example.test", "jo..doe@example.test", "jo@my_host.example.test",
		"jo@example.123", "jo@1.2.3.4", "jo@-example.test", "jo%relay@example.test", "jo=x@example.test", "jo/x!#$&'*?^{|}~@example.test",
	} {
		if err := Email("email", good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	bad := []string{
		"", "jo", "jo@", "@example.test", "jo@localhost", "jo@@example.test", "jo@a@example.test", "jo doe@example.test",
		"jo@.example.test", "jo@example.test.", "jo@.", "jo@..", "Jo <jo@example.test>", "jo@example.test, al@example.test",
		`"jo doe"@example.test`, `"jo@work"@example.test`, "jo@exa\u2488mple.test", "jo@a\u3002example.test", "jo\uff20mail@example.test",
		"jo@a\uff0eexample.test", "jo\u200b@example.test", "jo@exam\u00adple.test", "jo\n@example.test", "jo\x00@example.test",
		"jo\x7f@example.test", "jo@example.test\r\nBcc: al@example.test", "jo\xff@example.test",
		"jo:x@example.test", "jo(x)@example.test", "jo,x@example.test", "jo;x@example.test", `jo\x@example.test`, "jo[x@example.test",
		`"jo"@example.test`, `"jo` + "@example.test", "mailto:jo@example.test", "<jo@example.test>", "jo<x@example.test", "jo@[127.0.0.1]",
		"jo@[IPv6:::1.2.3.4]", "jo@example.test>", "jo%0a@example.test", "jo%0Dx@example.test", "=?utf-8?q?jo=0A?=@example.test",
		"jo@exa%0amp.test", "jo@exa!mple.test", "jo@example..test", "jo@example.test?cc=al", "jo@exa/mple.test",
		strings.Repeat("語", 170) + "@example.test", "jo@" + strings.Repeat("語.", 240) + "test",
	}
	for _, space := range "\t\v\f\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000" {
		bad = append(bad, "j"+string(space)+"o@example.test", "jo@exam"+string(space)+"ple.test", "jo@example.test"+string(space))
	}
	for _, bad := range bad {
		if err := Email("email", bad); !errors.Is(err, apierr.Format) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestOneMailboxIsMoreThanOneLoginName(t *testing.T) {
	for _, same := range [][2]string{
		{"jo@example.test", "Jo@EXAMPLE.test"}, {"jo@bücher.test", "JO@bücher.TEST"}, {"jo@bu\u0308cher.test", "jo@b\u00fccher.test"},
		{"jo@bücher.test", "Jo@XN--bcher-kva.test"}, {"jo@xn--strae-oqa.test", "jo@straße.test"},
	} {
		if !SameMailbox(same[0], same[1]) {
			t.Errorf("%q and %q are two mailboxes", same[0], same[1])
		}
	}
	for _, apart := range [][2]string{
		{"jo@strasse.test", "jo@straße.test"}, {"jo2@example.test", "jo²@example.test"}, {"jo@example.test", "jo@example.tes"},
		{"jo@xn--strae-oqa.test", "jo@strasse.test"}, {"jö@example.test", "xn--j-1ga@example.test"},
	} {
		if SameMailbox(apart[0], apart[1]) {
			t.Errorf("%q and %q are one mailbox", apart[0], apart[1])
		}
	}
}

func FuzzEmail(f *testing.F) {
	f.Add("jo@example.test")
	f.Add("\"a\"@b.c")
	f.Fuzz(func(t *testing.T, text string) {
		isSpace := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
		if err := Email("email", text); err == nil && (strings.ContainsFunc(text, isSpace) || strings.Count(text, "@") != 1) {
			t.Fatalf("%q is taken", text)
		}
	})
}

func TestALoginNameHasOneNormalForm(t *testing.T) {
	for text, want := range map[string]string{
		"Jo@X.test": "jo@x.test", "jo@x.test ": "jo@x.test", "\u3000jo\u00a0\r\n": "jo", "jo doe": "jo doe",
		"x@münchen.test": "x@münchen.test", "x@XN--MNCHEN-3YA.test": "x@münchen.test", "x@mu\u0308nchen.test": "x@münchen.test",
		"x@a.xn--mnchen-3ya.my_host.test": "x@a.münchen.my_host.test", "xn--mnchen-3ya": "xn--mnchen-3ya", "xn--mnchen-3ya@x.test": "xn--mnchen-3ya@x.test",
		"x@xn--strae-oqa.test": "x@strasse.test", "x@straße.test": "x@strasse.test",
		"x@xn--abc-.test": "x@xn--abc-.test", "x@xn--a.test": "x@xn--a.test", "x@xn--.test": "x@xn--.test", "x@xn--xn---epa.test": "x@xn--xn---epa.test",
		"می\u200cخواهم": "میخواهم", "": "",
	} {
		got := LoginName(text)
		if got != want {
			t.Errorf("the normal form of %+q is %+q, want %+q", text, got, want)
		}
		if again := LoginName(got); again != got {
			t.Errorf("the normal form of %+q is not its own: %+q", got, again)
		}
	}
}

func TestALoginNameThatMixesScriptsIsFound(t *testing.T) {
	for login, want := range map[string]bool{
		"anna": false, "zoë.o'neil_1@example.test": false, "анна": false, "άννα": false, "сергей@пример.test": false, "jo-иван": false,
		"аnna": true, "annа": true, "Аnna": true, "αnna": true, "αнна": true, "jo.аnna": true, "co1о": true, "anna@exаmple.test": true,
		"anna@xn--exmple-4nf.test": true, "anna@xn--mnchen-3ya.test": false, "аnna@example.test": true, "ａｎｎａ": false, "ａннa": true,
		"anna@example.рф": false, "jo\u200d": false, "東京tokyo": false, "оса": false, "": false,
	} {
		if got := MixesScripts(login); got != want {
			t.Errorf("%+q mixes scripts: %v, want %v", login, got, want)
		}
	}
}

func TestAUserNameHasNoColon(t *testing.T) {
	if got, err := Username(Some(" corp.jo "), "username", 255); err != nil || got != "corp.jo" {
		t.Errorf("the user name is %q, %v", got, err)
	}
	for _, bad := range []string{"corp:jo", ":", "jo:"} {
		if _, err := Username(Some(bad), "username", 255); !errors.Is(err, apierr.Format) {
			t.Errorf("the user name %q is taken: %v", bad, err)
		}
	}
}

func TestASearchIgnoresAccents(t *testing.T) {
	for text, want := range map[string]string{
		"Zoë": "zoe", "ZOE\u0308": "zoe", "zoe": "zoe", "Łódź Ærø": "łodz ærø", "Ελένη": "ελενη", "が": "が", "한국": "한국", "שָׁלוֹם": "שָׁלוֹם", "हिन्दी": "हिन्दी",
	} {
		if got := FoldForSearch(text); got != want {
			t.Errorf("%q is searched as %q, want %q", text, got, want)
		}
	}
}
