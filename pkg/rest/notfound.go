package rest

import (
	"strings"
	"unicode"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
)

// noSuch returns apierr.NotFound for the resource whose id the path names: "no
// account has the id …". The collection before the id in the route names its kind.
func resourceNotFound(c *fiber.Ctx, param string) *apierr.Error {
	before, after, named := strings.Cut(Route(c), "/:"+param)
	collection := before[strings.LastIndexByte(before, '/')+1:]
	if choice, isParam := strings.CutPrefix(collection, ":"); isParam { // of several collections
		choice, _, _ = strings.Cut(choice, "<")
		collection = c.Params(choice)
	}
	if !named || collection == "" || strings.Contains(after, "/:") {
		return apierr.NotFound.Because("the path is right, but the tenant has no resource with an id that it names")
	}
	return apierr.NotFound.Because("no %s has the id %q", Kind(collection), c.Params(param))
}

// spelled are the words of collections whose letters are not those of a plain word.
var acronyms = map[string]string{
	"api": "API", "id": "ID", "saml": "SAML", "smtp": "SMTP", "oauth": "OAuth", "x509certificate": "X.509 certificate",
}

// Kind returns what one resource of a collection is called: "account creation
// policy" of accountCreationPolicies.
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
