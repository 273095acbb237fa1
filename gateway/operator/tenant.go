package operator

import (
	"context"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

// maxReason bounds the reason of a change, in characters.
const maxReason = 1000

// tenantView is the representation of a tenant.
type tenantView struct {
	Href        string     `json:"href"`
	ID          id.ID      `json:"id"`
	Key         string     `json:"key"`
	Name        string     `json:"name"`
	Status      string     `json:"status"`
	Reason      *string    `json:"reason"`
	SuspendedAt *rest.Time `json:"suspendedAt"`
	DeleteAfter *rest.Time `json:"deleteAfter"`
	CreatedAt   rest.Time  `json:"createdAt"`
	ModifiedAt  rest.Time  `json:"modifiedAt"`
}

func viewTenant(c *fiber.Ctx, t directoryapi.Tenant) tenantView {
	return tenantView{
		Href: origin(c) + "/operator/v1/tenants/" + t.ID.String(), ID: t.ID, Key: t.Key, Name: t.Name, Status: t.Status,
		Reason: t.StatusReason, SuspendedAt: optionalTime(t.SuspendedAt), DeleteAfter: optionalTime(t.DeleteAfter),
		CreatedAt: rest.Time(t.CreatedAt), ModifiedAt: rest.Time(t.ModifiedAt),
	}
}

func optionalTime(at *time.Time) *rest.Time { return (*rest.Time)(at) }

// tenants answers with a page of the tenants.
func (h handlers) tenants(c *fiber.Ctx) error {
	page, err := h.Directory.ListTenants(c.UserContext(), directoryapi.ListTenants{Query: queryWithout(c)})
	if err != nil {
		return err
	}
	return answerPage(c, page, func(t directoryapi.Tenant) any { return viewTenant(c, t) })
}

// tenant answers with a tenant, by its key or its id.
func (h handlers) tenant(c *fiber.Ctx) error {
	t, err := h.Directory.FindTenant(c.UserContext(), directoryapi.TenantName{Name: c.Params("id")})
	if err != nil {
		return err
	}
	return rest.OK(c, viewTenant(c, t))
}

// changeBody is the body of a change of a tenant's status.
type changeBody struct {
	Reason field.Text `json:"reason"`
}

// change is the handler that changes the status of a tenant, for a reason.
func (h handlers) change(rule func(context.Context, directoryapi.OperatorChange) (directoryapi.Tenant, error)) fiber.Handler {
	return func(c *fiber.Ctx) error {
		var body changeBody
		if err := rest.Body[changeBody](c, &body); err != nil {
			return err
		}
		reason, err := field.Required(body.Reason, "reason", maxReason)
		if err != nil {
			return err
		}
		t, err := rule(c.UserContext(), directoryapi.OperatorChange{
			Tenant: c.Params("id"), Operator: keyOf(c).name, Reason: &reason,
		})
		if err != nil {
			return err
		}
		return rest.OK(c, viewTenant(c, t))
	}
}
