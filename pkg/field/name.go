package field

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/doorward/doorward/pkg/apierr"
)

// Name is Required for the name of a user, a group or a directory. It returns apierr.Format (2006) for
// an invisible character (see Visible), because people distinguish resources by their names. Joiners
// are accepted where the script or an emoji needs them.
func Name(f Text, name string, most int) (string, error) {
	text, err := Required(f, name, most)
	if err != nil {
		return "", err
	}
	return text, Visible(name, withoutJoiners(text))
}

// Username is Name for a user name. It returns apierr.Format (2006) for a colon too: where a login name
// and a password are sent together, the first colon separates them (RFC 7617).
func Username(f Text, name string, most int) (string, error) {
	text, err := Name(f, name, most)
	if err == nil && strings.Contains(text, ":") {
		err = apierr.Format.Because("%s has a colon, which ends the login name in login:password; leave it out", name).
			Saying("A user name cannot have a colon. Please choose another.")
	}
	return text, err
}

// The zero width characters that join or separate the letters of some scripts (RFC 5892, appendix A),
// and the emoji of a sequence; and the one that asks for the picture of an emoji.
const (
	nonJoiner  = '\u200c'
	joiner     = '\u200d'
	emojiStyle = '\ufe0f'
)

func isJoiner(r rune) bool { return r == nonJoiner || r == joiner }

// joinersInContext accepts a word whose joiners stand where RFC 5892, appendix A, allows them.
var joinersInContext = idna.New(idna.CheckJoiners(true))

// withoutJoiners returns a text without the joiners that its words and its emoji need. Others stay.
func withoutJoiners(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return isJoiner(r) || r == emojiStyle }) {
		return text
	}
	text = withoutEmojiJoiners([]rune(text))
	isPartOfWord := func(r rune) bool { return unicode.In(r, unicode.L, unicode.M) || isJoiner(r) }
	var out strings.Builder
	for len(text) > 0 {
		word := text
		if end := strings.IndexFunc(text, func(r rune) bool { return !isPartOfWord(r) }); end >= 0 {
			word = text[:end]
		}
		if word == "" {
			_, size := utf8.DecodeRuneInString(text)
			out.WriteString(text[:size])
			text = text[size:]
			continue
		}
		text = text[len(word):]
		if _, err := joinersInContext.ToUnicode(word); err == nil {
			word = strings.NewReplacer(string(nonJoiner), "", string(joiner), "").Replace(word)
		}
		out.WriteString(word)
	}
	return out.String()
}

// withoutEmojiJoiners returns a text without the joiners between two emoji (Unicode, emoji ZWJ
// sequences), and without emojiStyle behind an emoji.
func withoutEmojiJoiners(text []rune) string {
	var out []rune
	for i, r := range text {
		isAfterEmoji := i > 0 && (isEmoji(text[i-1]) || text[i-1] == emojiStyle && i > 1 && isEmoji(text[i-2]))
		isBeforeEmoji := i+1 < len(text) && isEmoji(text[i+1])
		if r == joiner && isAfterEmoji && isBeforeEmoji || r == emojiStyle && i > 0 && isEmoji(text[i-1]) {
			continue
		}
		out = append(out, r)
	}
	return string(out)
}

// isEmoji reports whether a character is a pictograph or the color of its skin. Some symbols that are no
// emoji pass too; Fold tells no two names apart by what they let through.
func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || '\U0001f3fb' <= r && r <= '\U0001f3ff' || r == '\u2194'
}

// Visible returns apierr.Format (2006) for a text with an invisible character: a control, format,
// bidirectional, private-use or unassigned character, or another without a glyph.
func Visible(name, text string) error {
	for _, r := range text {
		if isInvisible(r) {
			return apierr.Format.Because("%s holds the invisible character U+%04X; remove it", name, r).
				Saying("A name or an address has a character that cannot be seen. Please enter it again.")
		}
	}
	return nil
}

// brailleBlank is a symbol by its Unicode category, but is shown as a blank.
const brailleBlank = '\u2800'

func isInvisible(r rune) bool {
	return !unicode.IsGraphic(r) || r == brailleBlank ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
