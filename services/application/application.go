package application

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/events"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/redirecturi"
	"github.com/doorward/doorward/services/application/store"
)

// Limits of an application's text (docs/interface/limits.md#field-limits), in
// characters.
const (
	maxName        = 255
	maxDescription = 4000
	maxHomeURL     = 2000
)

// NewApplication is the body that creates or updates an application.
type NewApplication struct {
	Name                   field.Text        `json:"name"`
	Description            field.Text        `json:"description"`
	Status                 field.Text        `json:"status"`
	AuthorizedCallbackURIs field.List        `json:"authorizedCallbackUris"`
	AuthorizedOriginURIs   field.List        `json:"authorizedOriginUris"`
	HomeURL                field.Text        `json:"homeUrl"`
	CustomData             customdata.Change `json:"customData"`
}

// isCustomDataAlone reports whether a body has custom data and nothing else, or is empty, which
// does not change modifiedAt of the application (docs/interface/custom-data.md#endpoints).
func (in NewApplication) isCustomDataAlone() bool {
	in.CustomData = customdata.Change{}
	return reflect.DeepEqual(in, NewApplication{})
}

// Application returns an application, or apierr.NotFound.
func (s *Service) Application(ctx context.Context, in id.Ref) (applicationapi.Application, error) {
	a, err := s.store.Application(ctx, in.Tenant, in.ID)
	return s.ensureDNSLabel(ctx, a, err)
}

// FindApplication returns an application of any tenant by its id alone, or apierr.NotFound.
func (s *Service) FindApplication(ctx context.Context, in applicationapi.FindApplication) (applicationapi.Application,
	error) {
	a, err := s.store.FindApplication(ctx, in.ID)
	return s.ensureDNSLabel(ctx, a, err)
}

// ApplicationOfWebConfig returns the application whose web config has an id, or
// apierr.NotFound.
func (s *Service) ApplicationOfWebConfig(ctx context.Context, config id.Ref) (applicationapi.Application, error) {
	a, err := s.store.ApplicationOfWebConfig(ctx, config.Tenant, config.ID)
	return s.ensureDNSLabel(ctx, a, err)
}

// ApplicationOfSAMLPolicy returns the application whose SAML policy has an id, or
// apierr.NotFound. A SAML policy, and the application's own SAML service provider, have no data
// but links (docs/interface/applications.md#saml-policy), which are made from the application.
func (s *Service) ApplicationOfSAMLPolicy(ctx context.Context, at id.Ref) (applicationapi.Application, error) {
	a, err := s.store.ApplicationOfSAMLPolicy(ctx, at.Tenant, at.ID)
	return s.ensureDNSLabel(ctx, a, err)
}

// ApplicationData returns the values of keys of an application's customData, or
// apierr.NotFound.
func (s *Service) ApplicationData(ctx context.Context,
	in applicationapi.CustomDataRequest) (applicationapi.CustomDataValues, error) {
	data, err := s.CustomData(store.ApplicationKind).Read(ctx, in.Ref)
	return applicationapi.CustomDataValues{Values: data.Document.Printed(in.Keys)}, err
}

// ListApplications returns a page of the applications of a tenant. Any tenant but the caller's
// own is apierr.NotFound.
func (s *Service) ListApplications(ctx context.Context, tenant id.Ref,
	query list.Query) (list.Page[applicationapi.Application], error) {
	return list.PageOf(ctx, s.directories.Tenant, s.store.ListApplications, tenant, query)
}

// ListDirectoryApplications returns a page of the applications that a directory is
// mapped to, or apierr.NotFound for the directory.
func (s *Service) ListDirectoryApplications(
	ctx context.Context, directory id.Ref, query list.Query,
) (list.Page[applicationapi.Application], error) {
	return list.PageOf(ctx, s.directories.Directory, s.store.ListStoreApplications, directory, query)
}

// ListGroupApplications returns a page of the applications that a group is mapped
// to, or apierr.NotFound for the group.
func (s *Service) ListGroupApplications(
	ctx context.Context, group id.Ref, query list.Query,
) (list.Page[applicationapi.Application], error) {
	return list.PageOf(ctx, s.directories.Group, s.store.ListStoreApplications, group, query)
}

// ListAccountApplications returns a page of the applications that have an account in one of
// their account stores: its directory, a group, or an organization with one of these. An
// unknown account is apierr.NotFound.
func (s *Service) ListAccountApplications(
	ctx context.Context, account id.Ref, query list.Query,
) (list.Page[applicationapi.Application], error) {
	owner, err := s.directories.Account(ctx, account)
	if err != nil {
		return list.Page[applicationapi.Application]{}, err
	}
	of, err := s.directories.StoresOf(ctx, account)
	if err != nil {
		return list.Page[applicationapi.Application]{}, err
	}
	stores := make([]id.ID, len(of.Stores))
	for i, accountStore := range of.Stores {
		stores[i] = accountStore.ID
	}
	return s.store.ListReachingApplications(ctx, account.Tenant, stores,
		query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
}

// CreateApplication creates an application from a client's body, with a directory as its
// account store where directory asks for one, and with the origin of its own Client API among
// the authorized origins.
func (s *Service) CreateApplication(
	ctx context.Context, tenant id.ID, in NewApplication, directory DirectoryToCreate,
) (applicationapi.Application, error) {
	a := s.newApplication(tenant, id.New(s.now()), "")
	a.CreatedBy = caller.From(ctx).Key
	if err := applyApplication(&a, in, true); err != nil {
		return a, err
	}
	at := id.Ref{Tenant: tenant, ID: a.ID}
	mapping, err := s.createOwner(ctx, newOwner{
		owner: applicationOwner, ref: at, name: a.Name,
		nameTaken: func() (bool, error) { return s.store.NameTaken(ctx, tenant, a.Name) },
		insert:    func(tx *store.Tx) error { return s.insertApplication(ctx, tx, &a, in) },
		find:      func() error { _, err := s.Application(ctx, at); return err },
	}, directory)
	a.DefaultAccountStore, a.DefaultGroupStore = mapping, mapping
	return a, explainNameTaken(a, err)
}

// insertApplication inserts an application with a new DNS label and the customData of the body.
func (s *Service) insertApplication(ctx context.Context, tx *store.Tx, a *applicationapi.Application,
	in NewApplication) error {
	if err := assignDNSLabel(ctx, tx, a); err != nil {
		return err
	}
	s.ensureOwnOrigin(a)
	return tx.InsertApplication(ctx, *a, in.CustomData.Value)
}

// ensureOwnOrigin adds the origin of the application's own Client API to the authorized origins
// (CORS), unless the list has it already, and removes duplicates of it
// (docs/interface/applications.md#callbacks-and-origins).
func (s *Service) ensureOwnOrigin(a *applicationapi.Application) {
	if a.Builtin {
		return
	}
	own, list, isListed := s.ClientAPIOrigin(*a), []string{}, false
	for _, origin := range a.AuthorizedOriginURIs {
		isOwn := strings.EqualFold(origin, own)
		if !isOwn || !isListed {
			list = append(list, origin)
		}
		isListed = isListed || isOwn
	}
	if !isListed {
		list = append([]string{own}, list...)
	}
	a.AuthorizedOriginURIs = list
}

// newApplication returns an application with default values, and with new ids for its SAML
// policy, web config and account linking policy.
func (s *Service) newApplication(tenant, application id.ID, name string) applicationapi.Application {
	now := s.now()
	return applicationapi.Application{
		TenantID: tenant, ID: application, Name: name, Status: directoryapi.Enabled,
		AuthorizedCallbackURIs: []string{}, AuthorizedOriginURIs: []string{},
		SAMLPolicyID: id.New(now), WebConfigID: id.New(now), AccountLinkingPolicyID: id.New(now),
		CreatedAt: now, ModifiedAt: now,
	}
}

// explainNameTaken adds the texts to apierr.Exists, the error of a name that another
// application of the tenant has. Other errors are returned unchanged.
func explainNameTaken(a applicationapi.Application, err error) error {
	if !errors.Is(err, apierr.Exists) {
		return err
	}
	return apierr.Exists.Because("an application with the name %q exists", a.Name).Saying(
		"An application of that name exists.")
}

// applyApplication writes the members of a body into an application and checks them.
func applyApplication(a *applicationapi.Application, in NewApplication, isNew bool) (err error) {
	var errs field.Errors
	errs.Required(&a.Name, in.Name, "name", maxName, isNew)
	errs.Optional(&a.Description, in.Description, "description", maxDescription)
	errs.Enum(&a.Status, in.Status.NullIsAbsent(isNew), "status", directoryapi.Enabled, directoryapi.Disabled)
	if in.AuthorizedCallbackURIs.Present {
		a.AuthorizedCallbackURIs, err = redirecturi.Callbacks(in.AuthorizedCallbackURIs, "authorizedCallbackUris",
			a.AuthorizedCallbackURIs)
		errs.Add(err)
	}
	if in.AuthorizedOriginURIs.Present {
		a.AuthorizedOriginURIs, err = redirecturi.Origins(in.AuthorizedOriginURIs, "authorizedOriginUris",
			a.AuthorizedOriginURIs)
		errs.Add(err)
	}
	if strings.TrimSpace(in.HomeURL.Or("")) != "" {
		errs.Add(redirecturi.CheckHome(in.HomeURL.Value, "homeUrl"))
	}
	errs.Optional(&a.HomeURL, in.HomeURL, "homeUrl", maxHomeURL)
	return errs.First()
}

// UpdateApplication changes the members that the body names. A change of customData alone does
// not change the application and its modifiedAt.
func (s *Service) UpdateApplication(ctx context.Context, at id.Ref,
	in NewApplication) (applicationapi.Application, error) {
	var a applicationapi.Application
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockApplication(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		before := a
		if err := applyApplication(&a, in, false); err != nil {
			return err
		}
		if err := tx.MergeCustomData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil ||
			in.isCustomDataAlone() {
			return err
		}
		if in.AuthorizedOriginURIs.Present {
			s.ensureOwnOrigin(&a)
		}
		a.ModifiedAt = s.now()
		return tx.UpdateApplication(ctx, before, a)
	})
	return a, explainNameTaken(a, err)
}

// DeleteApplication deletes an application with its mappings, its linking policy, its SAML
// identity provider and its customData; the account stores are not deleted. Other services
// delete their data of the application, such as tokens, when they handle the event
// ApplicationDeleted. The built-in console is refused with apierr.BadRequest.
func (s *Service) DeleteApplication(ctx context.Context, at id.Ref) error {
	return s.store.Tx(ctx, func(tx *store.Tx) error {
		a, err := tx.LockApplication(ctx, at.Tenant, at.ID)
		if err != nil {
			return err
		}
		if a.Builtin {
			return apierr.BadRequest.Because("the console application cannot be deleted")
		}
		if err := tx.DeleteApplication(ctx, a); err != nil {
			return err
		}
		return tx.Emit(ctx, events.ApplicationDeleted{Tenant: at.Tenant, Application: at.ID})
	})
}
