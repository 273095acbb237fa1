package mailbox

import (
	"regexp"
	"strings"
)

// segment is a piece of a text: plain when URL is empty, else a link.
type segment struct {
	Text string
	URL  string
}

var webAddress = regexp.MustCompile(`(?i)\bhttps?://[^\s<>"\x60\x{00AB}\x{00BB}\x{201C}\x{201D}]+`)

// splitLinks splits a text at its http and https addresses. Punctuation after an
// address belongs to the sentence, not to the address; a token may end in _ or -.
func splitLinks(text string) []segment {
	var out []segment
	done := 0
	for _, at := range webAddress.FindAllStringIndex(text, -1) {
		url := trimSentence(text[at[0]:at[1]])
		if at[0] > done {
			out = append(out, segment{Text: text[done:at[0]]})
		}
		out = append(out, segment{Text: url, URL: url})
		done = at[0] + len(url)
	}
	if done < len(text) {
		out = append(out, segment{Text: text[done:]})
	}
	return out
}

// trimSentence removes punctuation from the end of an address.
func trimSentence(url string) string {
	for {
		trimmed := strings.TrimRight(url, ".,;:!?'")
		for _, pair := range []string{"()", "[]", "{}"} {
			if strings.HasSuffix(trimmed, pair[1:]) && strings.Count(trimmed, pair[1:]) > strings.Count(trimmed, pair[:1]) {
				trimmed = trimmed[:len(trimmed)-1]
			}
		}
		if trimmed == url {
			return url
		}
		url = trimmed
	}
}
