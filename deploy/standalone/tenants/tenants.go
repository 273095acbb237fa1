// Package tenants has the commands about the tenants of a deployment that read and write the databases of several
// services. What they share with the other commands is in package app.
package tenants

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/sizeapi"
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/tenantsize"
	"github.com/doorward/doorward/services/directory/operator"
	operatorstore "github.com/doorward/doorward/services/directory/operator/store"
	directory "github.com/doorward/doorward/services/directory/store"
)

// Variables declares what the commands read.
func Variables(source *env.Source) { source.Declare(new(app.Databases)) }

// deployment is the data of a deployment while a command runs.
type deployment struct {
	directories  *directory.Store
	logins, sent *pg.DB   // of the application and the notification service
	schemas      []*pg.DB // of all services
}

// with calls do with the data of the deployment, whether the product runs or not.
func with(ctx context.Context, source *env.Source, do func(deployment) error) (err error) {
	cfg, stop, err := app.LoadWithDatabase[app.Databases](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	opened, err := cfg.Open(ctx)
	if err != nil {
		return err
	}
	defer app.CloseAll(opened)
	return do(deploymentOf(opened))
}

// deploymentOf is the data of the databases of all services, by schema.
func deploymentOf(opened map[string]*pg.DB) deployment {
	return deployment{directory.New(opened["directory"], time.Now), opened["application"], opened["notification"],
		slices.Collect(maps.Values(opened))}
}

// keyOf returns the key of a tenant, or its id where the tenant has gone since.
func (d deployment) keyOf(ctx context.Context, tenant id.ID) (string, error) {
	found, err := d.directories.Tenant(caller.WithTenant(ctx, tenant), tenant)
	if errors.Is(err, apierr.NotFound) {
		return tenant.String(), nil
	}
	return found.Key, err
}

// shown is a tenant with what the services store and have counted of it in 30 days.
type shown struct {
	directoryapi.Tenant
	sizeapi.Figures

	APIKey *agesecret.APIKey `json:"apiKey,omitempty"` // of a tenant that was just created
}

// show adds what the services store and have counted of tenants.
func (d deployment) show(ctx context.Context, tenants []directoryapi.Tenant) ([]shown, error) {
	all, ids := make([]shown, len(tenants)), make([]id.ID, len(tenants))
	for i, t := range tenants {
		all[i].Tenant, ids[i] = t, t.ID
	}
	if len(ids) == 0 {
		return all, nil
	}
	query, err := usageapi.ParseQuery("", "", usageapi.Month, time.Now())
	if err != nil {
		return nil, err
	}
	query.Tenants = ids
	counts, err := d.usage(ctx, query)
	if err != nil {
		return nil, err
	}
	totals := usageapi.Totals(usageapi.Report{Counts: counts})
	for i, t := range tenants {
		all[i].SetUsage(totals[t.ID])
		found, err := d.directories.Owner(caller.WithTenant(ctx, t.ID), t.ID)
		if err != nil && !errors.Is(err, apierr.NotFound) {
			return nil, err
		}
		if err == nil {
			all[i].Owner = &sizeapi.Owner{ID: found.ID, Email: found.Email}
		}
	}
	for _, db := range d.schemas {
		sizes, err := tenantsize.Measure(ctx, db, ids)
		if err != nil {
			return nil, err
		}
		for i, t := range tenants {
			all[i].AddSize(sizes[t.ID])
		}
	}
	return all, nil
}

// list returns all tenants whose key or name has a text, the newest first.
func (d deployment) list(ctx context.Context, q, status string) (all []directoryapi.Tenant, err error) {
	query := list.Query{Q: q, Limit: list.MaxLimit, Order: []list.Order{{Attribute: "createdAt", Descending: true}}}
	if status != "" {
		query.Filters = []list.Filter{{Attribute: "status", Text: strings.ToUpper(status)}}
	}
	for {
		page, err := operatorstore.New(d.directories.DB()).ListTenants(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		query.Offset += list.MaxLimit
		if query.Offset >= page.Size {
			return all, nil
		}
	}
}

// List writes the tenants of the deployment to out, the newest first.
func List(ctx context.Context, source *env.Source, q, status string, asJSON bool, out io.Writer) error {
	return with(ctx, source, func(d deployment) error {
		tenants, err := d.list(ctx, q, status)
		if err != nil {
			return err
		}
		all, err := d.show(ctx, tenants)
		if err != nil {
			return err
		}
		if asJSON {
			return app.WriteJSON(out, all)
		}
		for _, t := range all {
			_, _ = fmt.Fprintf(out, "%s %s %s %d %d %d %s\n", t.Key, t.ID, t.Status, t.Accounts, t.Logins, t.Mails, t.Name)
		}
		return nil
	})
}

// Show writes the tenant with a key, an id or a name to out, as JSON.
func Show(ctx context.Context, source *env.Source, name string, out io.Writer) error {
	return with(ctx, source, func(d deployment) error {
		tenant, err := operator.FindTenant(ctx, d.directories, name)
		if errors.Is(err, apierr.NotFound) {
			tenant, err = d.findByName(ctx, name)
		}
		if err != nil {
			return err
		}
		all, err := d.show(ctx, []directoryapi.Tenant{tenant})
		if err != nil {
			return err
		}
		return app.WriteJSON(out, all[0])
	})
}

// findByName returns the only tenant with a name, in any letter case.
func (d deployment) findByName(ctx context.Context, name string) (directoryapi.Tenant, error) {
	query := list.Query{Limit: 2, Filters: []list.Filter{{Attribute: "name", Text: name}}}
	page, err := operatorstore.New(d.directories.DB()).ListTenants(ctx, query)
	switch {
	case err != nil:
		return directoryapi.Tenant{}, err
	case page.Size == 0:
		return directoryapi.Tenant{}, fmt.Errorf("no tenant has the key, the id or the name %q", name)
	case page.Size > 1:
		return directoryapi.Tenant{}, fmt.Errorf("%d tenants have the name %q: name one by its key", page.Size, name)
	}
	return page.Items[0], nil
}

// Deletion is what Delete is given.
type Deletion struct {
	Tenant, Reason, Grace string // Grace is a duration such as P7D
	Confirmed             bool   // do not ask
}

// Delete suspends a tenant and deletes all of it after a grace. It asks in, where that is a terminal.
func Delete(ctx context.Context, source *env.Source, in Deletion, terminal io.Reader, asJSON bool, out io.Writer) error {
	grace, err := field.ParseDuration(in.Grace)
	switch {
	case in.Reason == "":
		return app.UsageError("--reason: say why, for the record of operators")
	case err != nil || grace < 0 || grace > directoryapi.MaxGrace:
		return app.UsageError(fmt.Sprintf("--grace is a duration such as P7D, at most 400 days, not %q", in.Grace))
	case !in.Confirmed && terminal == nil:
		return app.UsageError("this is no terminal on which to ask: say --yes")
	}
	return with(ctx, source, func(d deployment) error {
		now := time.Now().UTC()
		e := operatorlog.Event{ID: id.New(now), At: now, Command: "tenant delete", Operator: app.OperatorName(source), Reason: &in.Reason}
		tenant, err := app.FindTenant(ctx, d.directories, in.Tenant)
		if err != nil {
			return errors.Join(err, operator.RecordRefused(ctx, d.directories, e))
		}
		if !in.Confirmed && !confirms(tenant, terminal, out) {
			return errors.New("nothing was deleted")
		}
		tenant, err = operator.DeleteTenant(caller.WithTenant(ctx, tenant.ID), d.directories, tenant, e, grace)
		if err != nil {
			return errors.New(apierr.From(err).Reason)
		}
		if asJSON {
			return app.WriteJSON(out, tenant)
		}
		_, err = fmt.Fprintf(out, "%s: %s until %s\n", tenant.Key, tenant.Status, tenant.DeleteAfter.UTC().Format(time.RFC3339))
		return err
	})
}

// confirms asks for the key of the tenant.
func confirms(tenant directoryapi.Tenant, terminal io.Reader, out io.Writer) bool {
	_, _ = fmt.Fprintf(out, "All of the tenant %q will be deleted. Its key, to go on: ", tenant.Name)
	line, _ := bufio.NewReader(terminal).ReadString('\n')
	return strings.TrimSpace(line) == tenant.Key
}
