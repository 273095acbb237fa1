package tenants

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/usage"
)

// usage adds up what the services have counted.
func (d deployment) usage(ctx context.Context, query usageapi.Query) ([]usageapi.Count, error) {
	logins, err := usage.Read(ctx, d.logins, query)
	if err != nil {
		return nil, err
	}
	sent, err := usage.Read(ctx, d.sent, query)
	return usageapi.Merge(logins, sent), err
}

// UsageQuery says which usage is asked for: days, both inclusive, and hour, day or month.
type UsageQuery struct{ Tenant, From, To, By string }

// Usage writes what tenants used to out, the newest first: of the tenant with a key or an id, or of all where that is
// empty.
func Usage(ctx context.Context, source *env.Source, in UsageQuery, asJSON bool, out io.Writer) error {
	query, err := usageapi.ParseQuery(in.From, in.To, in.By, time.Now())
	if err != nil {
		return app.UsageError(apierr.From(err).Reason)
	}
	return with(ctx, source, func(d deployment) error {
		if in.Tenant != "" {
			tenant, err := app.FindTenant(ctx, d.directories, in.Tenant)
			if err != nil {
				return err
			}
			query.Tenants = []id.ID{tenant.ID}
		}
		counts, err := d.usage(ctx, query)
		if err != nil {
			return err
		}
		if asJSON {
			return app.WriteJSON(out, counts)
		}
		keys := map[id.ID]string{}
		for _, c := range counts {
			if keys[c.Tenant] == "" {
				if keys[c.Tenant], err = d.keyOf(ctx, c.Tenant); err != nil {
					return err
				}
			}
			_, _ = fmt.Fprintf(out, "%s %s %d %d %d %d\n", keys[c.Tenant], c.From.Format(time.RFC3339), c.Logins, c.FailedLogins, c.Mails, c.Texts)
		}
		return nil
	})
}
