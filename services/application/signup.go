package application

import (
	"context"
	"errors"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// firstApplicationName is the name of the application that a new tenant gets.
const firstApplicationName = "My Application"

// SignUp creates the first applications of a tenant
// (docs/interface/authentication.md#sign-up): the console, whose users are the
// administrators, and My Application with a directory. It is idempotent: a repeated call
// returns what the first created, and uses the directory of a call that died after creating
// it. Both applications are committed together, so that the existence of the console, which
// cannot be deleted, tells whether SignUp was done: a deleted My Application is not created
// again, and is the zero value in the answer. A user's registration is Register (hosted.go).
func (s *Service) SignUp(ctx context.Context, in applicationapi.SignUp) (applicationapi.SignedUp, error) {
	out, err := s.findSignedUp(ctx, in)
	if !errors.Is(err, apierr.NotFound) {
		return out, err
	}
	if err := s.createDirectoryForOwner(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory},
		firstApplicationName); err != nil {
		return out, err
	}
	console := s.newApplication(in.Tenant, in.Console, in.ConsoleName)
	console.Builtin = true
	first := s.newApplication(in.Tenant, in.Application, firstApplicationName)
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := tx.InsertApplication(ctx, console, ""); err != nil { // which has no Client API
			return err
		}
		if err := s.insertFirstMapping(ctx, tx, console, in.ConsoleMapping, in.Administrators); err != nil {
			return err
		}
		if err := s.insertApplication(ctx, tx, &first, NewApplication{}); err != nil {
			return err
		}
		return s.insertFirstMapping(ctx, tx, first, in.ApplicationMapping, in.Directory)
	})
	if err != nil && !errors.Is(err, apierr.Exists) {
		return out, err
	}
	out, findErr := s.findSignedUp(ctx, in) // after apierr.Exists: what a concurrent call has created
	if errors.Is(findErr, apierr.NotFound) && err != nil {
		return out, err
	}
	return out, findErr
}

// insertFirstMapping maps the first directory of an application, as its default account store.
func (s *Service) insertFirstMapping(ctx context.Context, tx *store.Tx, a applicationapi.Application, mapping,
	directory id.ID) error {
	return tx.InsertMapping(ctx,
		s.newDefaultMapping(store.ApplicationKind, id.Ref{Tenant: a.TenantID, ID: a.ID}, mapping,
			directory))
}

// findSignedUp returns the applications that SignUp has created, or apierr.NotFound.
func (s *Service) findSignedUp(ctx context.Context, in applicationapi.SignUp) (out applicationapi.SignedUp, err error) {
	if out.Console, err = s.store.Application(ctx, in.Tenant, in.Console); err != nil {
		return out, err
	}
	out.Application, err = s.store.Application(ctx, in.Tenant, in.Application)
	if errors.Is(err, apierr.NotFound) {
		err = nil
	}
	return out, err
}
