package rest

import (
	"strings"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/store"
)

// ref reads the resource of the path within the caller's tenant.
func ref(c *fiber.Ctx) (directoryapi.Ref, error) {
	v, err := rest.ID(c, "id")
	return directoryapi.Ref{Tenant: rest.Caller(c).Tenant, ID: v}, err
}

func (h *handlers) createApplication(c *fiber.Ctx) error {
	var in application.NewApplication
	if err := rest.Body[applicationView](c, &in); err != nil {
		return err
	}
	first, err := firstDirectory(c)
	if err != nil {
		return err
	}
	a, err := h.svc.CreateApplication(c.UserContext(), rest.Caller(c).Tenant, in, first)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.To("applications", a.ID), h.applicationView(a))
}

// firstDirectory reads the query parameter createDirectory: true, or the name
// of the directory. Clients that always send it send false for none.
func firstDirectory(c *fiber.Ctx) (first application.FirstDirectory, err error) {
	const parameter = "createDirectory"
	given := c.Context().QueryArgs().PeekMulti(parameter)
	if len(given) == 0 {
		return first, nil
	}
	text := string(given[0])
	switch {
	case len(given) > 1:
		return first, apierr.ParameterRepeated.Because("the query parameter %q is given twice", parameter)
	case strings.TrimSpace(text) == "":
		return first, apierr.ParameterEmpty.Because("the query parameter %q needs a value: true, or the name of the directory", parameter)
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return first, apierr.MalformedQuery.Because("the query parameter %q is not text in UTF-8", parameter)
	case strings.EqualFold(text, "false"):
		return first, nil
	}
	first.Wanted = true
	if !strings.EqualFold(text, "true") {
		first.Name, err = application.DirectoryName(text)
	}
	return first, err
}

func (h *handlers) application(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	a, err := h.svc.Application(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.OK(c, h.applicationView(a))
}

func (h *handlers) updateApplication(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.NewApplication
	if err := rest.Body[applicationView](c, &in); err != nil {
		return err
	}
	a, err := h.svc.UpdateApplication(c.UserContext(), at.Tenant, at.ID, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("applications", a.ID), h.applicationView(a))
}

func (h *handlers) deleteApplication(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	if err := h.svc.DeleteApplication(c.UserContext(), at.Tenant, at.ID); err != nil {
		return err
	}
	return rest.NoContent(c)
}

func (h *handlers) tenantApplications(c *fiber.Ctx) error {
	tenant, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Applications)
	if err != nil {
		return err
	}
	page, err := h.svc.ListApplications(c.UserContext(), tenant.Tenant, tenant.ID, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("tenants", tenant.ID, "applications"), page, h.applicationView)
}

func (h *handlers) directoryApplications(c *fiber.Ctx) error {
	directory, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Applications)
	if err != nil {
		return err
	}
	page, err := h.svc.ListDirectoryApplications(c.UserContext(), directory, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("directories", directory.ID, "applications"), page, h.applicationView)
}
