package locale_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/locale"
)

func TestALocaleIsKeptInItsCanonicalForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"de": "de", "DE-at": "de-AT", "zh-hant-TW": "zh-Hant-TW", "pt-BR": "pt-BR", "iw": "he", "es-419": "es-419",
		"sl-rozaj-biske": "sl-rozaj-biske", "de-DE-u-co-phonebk": "de-DE-u-co-phonebk",
	} {
		if got, err := locale.Canonical("locale", in); err != nil || got != want {
			t.Errorf("the locale %q is kept as %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{
		"", " ", "d", "german", "de_AT", "de-", "-de", "de--AT", "de-XXQ", "xx", "und", "root", "de AT", "de-AT\n", "*", "de;q=1",
		"de-DE-u-co-phonebk-" + strings.Repeat("x", 17), "дe",
	} {
		if got, err := locale.Canonical("locale", in); !errors.Is(err, apierr.Format) {
			t.Errorf("the locale %q is kept as %q, %v; want %v", in, got, err, apierr.Format)
		}
	}
}

func TestALanguageIsLookedUpForALocaleAndForAHeader(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"de-AT": "de", "fr-CA": "fr", "en-GB": "en", "es-419": "es", "ja": "ja", "uk": "", "": "",
		"zh": "zh-Hans", "zh-TW": "zh-Hant", "zh-HK": "zh-Hant", "zh-CN": "zh-Hans", "iw": "he", "he-IL": "he", "pt-PT": "pt", "pt-BR": "pt", "ar-EG": "ar"} {
		if got := locale.Lookup(in); got != want {
			t.Errorf("the language for the locale %q is %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		"uk, de-CH;q=0.8, en;q=0.7": "de", "": "", "*": "", "uk": "", "\xff": "", strings.Repeat("de,", 1000): "", "FR": "fr",
		"zh-TW,zh;q=0.9,en;q=0.8": "zh-Hant", "zh-CN,zh;q=0.9": "zh-Hans", "iw-IL": "he", "pt-BR,pt;q=0.9": "pt", "ko-KR": "ko",
	} {
		if got := locale.OfHeader(in); got != want {
			t.Errorf("the language for the header %.40q is %q, want %q", in, got, want)
		}
	}
}
