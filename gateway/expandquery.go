package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/doorward/doorward/pkg/apierr"
)

// expansion is one link to expand: its name and, for a collection, the query
// of the page.
type expansion struct {
	name, page string
}

// maxPage bounds the numbers of a page; a service has its own limits.
const maxPage = 1<<31 - 1

// parseExpansions reads "a,b(offset:0,limit:10)" (docs/interface/search.md#expansion). A
// name that is repeated counts once.
func parseExpansions(text string, allowed []expandable) ([]expansion, error) {
	var all []expansion
	for more := true; more; {
		end := strings.IndexAny(text, ",()")
		var one expansion
		one.name = strings.TrimSpace(text)
		more = false
		if end >= 0 {
			one.name = strings.TrimSpace(text[:end])
			more, text = text[end] == ',', text[end:]
			if text[0] == '(' {
				if slices.ContainsFunc(allowed, func(e expandable) bool { return e.name == one.name && !e.collection }) {
					return nil, apierr.MalformedQuery.Because("%s leads to a single resource; leave out its offset and limit", one.name)
				}
				var err error
				if one.page, text, err = parsePage(text[1:]); err != nil {
					return nil, err
				}
				more = text != ""
			}
			if more {
				if text[0] != ',' {
					return nil, malformed(text)
				}
				text = text[1:]
			} else if text != "" {
				return nil, malformed(text)
			}
		}
		if one.name == "" {
			return nil, apierr.MalformedQuery.Because("expand has an empty name")
		}
		if !slices.ContainsFunc(allowed, func(e expandable) bool { return e.name == one.name }) {
			return nil, unexpandable(one.name, allowed)
		}
		if !slices.ContainsFunc(all, func(other expansion) bool { return other.name == one.name }) {
			all = append(all, one)
		}
	}
	return all, nil
}

func malformed(rest string) error {
	return apierr.MalformedQuery.Because("expand cannot be read at %.20q; its form is name,name(offset:0,limit:25)", rest)
}

func unexpandable(name string, allowed []expandable) error {
	if len(allowed) == 0 {
		return apierr.NotExpandable.Because("nothing can be expanded here")
	}
	names := make([]string, len(allowed))
	for i, e := range allowed {
		names[i] = e.name
	}
	return apierr.NotExpandable.Because("%.40q cannot be expanded; these can: %s", name, strings.Join(names, ", "))
}

// parsePage reads what follows an opening parenthesis, up to the closing one,
// and returns the query of the page and the rest of the text.
func parsePage(text string) (page, rest string, err error) {
	inside, rest, closed := strings.Cut(text, ")")
	if !closed {
		return "", "", malformed("(" + text)
	}
	var query []string
	for pair := range strings.SplitSeq(inside, ",") {
		name, value, _ := strings.Cut(pair, ":")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if name != "offset" && name != "limit" || value == "" || len(query) == 2 || len(query) == 1 && strings.HasPrefix(query[0], name) {
			return "", "", malformed("(" + text)
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n > maxPage || name == "limit" && n < 1 {
			return "", "", apierr.ParameterInvalid.Because("the %s of an expanded collection cannot be %.20q", name, value)
		}
		query = append(query, name+"="+strconv.Itoa(n))
	}
	return strings.Join(query, "&"), strings.TrimLeft(rest, " "), nil
}
