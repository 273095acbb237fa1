package rest

import (
	"strings"
	"unicode"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// resourceNotFound returns apierr.NotFound with the reason "no account has the id …". The kind
// of resource is the collection before the id in the route.
func resourceNotFound(c *fiber.Ctx, param string) *apierr.Error {
	before, after, named := strings.Cut(Route(c), "/:"+param)
	collection := before[strings.LastIndexByte(before, '/')+1:]
	if choice, isParam := strings.CutPrefix(collection, ":"); isParam { // the route is for several collections
		choice, _, _ = strings.Cut(choice, "<")
		collection = c.Params(choice)
	}
	if !named || collection == "" || strings.Contains(after, "/:") {
		return apierr.NotFound.Because("the path is right, but the tenant has no resource with an id that it names")
	}
	return apierr.NotFound.Because("no %s has the id %q", Kind(collection), c.Params(param))
}

// acronyms are the words in names of collections that are not written in lower case.
var acronyms = map[string]string{
	"api": "API", "id": "ID", "saml": "SAML", "smtp": "SMTP", "oauth": "OAuth", "x509certificate": "X.509 certificate",
}

// Kind returns the name of one resource of a collection: "account creation policy" for
// accountCreationPolicies.
func Kind(collection string) string {
	var words []string
	start := 0
	for i, r := range collection {
		if unicode.IsUpper(r) && i > start+1 {
			words = append(words, strings.ToLower(collection[start:i]))
			start = i
		}
	}
	last := strings.ToLower(collection[start:])
	if stem, plural := strings.CutSuffix(last, "ies"); plural {
		last = stem + "y"
	} else {
		last = strings.TrimSuffix(last, "s")
	}
	words = append(words, last)
	for i, word := range words {
		if own, known := acronyms[word]; known {
			words[i] = own
		}
	}
	return strings.Join(words, " ")
}
