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

// firstApplication is the name of the application that a tenant begins with.
const firstApplication = "My Application"

// SignUp makes the first applications of a tenant
// (docs/interface/authentication.md#sign-up): the console, whose users are the
// administrators, and My Application with a directory. Both are committed together,
// so that the console, which cannot be deleted, shows whether it was done: My
// Application does not come back once a client deleted it, and is the zero value
// then. A repeated call finds what the first made, also a directory that it made
// before it died.
func (s *Service) SignUp(ctx context.Context, in applicationapi.SignUp) (applicationapi.SignedUp, error) {
	done, err := s.signedUp(ctx, in)
	if !errors.Is(err, apierr.NotFound) {
		return done, err
	}
	if err := s.directoryAfter(ctx, directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory}, firstApplication); err != nil {
		return done, err
	}
	console := s.newApplication(in.Tenant, in.Console, in.ConsoleName)
	console.Builtin = true
	first := s.newApplication(in.Tenant, in.Application, firstApplication)
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
		return done, err
	}
	done, again := s.signedUp(ctx, in) // also when another call was first
	if errors.Is(again, apierr.NotFound) && err != nil {
		return done, err
	}
	return done, again
}

// insertFirstMapping maps the first directory of an application.
func (s *Service) insertFirstMapping(ctx context.Context, tx *store.Tx, a applicationapi.Application, mapping, directory id.ID) error {
	return tx.InsertMapping(ctx, s.defaultMapping(store.ApplicationKind, id.Ref{Tenant: a.TenantID, ID: a.ID}, mapping, directory))
}

func (s *Service) signedUp(ctx context.Context, in applicationapi.SignUp) (out applicationapi.SignedUp, err error) {
	if out.Console, err = s.store.Application(ctx, in.Tenant, in.Console); err != nil {
		return out, err
	}
	out.Application, err = s.store.Application(ctx, in.Tenant, in.Application)
	if errors.Is(err, apierr.NotFound) {
		err = nil
	}
	return out, err
}
