package gateway

import (
	"strings"

	"github.com/gofiber/fiber/v2"
)

// forwardedEntries returns what the proxies in front have added about the peers of a request, the
// nearest proxy last: the entries of a list such as X-Forwarded-For, else that parameter of the
// elements of Forwarded (RFC 7239, section 4); an element without the parameter is "". Entries that
// no trusted proxy added may be forged by the client: count from the right.
func forwardedEntries(c *fiber.Ctx, list, parameter string) []string {
	raw := c.Request().Header.RawHeaders()
	if values, found := header(raw, list); found {
		entries := strings.Split(values, ",")
		for n, entry := range entries {
			entries[n] = strings.TrimSpace(entry)
		}
		return entries
	}
	values, found := header(raw, "forwarded")
	if !found {
		return nil
	}
	var entries []string
	for _, element := range splitUnquoted(values, ',') {
		value := ""
		for _, pair := range splitUnquoted(element, ';') {
			name, text, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, parameter) {
				value = unquote(text)
			}
		}
		entries = append(entries, value)
	}
	return entries
}

// splitUnquoted splits a text at a separator that is not within a quoted string (RFC 9110, section 5.6.4).
func splitUnquoted(text string, separator byte) []string {
	var parts []string
	begin, quoted := 0, false
	for at := 0; at < len(text); at++ {
		switch {
		case quoted && text[at] == '\\':
			at++
		case text[at] == '"':
			quoted = !quoted
		case text[at] == separator && !quoted:
			parts, begin = append(parts, text[begin:at]), at+1
		}
	}
	return append(parts, text[begin:])
}

// unquote returns the text of a quoted string, or a token as it is.
func unquote(text string) string {
	inner, opened := strings.CutPrefix(text, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !opened || !closed {
		return text
	}
	return strings.ReplaceAll(inner, `\`, "")
}
