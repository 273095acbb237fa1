package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// FirstDirectory is what the query parameter createDirectory asks for: a
// directory that is made with the application and is its default account and
// group store.
type FirstDirectory struct {
	Wanted bool
	Name   string // empty: made from the application's name
}

// patience bounds the removal of a directory whose application failed.
const patience = 5 * time.Second

// createWithDirectory makes an application together with its first directory.
// When a step fails nothing is left of either. Only a process that dies after
// the directory was made and before the application was leaves something: an
// empty directory that is mapped to nothing, which the tenant sees and can
// delete.
func (s *Service) createWithDirectory(ctx context.Context, a applicationapi.Application, data customdata.Document, first FirstDirectory) (applicationapi.Application, error) {
	taken, err := s.store.NameTaken(ctx, a.TenantID, a.Name)
	if err != nil {
		return a, err
	}
	if taken { // as it mostly shows: before anything was made
		return a, nameTaken(a)
	}
	directory := directoryapi.Ref{Tenant: a.TenantID, ID: id.New(s.now())}
	if first.Name == "" {
		err = s.directoryAfter(ctx, directory, a.Name)
	} else {
		err = s.directoryNamed(ctx, directory, first.Name)
	}
	if err == nil {
		a, err = s.insertMapped(ctx, a, data, s.defaultMapping(a, id.New(s.now()), directory.ID))
	}
	if err != nil && !errors.Is(err, apierr.DirectoryTaken) {
		s.discard(ctx, directory)
	}
	return a, err
}

// insertMapped adds an application with its customData and its first mapping.
func (s *Service) insertMapped(ctx context.Context, a applicationapi.Application, data customdata.Document, m store.Mapping) (applicationapi.Application, error) {
	err := s.tx(ctx, func(tx *store.Tx) error { return insertWith(ctx, tx, a, data, m) })
	if errors.Is(err, apierr.Exists) {
		return a, nameTaken(a)
	}
	if err != nil {
		// The commit may have been done and only its answer lost.
		if made, lost := s.store.Application(ctx, a.TenantID, a.ID); lost == nil {
			return made, nil
		}
	}
	a.DefaultAccountStore, a.DefaultGroupStore = m.ID, m.ID
	return a, err
}

func insertWith(ctx context.Context, tx *store.Tx, a applicationapi.Application, data customdata.Document, m store.Mapping) error {
	if err := tx.InsertApplication(ctx, a, data); err != nil {
		return err
	}
	return tx.InsertMapping(ctx, m)
}

// defaultMapping is the first mapping of an application: to a directory that
// new accounts and groups go to.
func (s *Service) defaultMapping(a applicationapi.Application, mapping, directory id.ID) store.Mapping {
	return store.Mapping{
		TenantID: a.TenantID, ID: mapping, ApplicationID: a.ID, StoreKind: directories, StoreID: directory,
		IsDefaultAccountStore: true, IsDefaultGroupStore: true, CreatedAt: a.CreatedAt, ModifiedAt: a.ModifiedAt,
	}
}

// directoryNamed makes a directory of that very name, or returns
// apierr.DirectoryTaken.
func (s *Service) directoryNamed(ctx context.Context, directory directoryapi.Ref, name string) error {
	_, err := s.directories.CreateDirectory(ctx, directoryapi.CreateDirectory{Tenant: directory.Tenant, ID: directory.ID, Name: name})
	if errors.Is(err, apierr.Exists) {
		return apierr.DirectoryTaken.Because("a directory with the name %q exists", name)
	}
	return err
}

// counted is how many names with a small number are tried before one with a
// random number: a tenant may keep the directories of any number of
// deleted applications.
const counted = 9

// directoryAfter makes a directory that is named after the application: "Shop
// Directory", or "Shop Directory 2" and so on when that is taken (resolutions,
// section 15).
func (s *Service) directoryAfter(ctx context.Context, directory directoryapi.Ref, application string) error {
	err := s.directoryNamed(ctx, directory, directoryName(application, 1))
	for n := 2; n <= counted && errors.Is(err, apierr.DirectoryTaken); n++ {
		err = s.directoryNamed(ctx, directory, directoryName(application, n))
	}
	if errors.Is(err, apierr.DirectoryTaken) {
		err = s.directoryNamed(ctx, directory, directoryName(application, randomNumber(directory.ID)))
	}
	return err
}

// directoryName shortens the application's name so that the whole is no longer
// than a directory's name may be.
func directoryName(application string, number int) string {
	suffix := " Directory"
	if number > 1 {
		suffix = fmt.Sprintf(" Directory %d", number)
	}
	if most := maxName - utf8.RuneCountInString(suffix); utf8.RuneCountInString(application) > most {
		application = string([]rune(application)[:most])
	}
	return application + suffix
}

// randomNumber is made of the random bits of an id.
func randomNumber(v id.ID) int {
	n := 0
	for _, b := range v[len(v)-5:] {
		n = n<<8 | int(b)
	}
	return n + counted + 1
}

// discard removes a directory whose application could not be made. The request
// may be over by then, so that it has a time of its own.
func (s *Service) discard(ctx context.Context, directory directoryapi.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := s.directories.DeleteDirectory(ctx, directory); err != nil && !errors.Is(err, apierr.NotFound) {
		slog.ErrorContext(ctx, "a directory without its application is left", "directory", directory.ID.String(), "error", err.Error())
	}
}

// DirectoryName checks the name that createDirectory gives.
func DirectoryName(name string) (string, error) {
	return field.Required(field.Some(name), "createDirectory", maxName)
}
