package tenants

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/doorward/doorward/deploy/standalone/app"
	"github.com/doorward/doorward/pkg/agesecret"
	"github.com/doorward/doorward/pkg/alias"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/idsiteapi"
	"github.com/doorward/doorward/pkg/apierr"
	domains "github.com/doorward/doorward/pkg/deployment"
	"github.com/doorward/doorward/pkg/env"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/operatorlog"
	"github.com/doorward/doorward/services/application"
	applications "github.com/doorward/doorward/services/application/app"
	applicationstore "github.com/doorward/doorward/services/application/store"
	directories "github.com/doorward/doorward/services/directory/app"
	"github.com/doorward/doorward/services/idsite"
	"github.com/doorward/doorward/services/idsite/signup"
	sites "github.com/doorward/doorward/services/idsite/store"
	"github.com/doorward/doorward/services/oauth"
	tokens "github.com/doorward/doorward/services/oauth/store"
)

// creationConfig is what Create reads besides the databases and the master key. Both have to be those of the services.
type creationConfig struct {
	Alias  string `env:"DOORWARD_ALIAS" default:"service" help:"product name in grant types, headers and names"`
	Suffix string `env:"DOORWARD_IDSITE_SUFFIX" default:"localhost" help:"domain under which tenants have their hosted pages"`
}

// CreationVariables declares what Create reads.
func CreationVariables(source *env.Source) {
	app.TenantVariables(source)
	source.Declare(new(creationConfig))
}

// Creation is what Create is given.
type Creation struct {
	idsiteapi.NewTenant
	Recipients string // public keys of age that the secret of the API key is encrypted for; none: it is printed
}

// Create creates a tenant with its owner, whose password is unset until a reset by mail, and writes it with the owner's
// API key to out, as JSON. It works on the databases, whether the product runs or not. A key of a tenant that is taken, or was
// once, is an error. Create sets the tenant of the event.
func Create(ctx context.Context, source *env.Source, in Creation, e *operatorlog.Event, out io.Writer) (err error) {
	request, err := in.Request(time.Now())
	if err != nil {
		return app.UsageError(apierr.From(err).Reason)
	}
	recipients, err := app.SecretRecipients(source, in.Recipients)
	if err != nil {
		return err
	}
	key, err := agesecret.ShowAPIKey(request.KeyID, request.KeySecret, recipients)
	if err != nil {
		return err
	}
	data, err := app.OpenDeployment(ctx, source)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	signUps, err := signUpsOf(ctx, source, data)
	if err != nil {
		return err
	}
	_, err = signUps.CreateTenant(ctx, request)
	if errors.Is(err, apierr.Exists) {
		return fmt.Errorf("the key %q is that of a tenant, or was once", request.Key)
	}
	if err != nil {
		return err
	}
	e.Tenant = &request.ID
	d := deploymentOf(data.DBs)
	tenant, err := app.FindTenant(ctx, d.directories, request.ID.String())
	if err != nil {
		return err
	}
	all, err := d.show(ctx, []directoryapi.Tenant{tenant})
	if err != nil {
		return err
	}
	all[0].APIKey = &key
	return app.WriteJSON(out, all[0])
}

// signUpsOf returns what creates tenants.
func signUpsOf(ctx context.Context, source *env.Source, data *app.DeploymentData) (*signup.Tenants, error) {
	cfg := env.Load[creationConfig](source)
	word, err := alias.Parse(cfg.Alias)
	if err == nil {
		err = domains.CheckDomain("DOORWARD_IDSITE_SUFFIX", cfg.Suffix)
	}
	if err != nil {
		return nil, app.UsageError(err.Error())
	}
	if err := data.EnsureKeys(ctx); err != nil {
		return nil, err
	}
	return signup.New(sites.New(data.DBs["idsite"], time.Now), peersOf(data, word), data.Ring, time.Now,
		signup.Config{AliasTitle: word.Title(), Suffix: cfg.Suffix}), nil
}

// peersOf returns the services that a new tenant has resources of.
func peersOf(data *app.DeploymentData, word alias.Alias) idsite.Peers {
	var base href.Base // of hrefs, which nothing of this has
	directory := directories.New(deploymentOf(data.DBs).directories, nil, data.Ring, base, time.Now, directories.Rules{})
	application := applications.New(applicationstore.New(data.DBs["application"], time.Now), directory, data.Ring, base, time.Now,
		application.Config{Alias: word})
	keys := oauth.New(tokens.New(data.DBs["oauth"], time.Now), oauth.Peers{Directory: directory, Application: application}, data.Ring,
		time.Now, oauth.Config{Alias: word})
	return idsite.Peers{Directory: directory, Application: application, OAuth: keys}
}
