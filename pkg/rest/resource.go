package rest

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
)

// The functions below make the handlers of a resource out of a rule and a view,
// so that an endpoint is one line in routes.go:
//
//	v1.Get("/groups/:id", rest.Get(svc.Group, v.group))
//	v1.Post("/groups/:id", rest.Update(svc.UpdateGroup, v.group))
//	v1.Delete("/groups/:id", rest.Delete(svc.DeleteGroup))
//	v1.Get("/directories/:id/groups", rest.List(store.Groups, svc.DirectoryGroups, v.group))
//	v1.Post("/directories/:id/groups", rest.Create(svc.CreateGroupIn, v.group))
//
// A rule gets the resource of the path within the caller's tenant, and
// returns an error of the catalogue. Where a handler has more to do, it is
// written out.

// Head has the members that every representation begins with; a view embeds it.
type Head struct {
	Href       string `json:"href"`
	CreatedAt  Time   `json:"createdAt"`
	ModifiedAt Time   `json:"modifiedAt"`
}

// NewHead makes the head of a representation.
func NewHead(href string, createdAt, modifiedAt time.Time) Head {
	return Head{href, Time(createdAt), Time(modifiedAt)}
}

// Self is the address of the resource.
func (h Head) Self() string { return h.Href }

// Resource is a representation that knows its address.
type Resource interface{ Self() string }

// Ref returns the reference to the resource of the path, in the caller's tenant. It returns
// apierr.NotFound for a text that is no id.
func Ref(c *fiber.Ctx) (id.Ref, error) {
	v, err := ID(c, "id")
	return id.Ref{Tenant: Caller(c).Tenant, ID: v}, err
}

// RefAndBody is Ref, with the body of the request as Body reads it.
func RefAndBody[In, View any](c *fiber.Ctx) (at id.Ref, in In, err error) {
	if at, err = Ref(c); err == nil {
		err = Body[View](c, &in)
	}
	return at, in, err
}

// Get answers 200 with the resource of the path.
func Get[T, View any](read func(context.Context, id.Ref) (T, error), view func(T) View) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := Ref(c)
		if err != nil {
			return err
		}
		resource, err := read(c.UserContext(), at)
		if err != nil {
			return err
		}
		return OK(c, view(resource))
	}
}

// Update changes the resource of the path by the body and answers 200.
func Update[In, T any, View Resource](change func(context.Context, id.Ref, In) (T, error),
	view func(T) View) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := runWithBody(c, change, view)
		if err != nil {
			return err
		}
		return Updated(c, v.Self(), v)
	}
}

// Create makes a resource below that of the path and answers 201.
func Create[In, T any, View Resource](create func(context.Context, id.Ref, In) (T, error),
	view func(T) View) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := runWithBody(c, create, view)
		if err != nil {
			return err
		}
		return Created(c, v.Self(), v)
	}
}

// CreateOwn makes a resource of the caller's tenant, where the path names no parent resource,
// and answers 201.
func CreateOwn[In, T any, View Resource](create func(context.Context, id.ID, In) (T, error),
	view func(T) View) fiber.Handler {
	return func(c *fiber.Ctx) error {
		var in In
		if err := Body[View](c, &in); err != nil {
			return err
		}
		resource, err := create(c.UserContext(), Caller(c).Tenant, in)
		if err != nil {
			return err
		}
		v := view(resource)
		return Created(c, v.Self(), v)
	}
}

// Accept calls a rule with the resource of the path and the body, and answers 202 (Accepted)
// without a body.
func Accept[In any](rule func(context.Context, id.Ref, In) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, in, err := RefAndBody[In, struct{}](c)
		if err != nil {
			return err
		}
		c.Status(fiber.StatusAccepted)
		return rule(c.UserContext(), at, in)
	}
}

// runWithBody calls a rule with the resource of the path and the body, and returns the view of
// its result.
func runWithBody[In, T, View any](c *fiber.Ctx, rule func(context.Context, id.Ref, In) (T, error),
	view func(T) View) (v View, err error) {
	at, in, err := RefAndBody[In, View](c)
	if err != nil {
		return v, err
	}
	resource, err := rule(c.UserContext(), at, in)
	if err != nil {
		return v, err
	}
	return view(resource), nil
}

// Delete removes the resource of the path and answers 204, also where there is
// none of that id in the caller's tenant (docs/interface/conventions.md#deletion).
func Delete(remove func(context.Context, id.Ref) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := Ref(c)
		if err != nil && id.HasShape(c.Params("id")) {
			return NoContent(c) // an id of this form may have been deleted
		} else if err != nil {
			return err
		}
		return Deleted(c, remove(c.UserContext(), at))
	}
}

// Deleted answers a DELETE whose rule returned err: 204 when that is nil or
// apierr.NotFound.
func Deleted(c *fiber.Ctx, err error) error {
	if err != nil && !errors.Is(err, apierr.NotFound) {
		return err
	}
	return NoContent(c)
}

// List answers 200 with a page of a collection of the resource of the path.
func List[T, View any](
	spec list.Spec, read func(context.Context, id.Ref, list.Query) (list.Page[T], error), view func(T) View,
) fiber.Handler {
	return func(c *fiber.Ctx) error {
		at, err := Ref(c)
		if err != nil {
			return err
		}
		query, err := Query(c, spec)
		if err != nil {
			return err
		}
		page, err := read(c.UserContext(), at, query)
		if err != nil {
			return err
		}
		return Page(c, Address(c), page, view)
	}
}

type baseKey struct{}

// Address is the public URL of the path that was asked for.
func Address(c *fiber.Ctx) string {
	base, _ := c.Locals(baseKey{}).(href.Base)
	return base.Host() + string(c.Request().URI().PathOriginal())
}
