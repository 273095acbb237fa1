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
)

// NewApplication is the body that creates or updates an application.
type NewApplication struct {
	Name                   field.Text        `json:"name"`
	Description            field.Text        `json:"description"`
	Status                 field.Text        `json:"status"`
	AuthorizedCallbackURIs field.List        `json:"authorizedCallbackUris"`
	AuthorizedOriginURIs   field.List        `json:"authorizedOriginUris"`
	CustomData             customdata.Change `json:"customData"`
}

// isForCustomData reports whether a body names nothing of the application
// itself: its customData is a resource of its own.
func (in NewApplication) isForCustomData() bool {
	in.CustomData = customdata.Change{}
	return reflect.DeepEqual(in, NewApplication{})
}

// Application returns an application, or apierr.NotFound.
func (s *Service) Application(ctx context.Context, in id.Ref) (applicationapi.Application, error) {
	a, err := s.store.Application(ctx, in.Tenant, in.ID)
	return s.labelled(ctx, a, err)
}

// ApplicationOfWebConfig returns the application that has the web config of that id,
// or apierr.NotFound.
func (s *Service) ApplicationOfWebConfig(ctx context.Context, config id.Ref) (applicationapi.Application, error) {
	a, err := s.store.ApplicationOfWebConfig(ctx, config.Tenant, config.ID)
	return s.labelled(ctx, a, err)
}

// ApplicationData returns the values of keys of an application's customData, or
// apierr.NotFound.
func (s *Service) ApplicationData(ctx context.Context, in applicationapi.DataOf) (applicationapi.Data, error) {
	data, err := s.CustomData(store.ApplicationKind).Read(ctx, in.Ref)
	return applicationapi.Data{Values: data.Document.Printed(in.Keys)}, err
}

// ListApplications returns a page of the applications of a tenant. A caller's own
// tenant is the only one that exists to it: any other is apierr.NotFound.
func (s *Service) ListApplications(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[applicationapi.Application], error) {
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

// ListAccountApplications returns a page of the applications that reach an account
// through its directory, a group or an organization, or apierr.NotFound for the
// account.
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
	for i, at := range of.Stores {
		stores[i] = at.ID
	}
	return s.store.ListReachingApplications(ctx, account.Tenant, stores, query.Of(owner.CreatedAt, owner.ModifiedAt))
}

// CreateApplication makes an application from a client's body. It begins with the
// directory that first asks for, or without an account store, and lets in the pages
// of its own Client API unless the body lists other origins.
func (s *Service) CreateApplication(
	ctx context.Context, tenant id.ID, in NewApplication, first FirstDirectory,
) (applicationapi.Application, error) {
	a := s.newApplication(tenant, id.New(s.now()), "")
	a.CreatedBy = caller.From(ctx).Key
	if err := apply(&a, in, true); err != nil {
		return a, err
	}
	at := id.Ref{Tenant: tenant, ID: a.ID}
	mapping, err := s.begin(ctx, beginning{
		owner: applications, at: at, name: a.Name,
		isTaken:  func() (bool, error) { return s.store.NameTaken(ctx, tenant, a.Name) },
		insert:   func(tx *store.Tx) error { return s.insertApplication(ctx, tx, &a, in) },
		readBack: func() error { _, err := s.Application(ctx, at); return err },
	}, first)
	a.DefaultAccountStore, a.DefaultGroupStore = mapping, mapping
	return a, nameTaken(a, err)
}

// insertApplication adds an application, whose body is in, with a label of its
// own.
func (s *Service) insertApplication(ctx context.Context, tx *store.Tx, a *applicationapi.Application, in NewApplication) error {
	if err := takeLabel(ctx, tx, a); err != nil {
		return err
	}
	s.keepOwnOrigin(a)
	return tx.InsertApplication(ctx, *a, in.CustomData.Value)
}

// keepOwnOrigin adds the origin of the application's own Client API to the
// authorized origins, in which it is always, once
// (docs/interface/applications.md#callbacks-and-origins). It stays where the list
// has it already.
func (s *Service) keepOwnOrigin(a *applicationapi.Application) {
	if a.Builtin {
		return
	}
	own, list, isListed := s.origin(*a), []string{}, false
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

// newApplication is an application as it is before a client says more, with the
// addresses of its satellites.
func (s *Service) newApplication(tenant, application id.ID, name string) applicationapi.Application {
	now := s.now()
	return applicationapi.Application{
		TenantID: tenant, ID: application, Name: name, Status: directoryapi.Enabled,
		AuthorizedCallbackURIs: []string{}, AuthorizedOriginURIs: []string{},
		SAMLPolicyID: id.New(now), WebConfigID: id.New(now), AccountLinkingPolicyID: id.New(now),
		CreatedAt: now, ModifiedAt: now,
	}
}

// nameTaken explains a clash of a name that the tenant has.
func nameTaken(a applicationapi.Application, err error) error {
	if !errors.Is(err, apierr.Exists) {
		return err
	}
	return apierr.Exists.Because("an application with the name %q exists", a.Name).Saying("An application of that name exists.")
}

// apply writes the members of a body into an application and checks them.
func apply(a *applicationapi.Application, in NewApplication, isNew bool) (err error) {
	var refused field.Refusals
	refused.Required(&a.Name, in.Name, "name", maxName, isNew)
	refused.Optional(&a.Description, in.Description, "description", maxDescription)
	refused.Enum(&a.Status, in.Status, "status", directoryapi.Enabled, directoryapi.Disabled)
	if in.AuthorizedCallbackURIs.Present {
		a.AuthorizedCallbackURIs, err = redirecturi.Callbacks(in.AuthorizedCallbackURIs, "authorizedCallbackUris")
		refused.Add(err)
	}
	if in.AuthorizedOriginURIs.Present {
		a.AuthorizedOriginURIs, err = redirecturi.Origins(in.AuthorizedOriginURIs, "authorizedOriginUris")
		refused.Add(err)
	}
	return refused.First()
}

// UpdateApplication changes what the body names. An application whose
// customData alone changes stays as it is.
func (s *Service) UpdateApplication(ctx context.Context, at id.Ref, in NewApplication) (applicationapi.Application, error) {
	var a applicationapi.Application
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockApplication(ctx, at.Tenant, at.ID); err != nil {
			return err
		}
		if err := apply(&a, in, false); err != nil {
			return err
		}
		if err := tx.MergeCustomData(ctx, at.Tenant, at.ID, in.CustomData.Value, s.now()); err != nil || in.isForCustomData() {
			return err
		}
		if in.AuthorizedOriginURIs.Present {
			s.keepOwnOrigin(&a)
		}
		a.ModifiedAt = s.now()
		return tx.UpdateApplication(ctx, a)
	})
	return a, nameTaken(a, err)
}

// DeleteApplication removes an application with its mappings, its linking policy,
// its identity provider and its customData, not the stores that the mappings lead
// to, and lets the other services drop what they hold of it. The built-in
// console is refused with apierr.BadRequest.
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
