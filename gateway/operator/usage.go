package operator

import (
	"context"

	"github.com/gofiber/fiber/v2"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/rest"
)

// usageView is the representation of what a tenant used within an hour, a day or a month.
type usageView struct {
	Tenant       id.ID     `json:"tenant"`
	From         rest.Time `json:"from"`
	Logins       int64     `json:"logins"`
	FailedLogins int64     `json:"failedLogins"`
	Mails        int64     `json:"mails"`
	Texts        int64     `json:"texts"`
}

// usage answers with what all tenants used, the newest first.
func (h handlers) usage(c *fiber.Ctx) error { return h.answerUsage(c, id.ID{}) }

// usageOfTenant answers with what a tenant used, by its key or its id.
func (h handlers) usageOfTenant(c *fiber.Ctx) error {
	t, err := h.Directory.FindTenant(c.UserContext(), directoryapi.TenantName{Name: c.Params("id")})
	if err != nil {
		return err
	}
	return h.answerUsage(c, t.ID)
}

func (h handlers) answerUsage(c *fiber.Ctx, tenant id.ID) error {
	query, err := usageapi.ParseQuery(c.Query("from"), c.Query("to"), c.Query("by"), h.Now())
	if err != nil {
		return err
	}
	if !tenant.IsZero() {
		query.Tenants = []id.ID{tenant}
	}
	at, err := list.Parse(queryWithout(c, "from", "to", "by"), list.Spec{})
	if err != nil {
		return err
	}
	reports, err := h.reports(c.UserContext(), query)
	if err != nil {
		return err
	}
	counts := usageapi.Merge(reports...)
	page := list.NewPage[usageapi.Count](at)
	page.Size = len(counts)
	first := min(at.Offset, len(counts))
	page.Items = counts[first:min(first+at.Limit, len(counts))]
	return answerPage(c, page, func(u usageapi.Count) any {
		return usageView{u.Tenant, rest.Time(u.From), u.Logins, u.FailedLogins, u.Mails, u.Texts}
	})
}

// reports returns what the services have counted.
func (h handlers) reports(ctx context.Context, query usageapi.Query) ([]usageapi.Report, error) {
	reports := make([]usageapi.Report, len(h.Usage))
	for i, service := range h.Usage {
		var err error
		if reports[i], err = service.Usage(ctx, query); err != nil {
			return nil, err
		}
	}
	return reports, nil
}
