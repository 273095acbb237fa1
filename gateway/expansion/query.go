// Package expansion is link expansion (embedding; docs/interface/search.md#expansion): it parses the query expand=,
// finds the links that it names in an answer, and replaces them by the resources that they lead to.
package expansion

import (
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// Expansion is one link to expand: its name and, for a collection, the query of the
// page, such as offset=0&limit=10.
type Expansion struct {
	Name, Page string
}

// Link is a link that can be expanded.
type Link struct {
	Name       string
	Collection bool // it is to a collection, and may be expanded with offset and limit
}

// maxPageNumber bounds offset and limit; the services have smaller limits.
const maxPageNumber = 1<<31 - 1

// Parse parses "a,b(offset:0,limit:10)" (docs/interface/search.md#expansion). A
// repeated name counts once.
func Parse(text string, allowed []Link) ([]Expansion, error) {
	var all []Expansion
	for more := true; more; {
		end := strings.IndexAny(text, ",()")
		var one Expansion
		one.Name = strings.TrimSpace(text)
		more = false
		if end >= 0 {
			one.Name = strings.TrimSpace(text[:end])
			more, text = text[end] == ',', text[end:]
			if text[0] == '(' {
				if slices.ContainsFunc(allowed, func(e Link) bool { return e.Name == one.Name && !e.Collection }) {
					return nil, apierr.MalformedQuery.Because(
						"%s leads to a single resource; leave out its offset and limit", one.Name)
				}
				var err error
				if one.Page, text, err = parsePage(text[1:]); err != nil {
					return nil, err
				}
				more = text != ""
			}
			if more {
				if text[0] != ',' {
					return nil, malformedExpand(text)
				}
				text = text[1:]
			} else if text != "" {
				return nil, malformedExpand(text)
			}
		}
		if one.Name == "" {
			return nil, apierr.MalformedQuery.Because("expand has an empty name")
		}
		if !slices.ContainsFunc(allowed, func(e Link) bool { return e.Name == one.Name }) {
			return nil, notExpandable(one.Name, allowed)
		}
		if !slices.ContainsFunc(all, func(other Expansion) bool { return other.Name == one.Name }) {
			all = append(all, one)
		}
	}
	return all, nil
}

func malformedExpand(rest string) error {
	return apierr.MalformedQuery.Because("expand cannot be read at %.20q; its form is name,name(offset:0,limit:25)",
		rest)
}

func notExpandable(name string, allowed []Link) error {
	if len(allowed) == 0 {
		return apierr.NotExpandable.Because("nothing can be expanded here")
	}
	names := make([]string, len(allowed))
	for i, e := range allowed {
		names[i] = e.Name
	}
	return apierr.NotExpandable.Because("%.40q cannot be expanded; these can: %s", name, strings.Join(names, ", "))
}

// parsePage parses the text from behind an opening parenthesis to the closing parenthesis.
// It returns the query of the page and the rest of the text.
func parsePage(text string) (page, rest string, err error) {
	inside, rest, closed := strings.Cut(text, ")")
	if !closed {
		return "", "", malformedExpand("(" + text)
	}
	var query []string
	for pair := range strings.SplitSeq(inside, ",") {
		name, value, _ := strings.Cut(pair, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if name != "offset" && name != "limit" || value == "" || len(query) == 2 ||
			len(query) == 1 && strings.HasPrefix(query[0], name) {
			return "", "", malformedExpand("(" + text)
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxPageNumber || name == "limit" && n < 1 {
			return "", "", apierr.ParameterInvalid.Because("the %s of an expanded collection cannot be %.20q", name,
				value)
		}
		query = append(query, name+"="+strconv.Itoa(n))
	}
	return strings.Join(query, "&"), strings.TrimLeft(rest, " "), nil
}
