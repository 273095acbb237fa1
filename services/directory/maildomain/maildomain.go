// Package maildomain decides which domains the emails of a directory may have, by the lists of its account
// creation policy.
package maildomain

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of an email domain list. No domain name is longer than maxDomain (RFC 1035), and every
// registration reads the whole list.
const (
	maxDomains = 1000
	maxDomain  = 255 // characters
)

// List validates an email domain list (whitelist, blacklist): more than maxDomains names, or
// one of more than maxDomain characters, are 2008; what is no domain name is 2004.
func List(name string, entries []string) ([]string, error) {
	if len(entries) > maxDomains {
		return nil, apierr.TooLong.Because("%s has %d entries; at most %d are allowed", name, len(entries), maxDomains)
	}
	for _, entry := range entries {
		if n := utf8.RuneCountInString(entry); n > maxDomain {
			return nil, apierr.TooLong.Because("%s holds an entry of %d characters; at most %d are allowed", name, n,
				maxDomain)
		}
		if !isPattern(entry) {
			return nil, apierr.WrongType.Because("%s holds %q, which is not a domain name with or without *", name,
				entry).
				Saying("%q cannot be listed. It is not a valid domain.", entry)
		}
	}
	return entries, nil
}

// isPattern reports whether an entry is a domain name, in which any part may be *
// (wildcard): labels of letters, digits and hyphens with single dots between them.
func isPattern(entry string) bool {
	return entry != "" && strings.Trim(entry, ".") == entry && !strings.Contains(entry, "..") &&
		!strings.ContainsFunc(entry, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-.*", r)
		})
}

// Check returns an error for an email whose domain the policy does not allow:
// apierr.DomainBlacklisted, also where the domain is on both lists, or
// apierr.DomainNotWhitelisted. An internationalized domain name is the same in its ASCII form
// (punycode, RFC 5890) and in its own script.
func Check(p store.CreationPolicy, email string) error {
	domain := field.Fold(email[strings.LastIndexByte(email, '@')+1:])
	shown := field.Domain(domain)
	matches := func(pattern string) bool {
		pattern = field.Fold(pattern)
		return match(pattern, domain) || match(field.Domain(pattern), shown)
	}
	if slices.ContainsFunc(p.EmailDomainBlacklist, matches) {
		return apierr.DomainBlacklisted.Because("the email domain %q is on the directory's blacklist", domain)
	}
	if len(p.EmailDomainWhitelist) > 0 && !slices.ContainsFunc(p.EmailDomainWhitelist, matches) {
		return apierr.DomainNotWhitelisted.Because("the email domain %q is not on the directory's whitelist", domain)
	}
	return nil
}

// match reports whether a domain matches a pattern, in which each * stands for any
// characters, also none. Each part of the pattern is searched once, from the end of the match
// before, so that the time is linear in the length.
func match(pattern, domain string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == domain
	}
	rest, ok := strings.CutPrefix(domain, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
