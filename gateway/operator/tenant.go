package operator

import (
	"context"
	"errors"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/rest"
)

const (
	maxReason = 1000 // characters of the reason of a change
	// defaultGrace is the time after which all of a tenant goes that is deleted.
	defaultGrace = 7 * 24 * time.Hour
)

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

	sizeapi.Figures

	APIKey *agesecret.APIKey `json:"apiKey,omitempty"` // of a tenant that was just created
}

// views returns the representations of tenants, with what the services store and have counted of them.
func (h handlers) views(c *fiber.Ctx, tenants ...directoryapi.Tenant) ([]tenantView, error) {
	ctx, ids := c.UserContext(), make([]id.ID, len(tenants))
	for i, t := range tenants {
		ids[i] = t.ID
	}
	query, err := usageapi.ParseQuery("", "", usageapi.Month, h.Now())
	if err != nil {
		return nil, err
	}
	query.Tenants = ids
	totals := map[id.ID]usageapi.Count{}
	if len(ids) > 0 {
		reports, err := h.reports(ctx, query)
		if err != nil {
			return nil, err
		}
		totals = usageapi.Totals(reports...)
	}
	views := make([]tenantView, len(tenants))
	for i, t := range tenants {
		views[i] = tenantView{
			Href: origin(c) + "/operator/v1/tenants/" + t.ID.String(), ID: t.ID, Key: t.Key, Name: t.Name, Status: t.Status,
			Reason: t.StatusReason, SuspendedAt: (*rest.Time)(t.SuspendedAt), DeleteAfter: (*rest.Time)(t.DeleteAfter),
			CreatedAt: rest.Time(t.CreatedAt), ModifiedAt: rest.Time(t.ModifiedAt),
		}
		views[i].SetUsage(totals[t.ID])
		owner, err := h.Directory.Owner(caller.WithTenant(ctx, t.ID), id.Ref{Tenant: t.ID, ID: t.ID})
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return nil, err
		}
		if err == nil {
			views[i].Owner = &sizeapi.Owner{ID: owner.ID, Email: owner.Email}
		}
	}
	return views, h.addSizes(ctx, views, ids)
}

// addSizes adds what the services store of tenants.
func (h handlers) addSizes(ctx context.Context, views []tenantView, ids []id.ID) error {
	if len(ids) == 0 {
		return nil
	}
	for _, service := range h.Sizes {
		answer, err := service.Sizes(ctx, sizeapi.Tenants{IDs: ids})
		if err != nil {
			return err
		}
		for i, size := range answer.Sizes {
			views[i].AddSize(size)
		}
	}
	return nil
}

// tenants answers with a page of the tenants.
func (h handlers) tenants(c *fiber.Ctx) error {
	page, err := h.Directory.ListTenants(c.UserContext(), directoryapi.ListTenants{Query: queryWithout(c)})
	if err != nil {
		return err
	}
	views, err := h.views(c, page.Items...)
	if err != nil {
		return err
	}
	out := collection{address(c), page.Offset, page.Limit, page.Size, make([]any, len(views))}
	for i, view := range views {
		out.Items[i] = view
	}
	return rest.OK(c, out)
}

// tenant answers with a tenant, by its key or its id.
func (h handlers) tenant(c *fiber.Ctx) error {
	t, err := h.Directory.FindTenant(c.UserContext(), directoryapi.TenantName{Name: c.Params("id")})
	if err != nil {
		return err
	}
	return h.answerTenant(c, fiber.StatusOK, t)
}

func (h handlers) answerTenant(c *fiber.Ctx, status int, t directoryapi.Tenant) error {
	views, err := h.views(c, t)
	if err != nil {
		return err
	}
	if err := rest.OK(c, views[0]); err != nil {
		return err
	}
	c.Status(status)
	return nil
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
		return h.answerTenant(c, fiber.StatusOK, t)
	}
}

// deleteTenant suspends a tenant, all of which goes after a grace.
func (h handlers) deleteTenant(c *fiber.Ctx) error {
	reason, err := field.Required(field.Some(c.Query("reason")), "reason", maxReason)
	if err != nil {
		return err
	}
	grace := defaultGrace
	if text := c.Query("grace"); text != "" {
		if grace, err = field.ParseDuration(text); err != nil || grace < 0 || grace > directoryapi.MaxGrace {
			return apierr.ParameterInvalid.Because("grace is a duration such as P7D, at most 400 days, not %q", text)
		}
	}
	t, err := h.Directory.DeleteTenant(c.UserContext(), directoryapi.DeleteTenant{
		OperatorChange: directoryapi.OperatorChange{Tenant: c.Params("id"), Operator: keyOf(c).name, Reason: &reason}, Grace: grace,
	})
	if err != nil {
		return err
	}
	return h.answerTenant(c, fiber.StatusAccepted, t)
}

// tenantBody is the body that creates a tenant.
type tenantBody struct {
	idsiteapi.NewTenant
	Recipient field.Text `json:"recipient"` // public key of age that the secret of the API key is encrypted for
}

// createTenant creates a tenant with its owner and his API key, and records that.
func (h handlers) createTenant(c *fiber.Ctx) error {
	var body tenantBody
	if err := rest.Body[tenantBody](c, &body); err != nil {
		return err
	}
	in, err := body.Request(h.Now())
	if err != nil {
		return err
	}
	shown, err := body.showKey(in)
	if err != nil {
		return err
	}
	_, err = h.IDSite.CreateTenant(c.UserContext(), in)
	e := directoryapi.OperatorEvent{
		ID: id.New(h.Now()), At: h.Now(), Command: "tenant create", Operator: keyOf(c).name, Tenant: &in.ID, Outcome: "DONE",
	}
	if err != nil {
		e.Outcome, e.Tenant = "REFUSED", nil
	}
	if _, recordErr := h.Directory.RecordOperatorEvent(c.UserContext(), e); err != nil || recordErr != nil {
		return errors.Join(err, recordErr)
	}
	t, err := h.Directory.FindTenant(c.UserContext(), directoryapi.TenantName{Name: in.ID.String()})
	if err != nil {
		return err
	}
	views, err := h.views(c, t)
	if err != nil {
		return err
	}
	views[0].APIKey = &shown
	return rest.Created(c, views[0].Href, views[0])
}

// showKey returns the API key of a tenant as the answer has it.
func (b tenantBody) showKey(of idsiteapi.CreateTenant) (agesecret.APIKey, error) {
	if !b.Recipient.Given() {
		return agesecret.ShowAPIKey(of.KeyID, of.KeySecret, nil)
	}
	recipients, err := agesecret.Recipients(b.Recipient.Value)
	if err != nil {
		return agesecret.APIKey{}, apierr.Format.Because("%v", err)
	}
	return agesecret.ShowAPIKey(of.KeyID, of.KeySecret, recipients)
}
