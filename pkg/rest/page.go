package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/list"
)

// collection is the representation of a page (resolutions, section 0.3).
type collection struct {
	Href   string `json:"href"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
	Size   int    `json:"size"`
	Items  []any  `json:"items"`
}

// Query reads the query of a collection.
func Query(c *fiber.Ctx, spec list.Spec) (list.Query, error) {
	return list.Parse(string(c.Request().URI().QueryString()), spec)
}

// Page answers a page of a collection, whose href repeats the query that
// produced it.
func Page[T, View any](c *fiber.Ctx, href string, page list.Page[T], view func(T) View) error {
	if query := c.Request().URI().QueryString(); len(query) > 0 {
		href += "?" + string(query)
	}
	out := collection{Href: href, Offset: page.Offset, Limit: page.Limit, Size: page.Size, Items: make([]any, len(page.Items))}
	for i, item := range page.Items {
		out.Items[i] = view(item)
	}
	return send(c, fiber.StatusOK, out)
}
