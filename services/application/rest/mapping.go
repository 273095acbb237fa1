package rest

import (
	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/application"
	"github.com/doorward/doorward/services/application/store"
)

func (h *handlers) createMapping(c *fiber.Ctx) error {
	var in application.NewMapping
	if err := rest.Body[mappingView](c, &in); err != nil {
		return err
	}
	m, err := h.svc.CreateMapping(c.UserContext(), rest.Caller(c).Tenant, in)
	if err != nil {
		return err
	}
	return rest.Created(c, h.base.To("accountStoreMappings", m.ID), h.mappingView(m))
}

func (h *handlers) mapping(c *fiber.Ctx) error {
	in, err := ref(c)
	if err != nil {
		return err
	}
	m, err := h.svc.Mapping(c.UserContext(), in)
	if err != nil {
		return err
	}
	return rest.OK(c, h.mappingView(m))
}

func (h *handlers) updateMapping(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	var in application.MappingChange
	if err := rest.Body[mappingView](c, &in); err != nil {
		return err
	}
	m, err := h.svc.UpdateMapping(c.UserContext(), at.Tenant, at.ID, in)
	if err != nil {
		return err
	}
	return rest.Updated(c, h.base.To("accountStoreMappings", m.ID), h.mappingView(m))
}

func (h *handlers) deleteMapping(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	if err := h.svc.DeleteMapping(c.UserContext(), at.Tenant, at.ID); err != nil {
		return err
	}
	return rest.NoContent(c)
}

func (h *handlers) applicationMappings(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Mappings)
	if err != nil {
		return err
	}
	page, err := h.svc.ListApplicationMappings(c.UserContext(), at, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("applications", at.ID, "accountStoreMappings"), page, h.mappingView)
}

func (h *handlers) directoryMappings(c *fiber.Ctx) error {
	at, err := ref(c)
	if err != nil {
		return err
	}
	query, err := rest.Query(c, store.Mappings)
	if err != nil {
		return err
	}
	page, err := h.svc.ListDirectoryMappings(c.UserContext(), at, query)
	if err != nil {
		return err
	}
	return rest.Page(c, h.base.To("directories", at.ID, "applicationMappings"), page, h.mappingView)
}
