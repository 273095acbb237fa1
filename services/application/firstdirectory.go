package application

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/application/store"
)

// FirstDirectory is what the query parameter createDirectory asks for: a
// directory that is made with an application or an organization and is its
// default account and group store.
type FirstDirectory struct {
	Wanted bool
	Name   string // empty: made from the owner's name
}

// discardTimeout bounds the removal of a directory whose owner failed.
const discardTimeout = 5 * time.Second

// beginning is a new application or organization.
type beginning struct {
	owner    owner
	at       id.Ref
	name     string
	isTaken  func() (bool, error)  // whether another has its name
	insert   func(*store.Tx) error // apierr.Exists when another has its name
	readBack func() error          // apierr.NotFound unless it was inserted
}

// begin adds an application or an organization, with its first directory where one
// is wanted, and returns the mapping of that. When a step fails nothing is left of
// either. Only a process that dies after the directory was made and before its owner
// was leaves something: an empty directory that is mapped to nothing, which the
// tenant sees and can delete.
func (s *Service) begin(ctx context.Context, b beginning, first FirstDirectory) (mapping id.ID, err error) {
	if !first.Wanted {
		return mapping, s.store.Tx(ctx, b.insert)
	}
	taken, err := b.isTaken()
	if err != nil {
		return mapping, err
	}
	if taken { // as it mostly shows: before anything was made
		return mapping, apierr.Exists
	}
	directory := directoryapi.Ref{Tenant: b.at.Tenant, ID: id.New(s.now())}
	if first.Name == "" {
		err = s.directoryAfter(ctx, directory, b.name)
	} else {
		err = s.directoryNamed(ctx, directory, first.Name)
	}
	if errors.Is(err, apierr.DirectoryTaken) { // and so none was made
		return mapping, b.owner.directoryTaken.Because("%s", apierr.From(err).Reason)
	}
	m := s.defaultMapping(b.owner.kind, b.at, id.New(s.now()), directory.ID)
	if err == nil {
		err = s.insertMapped(ctx, b, m)
	}
	if err != nil {
		s.discard(ctx, directory)
	}
	return m.ID, err
}

// insertMapped adds an owner with its first mapping.
func (s *Service) insertMapped(ctx context.Context, b beginning, m store.Mapping) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := b.insert(tx); err != nil {
			return err
		}
		return tx.InsertMapping(ctx, m)
	})
	if err == nil || errors.Is(err, apierr.Exists) {
		return err
	}
	if b.readBack() == nil { // the commit was done and only its answer lost
		return nil
	}
	return err
}

// defaultMapping is the first mapping of an owner: to a directory that new
// accounts and groups go to.
func (s *Service) defaultMapping(kind store.OwnerKind, to id.Ref, mapping, directory id.ID) store.Mapping {
	now := s.now()
	return store.Mapping{
		TenantID: to.Tenant, ID: mapping, OwnerKind: kind, OwnerID: to.ID,
		StoreKind: directoryapi.Directories, StoreID: directory, DirectoryID: directory,
		IsDefaultAccountStore: true, IsDefaultGroupStore: true, CreatedAt: now, ModifiedAt: now,
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

// maxNumber is the greatest number of a name that is tried before one with a random
// number: a tenant may keep the directories of any number of deleted applications.
const maxNumber = 9

// directoryAfter makes a directory that is named after its owner: "Shop
// Directory", or "Shop Directory (2)" and so on when that is taken
// (docs/interface/applications.md#account-store-mappings).
func (s *Service) directoryAfter(ctx context.Context, directory directoryapi.Ref, owner string) error {
	err := s.directoryNamed(ctx, directory, directoryName(owner, 1))
	for n := 2; n <= maxNumber && errors.Is(err, apierr.DirectoryTaken); n++ {
		err = s.directoryNamed(ctx, directory, directoryName(owner, n))
	}
	if errors.Is(err, apierr.DirectoryTaken) {
		err = s.directoryNamed(ctx, directory, directoryName(owner, randomNumber(directory.ID)))
	}
	return err
}

// directoryName shortens the owner's name so that the whole is no longer
// than a directory's name may be.
func directoryName(owner string, number int) string {
	suffix := " Directory"
	if number > 1 {
		suffix = fmt.Sprintf(" Directory (%d)", number)
	}
	if most := maxName - utf8.RuneCountInString(suffix); utf8.RuneCountInString(owner) > most {
		owner = string([]rune(owner)[:most])
	}
	return owner + suffix
}

// randomNumber is made of the random bits of an id.
func randomNumber(v id.ID) int {
	n := 0
	for _, b := range v[len(v)-5:] {
		n = n<<8 | int(b)
	}
	return n + maxNumber + 1
}

// discard removes a directory whose owner could not be made. The request
// may be over by then, so that it has a time of its own.
func (s *Service) discard(ctx context.Context, directory directoryapi.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
	defer cancel()
	if _, err := s.directories.DeleteDirectory(ctx, directory); err != nil && !errors.Is(err, apierr.NotFound) {
		slog.ErrorContext(ctx, "removal of a directory without its owner failed", "directory", directory.ID.String(), "error", err.Error())
	}
}

// DirectoryName checks the name that createDirectory returns.
func DirectoryName(name string) (string, error) {
	return field.Required(field.Some(name), "createDirectory", maxName)
}
