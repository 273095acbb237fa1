package rest

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
)

// createWithDirectory is rest.CreateOwn for applications and organizations, which can be created
// together with a directory (query parameter createDirectory).
func createWithDirectory[In, T any, View rest.Resource](
	create func(context.Context, id.ID, In, application.DirectoryToCreate) (T, error),
	view func(T) View) fiber.Handler {
	return func(c *fiber.Ctx) error {
		directory, err := parseCreateDirectory(c)
		if err != nil {
			return err
		}
		return rest.CreateOwn(func(ctx context.Context, tenant id.ID, in In) (T,
			error) {
			return create(ctx, tenant, in, directory)
		}, view)(c)
	}
}

// parseCreateDirectory parses the query parameter createDirectory: true, the name of the
// directory, or false for no directory.
func parseCreateDirectory(c *fiber.Ctx) (first application.DirectoryToCreate, err error) {
	const parameter = "createDirectory"
	given := c.Context().QueryArgs().PeekMulti(parameter)
	if len(given) == 0 {
		return first, nil
	}
	text := string(given[0])
	switch {
	case slices.ContainsFunc(given[1:], func(other []byte) bool { return string(other) != text }):
		return first, apierr.ParameterRepeated.Because("the query parameter %q has several values; send one", parameter)
	case strings.TrimSpace(text) == "":
		return first, apierr.Required.Because(
			"the query parameter %q needs a value: true, or the name of the directory",
			parameter)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return first, apierr.MalformedQuery.Because("the query parameter %q is not text in UTF-8", parameter)
	case strings.EqualFold(text, "false"):
		return first, nil
	}
	first.Wanted = true
	if !strings.EqualFold(text, "true") {
		first.Name, err = application.CheckDirectoryName(text)
	}
	return first, err
}
