package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/field"
	links "github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/application"
	applicationrest "github.com/doorward/doorward/services/application/rest"
	applicationstore "github.com/doorward/doorward/services/application/store"
	"github.com/doorward/doorward/services/application/throttle"
	directory "github.com/doorward/doorward/services/directory/app"
	directorystore "github.com/doorward/doorward/services/directory/store"
)

// explainConfig is what Explain reads.
type explainConfig struct {
	Databases loginsConfig
	MasterKey secure.Secret `env:"DOORWARD_MASTER_KEY" required:"true" help:"master keys that encrypt secrets at rest"`
	Secret    secure.Secret `env:"DOORWARD_INTERNAL_SECRET" required:"true" help:"secret that all processes of the deployment share"`
	BaseURL   string        `env:"DOORWARD_BASE_URL" help:"public address of the management API, of the links in --json"`
	KnownFor  time.Duration `env:"DOORWARD_LOGIN_KNOWN_FOR" default:"720h" help:"how long after a successful login an address is known"`
}

// ExplainVariables declares what Explain reads.
func ExplainVariables(source *env.Source) { source.Declare(new(explainConfig)) }

// ErrWouldRefuse is returned by Explain for a login that would be refused before its password is compared.
var ErrWouldRefuse = errors.New("the login would be refused")

// Explain writes to out what a login at an application would do, whatever its password is: the account stores, the
// counters of failed logins, and whether the password would be compared. If not it returns ErrWouldRefuse. Without the
// name of a tenant the application is that of any tenant, if it is the only one.
func Explain(ctx context.Context, source *env.Source, tenantName, applicationName, login string, asJSON bool, out io.Writer) (err error) {
	inFolder := !namesADatabase(source)
	stop, err := resolveDatabase(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if inFolder {
		if err := resolveFolder(source); err != nil {
			return err
		}
	}
	cfg := env.Load[explainConfig](source)
	if err := source.Err(); err != nil {
		return err
	}
	ring, err := parseMasterKey(cfg.MasterKey)
	if err != nil {
		return err
	}
	base := links.NewBase(cfg.BaseURL)
	directories, err := pg.Open(ctx, directorystore.Config(cfg.Databases.Directory))
	if err != nil {
		return err
	}
	defer directories.Close()
	applications, err := pg.Open(ctx, applicationstore.Config(cfg.Databases.Application))
	if err != nil {
		return err
	}
	defer applications.Close()
	accounts, mappings := directorystore.New(directories, time.Now), applicationstore.New(applications, time.Now)
	app, err := findApplication(ctx, accounts, mappings, tenantName, applicationName)
	if err != nil {
		return err
	}
	ctx = caller.WithTenant(ctx, app.TenantID)
	svc := application.New(mappings, directory.New(accounts, nil, ring, base, time.Now, directory.Rules{}), base, time.Now,
		application.Config{Throttle: throttle.Config{LoginKey: secure.Derive(cfg.Secret, "application logins"),
			KnownFor: cfg.KnownFor}})
	e, err := svc.ExplainLogin(ctx, id.Ref{Tenant: app.TenantID, ID: app.ID}, application.LoginAttempt{
		Type:  field.Some("basic"),
		Value: field.Some(secure.Secret(base64.StdEncoding.EncodeToString([]byte(login + ":")))),
	})
	if err != nil {
		return err
	}
	if asJSON {
		err = WriteJSON(out, applicationrest.Explanation(svc, base, e))
	} else {
		writeExplanation(out, e)
	}
	if err == nil && e.Refusal != nil {
		return ErrWouldRefuse
	}
	return err
}

// findApplication returns the application with a name or an id: that of the tenant with a key or an id or, where tenantName
// is empty, of any tenant.
func findApplication(ctx context.Context, accounts *directorystore.Store, data *applicationstore.Store, tenantName, name string,
) (applicationapi.Application, error) {
	if tenantName == "" {
		return findApplicationOfAny(ctx, data, name)
	}
	tenant, err := FindTenant(ctx, accounts, tenantName)
	if err != nil {
		return applicationapi.Application{}, err
	}
	ctx = caller.WithTenant(ctx, tenant.ID)
	found, err := data.ApplicationOfName(ctx, tenant.ID, name)
	if application, idErr := id.Parse(name); errors.Is(err, apierr.NotFound) && idErr == nil {
		found, err = data.Application(ctx, tenant.ID, application)
	}
	if errors.Is(err, apierr.NotFound) {
		return found, fmt.Errorf("no application of the tenant has the name or the id %q", name)
	}
	return found, err
}

// findApplicationOfAny returns the application with an id, or the only one of all tenants with a name.
func findApplicationOfAny(ctx context.Context, data *applicationstore.Store, name string) (applicationapi.Application, error) {
	if application, err := id.Parse(name); err == nil {
		found, err := data.FindApplication(ctx, application)
		if !errors.Is(err, apierr.NotFound) {
			return found, err
		}
	}
	named, err := data.ApplicationsOfName(ctx, name)
	switch {
	case err != nil:
		return applicationapi.Application{}, err
	case len(named) == 0:
		return applicationapi.Application{}, fmt.Errorf("no application has the name or the id %q", name)
	case len(named) > 1:
		return applicationapi.Application{}, fmt.Errorf("several tenants have an application %q: name one by --tenant", name)
	}
	return named[0], nil
}

// writeExplanation writes an explanation in lines.
func writeExplanation(out io.Writer, e application.Explanation) {
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(out, format+"\n", args...) }
	for _, s := range e.Stores {
		line("store %s %s %s %q: %s", s.Store().Kind, s.Store().ID, s.Status, s.Name, s.Outcome)
	}
	for _, c := range e.Throttle.Counters {
		line("counter %s: %d of %d failed until %s", c.Limit, c.Failures, c.Most, c.EndsAt.UTC().Format(time.RFC3339))
	}
	if e.Throttle.Limit != "" {
		line("limit %s until %s", e.Throttle.Limit, e.Throttle.Until.UTC().Format(time.RFC3339))
	}
	if e.Found != nil {
		line("account %s %s", e.Found.Account.ID, e.Found.Account.Status)
	}
	if e.AfterPassword != nil {
		line("after the right password: %d %s", e.AfterPassword.Code, e.AfterPassword.DeveloperMessage())
	}
	if e.Refusal != nil {
		line("would refuse: %d %s", e.Refusal.Code, e.Refusal.DeveloperMessage())
		return
	}
	line("would compare the password")
}
