package rest

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/list"
)

// collection is the representation of a page
// (docs/interface/conventions.md#collections).
type collection struct {
	Head
	Offset int   `json:"offset"`
	Limit  int   `json:"limit"`
	Size   int   `json:"size"`
	Items  []any `json:"items"`
}

// Query parses the query of a collection: offset, limit, orderBy, q and filters.
func Query(c *fiber.Ctx, spec list.Spec) (list.Query, error) {
	return list.Parse(string(c.Request().URI().QueryString()), spec)
}

// Flag returns a boolean query parameter, or fallback where it is absent or empty. Its name is read in
// any letter case: an option that was not recognized would send the mail that it was to stop. It returns
// apierr.ParameterInvalid for any other text than true or false.
func Flag(c *fiber.Ctx, name string, fallback bool) (bool, error) {
	values := Option(c, name)
	if len(values) == 0 || values[0] == "" {
		return fallback, nil
	}
	isTrue := strings.EqualFold(values[0], "true")
	if !isTrue && !strings.EqualFold(values[0], "false") {
		return fallback, apierr.ParameterInvalid.Because("%s is true or false, not %q", name, values[0])
	}
	return isTrue, nil
}

// Option returns the values of a query parameter, whose name is read in any letter case.
func Option(c *fiber.Ctx, name string) (values []string) {
	for key, value := range c.Context().QueryArgs().All() {
		if strings.EqualFold(string(key), name) {
			values = append(values, string(value))
		}
	}
	return values
}

// Page answers with a page of a collection. href is the address of the collection without a
// query. The times of the page are those of the parent resource: see list.PageOf.
func Page[T, View any](c *fiber.Ctx, href string, page list.Page[T], view func(T) View) error {
	out := collection{
		Head:   NewHead(href, page.CreatedAt, page.ModifiedAt),
		Offset: page.Offset, Limit: page.Limit, Size: page.Size, Items: make([]any, len(page.Items)),
	}
	for i, item := range page.Items {
		out.Items[i] = view(item)
	}
	return respond(c, fiber.StatusOK, out)
}
