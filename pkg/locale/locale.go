// Package locale has the languages of the deployment's own texts (localisation, i18n), those of the
// hosted pages and of the mails, and chooses one of them by a header Accept-Language or by the locale
// of an account.
package locale

import (
	"strings"

	"golang.org/x/text/language"

	"github.com/doorward/doorward/pkg/apierr"
)

// Languages are the languages that every text exists in, as BCP 47 tags. The first is the fallback.
var Languages = []string{"en", "ar", "de", "es", "fr", "he", "it", "ja", "ko", "nl", "pl", "pt", "zh-Hans", "zh-Hant"}

var matcher = newMatcher()

func newMatcher() language.Matcher {
	tags := make([]language.Tag, len(Languages))
	for i, name := range Languages {
		tags[i] = language.MustParse(name)
	}
	return language.NewMatcher(tags)
}

// maxAcceptLanguage bounds the header Accept-Language, in bytes: the parser takes 100 ms for 38 kB
// (denial of service). Browsers send less than 200 bytes.
const maxAcceptLanguage = 2000

// OfHeader returns the language of Languages that a header Accept-Language asks for, or "". A header
// that is too long or malformed counts as absent.
func OfHeader(accept string) string {
	if accept == "" || len(accept) > maxAcceptLanguage {
		return ""
	}
	wanted, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return ""
	}
	return match(wanted...)
}

// Lookup returns the language of Languages for a locale (RFC 4647, section 3.4): "de" for "de-AT". It
// is "" where there is none, or no locale.
func Lookup(locale string) string {
	tag, err := language.Parse(locale)
	if err != nil {
		return ""
	}
	return match(tag)
}

// match returns the language of Languages that suits one of the tags best, or "".
func match(wanted ...language.Tag) string {
	_, index, confidence := matcher.Match(wanted...)
	if confidence == language.No {
		return ""
	}
	return Languages[index]
}

// IsRightToLeft reports whether a language of Languages is written from right to left.
func IsRightToLeft(language string) bool { return language == "ar" || language == "he" }

// maxLength bounds a locale, in bytes (RFC 5646, section 4.4.1).
const maxLength = 35

// Canonical returns a language tag (BCP 47) in its canonical form: "de-AT" for "DE-at". For another text,
// or one of more than 35 characters, it returns apierr.Format (2006), which names the member.
func Canonical(name, text string) (string, error) {
	if len(text) <= maxLength && !strings.Contains(text, "_") { // language.Parse reads de_AT, too
		if tag, err := language.Parse(text); err == nil && tag != language.Und {
			return tag.String(), nil
		}
	}
	return "", apierr.Format.Because("%s is not a language tag (BCP 47) of at most %d characters, such as de or de-AT",
		name, maxLength)
}
