package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/operator"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// operatorConfig says who gives a command.
type operatorConfig struct {
	Operator string `env:"DOORWARD_OPERATOR,SUDO_USER" help:"who gives the command, for its record; empty: the user of the system"`
}

// DeclareOperator declares what all commands may be given: who gives them.
func DeclareOperator(source *env.Source) { source.Declare(new(operatorConfig)) }

// name is the operator, as the record of operators names him.
func (c operatorConfig) name() string {
	if c.Operator != "" {
		return c.Operator
	}
	current, err := user.Current()
	if err != nil { // a container may run as a user without a name
		return "unknown"
	}
	return cmp.Or(current.Username, current.Uid)
}

// OperatorName returns who gives a command, as the record of operators names him.
func OperatorName(source *env.Source) string { return env.Load[operatorConfig](source).name() }

// tenantStatusConfig is what SuspendTenant, ResumeTenant and OperatorEvents read.
type tenantStatusConfig struct {
	Directory secure.Secret `env:"DIRECTORY_DATABASE_URL,DATABASE_URL" required:"true" help:"PostgreSQL of the directory service"`
	Operator  operatorConfig
}

// TenantStatusVariables declares what SuspendTenant, ResumeTenant and OperatorEvents read.
func TenantStatusVariables(source *env.Source) { source.Declare(new(tenantStatusConfig)) }

// withTenants calls do with the tenants of the deployment, whether the product runs or not.
func withTenants(ctx context.Context, source *env.Source,
	do func(db *pg.DB, data *directorystore.Store, operator string) error) (err error) {
	cfg, stop, err := LoadWithDatabase[tenantStatusConfig](ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	db, err := pg.Open(ctx, directorystore.Config(cfg.Directory))
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db, directorystore.New(db, time.Now), cfg.Operator.name())
}

// SuspendTenant suspends the tenant with a key or an id, everywhere within 100 ms, and writes its status to out: the
// tenant as JSON where asJSON. It records the operator and the reason. It is idempotent.
func SuspendTenant(ctx context.Context, source *env.Source, tenantName, reason string, asJSON bool, out io.Writer) error {
	e := operatorlog.Event{Command: "tenant suspend", Reason: &reason}
	if reason == "" {
		return UsageError("--reason: say why, for the record of operators")
	}
	return changeTenantStatus(ctx, source, tenantName, e, operator.SuspendTenant, asJSON, out)
}

// ResumeTenant ends the suspension of the tenant with a key or an id, as SuspendTenant begins it.
func ResumeTenant(ctx context.Context, source *env.Source, tenantName string, asJSON bool, out io.Writer) error {
	e := operatorlog.Event{Command: "tenant resume"}
	return changeTenantStatus(ctx, source, tenantName, e, operator.ResumeTenant, asJSON, out)
}

// tenantChange changes the status of a tenant and records the event.
type tenantChange func(context.Context, *directorystore.Store, directoryapi.Tenant, operatorlog.Event) (directoryapi.Tenant, error)

func changeTenantStatus(ctx context.Context, source *env.Source, tenantName string, e operatorlog.Event,
	change tenantChange, asJSON bool, out io.Writer) error {
	return withTenants(ctx, source, func(db *pg.DB, data *directorystore.Store, operator string) error {
		e.ID, e.At, e.Operator = id.New(time.Now()), time.Now().UTC(), operator
		tenant, err := FindTenant(ctx, data, tenantName)
		if err != nil {
			return errors.Join(err, recordRefused(ctx, db, e))
		}
		tenant, err = change(caller.WithTenant(ctx, tenant.ID), data, tenant, e)
		if err != nil {
			return err
		}
		if !asJSON {
			_, err = fmt.Fprintf(out, "%s: %s\n", tenant.Key, tenant.Status)
			return err
		}
		return WriteJSON(out, tenant)
	})
}

// recordRefused records a command that has changed nothing.
func recordRefused(ctx context.Context, db *pg.DB, e operatorlog.Event) error {
	e.Outcome = operatorlog.Refused
	return record(ctx, db, e)
}

// OperatorEvents writes what operators have done by commands to out, the newest first: of the tenant with a key or an
// id, or of all where that is empty.
func OperatorEvents(ctx context.Context, source *env.Source, tenantName, since string, asJSON bool, out io.Writer) error {
	within, err := parseWithin(since, operatorlog.Retention)
	if err != nil {
		return err
	}
	return withTenants(ctx, source, func(db *pg.DB, data *directorystore.Store, _ string) error {
		var of *id.ID
		if tenantName != "" {
			tenant, err := FindTenant(ctx, data, tenantName)
			if err != nil {
				return err
			}
			of = &tenant.ID
		}
		events, err := operatorlog.Events(ctx, db, of, time.Now().Add(-within))
		if err != nil {
			return err
		}
		if asJSON {
			return WriteJSON(out, events)
		}
		for _, e := range events {
			tenant, reason := "-", "-"
			if e.Tenant != nil {
				tenant = e.Tenant.String()
			}
			if e.Reason != nil {
				reason = *e.Reason
			}
			_, _ = fmt.Fprintf(out, "%s %s %s %s %s %s\n", e.At.UTC().Format(time.RFC3339), e.Outcome, e.Operator, tenant, e.Command, reason)
		}
		return nil
	})
}

// WriteJSON writes a value, indented.
func WriteJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
