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

// DirectoryToCreate is the value of the query parameter createDirectory: a directory that is
// created together with an application or an organization, as its default account store and
// default group store.
type DirectoryToCreate struct {
	Wanted bool
	Name   string // empty: derived from the name of the application or organization
}

// deleteDirectoryTimeout limits the deletion of a directory whose owner could not be created.
const deleteDirectoryTimeout = 5 * time.Second

// newOwner is an application or an organization that is to be created.
type newOwner struct {
	owner     mappingOwner
	ref       id.Ref
	name      string
	nameTaken func() (bool, error)  // reports whether another owner has the name
	insert    func(*store.Tx) error // returns apierr.Exists when another owner has the name
	find      func() error          // returns apierr.NotFound unless the owner was inserted
}

// createOwner creates an application or an organization and, where one is wanted, its
// directory, and returns the id of the mapping between the two. When a step fails the
// directory is deleted again. Only a process that dies between the creation of the directory
// and that of its owner leaves an empty directory without mappings, which the tenant sees and
// can delete.
func (s *Service) createOwner(ctx context.Context, o newOwner, directory DirectoryToCreate) (mapping id.ID, err error) {
	if !directory.Wanted {
		return mapping, s.store.Tx(ctx, o.insert)
	}
	taken, err := o.nameTaken()
	if err != nil {
		return mapping, err
	}
	if taken { // refused before the directory is created; insert checks the name again
		return mapping, apierr.Exists
	}
	ref := directoryapi.Ref{Tenant: o.ref.Tenant, ID: id.New(s.now())}
	if directory.Name == "" {
		err = s.createDirectoryForOwner(ctx, ref, o.name)
	} else {
		err = s.createDirectoryNamed(ctx, ref, directory.Name)
	}
	if errors.Is(err, apierr.DirectoryTaken) { // no directory was created
		return mapping, o.owner.directoryTaken.Because("%s", apierr.From(err).Reason)
	}
	m := s.newDefaultMapping(o.owner.kind, o.ref, id.New(s.now()), ref.ID)
	if err == nil {
		err = s.insertOwnerAndMapping(ctx, o, m)
	}
	if err != nil {
		s.deleteUnusedDirectory(ctx, ref)
	}
	return m.ID, err
}

// insertOwnerAndMapping inserts an owner with the mapping of its directory.
func (s *Service) insertOwnerAndMapping(ctx context.Context, o newOwner, m store.Mapping) error {
	err := s.store.Tx(ctx, func(tx *store.Tx) error {
		if err := o.insert(tx); err != nil {
			return err
		}
		return tx.InsertMapping(ctx, m)
	})
	if err == nil || errors.Is(err, apierr.Exists) {
		return err
	}
	if o.find() == nil { // the transaction was committed, and only the answer to the commit was lost
		return nil
	}
	return err
}

// newDefaultMapping returns the first mapping of an owner: to a directory that is its default
// account store and default group store.
func (s *Service) newDefaultMapping(kind store.OwnerKind, owner id.Ref, mapping, directory id.ID) store.Mapping {
	now := s.now()
	return store.Mapping{
		TenantID: owner.Tenant, ID: mapping, OwnerKind: kind, OwnerID: owner.ID,
		StoreKind: directoryapi.Directories, StoreID: directory, DirectoryID: directory,
		IsDefaultAccountStore: true, IsDefaultGroupStore: true, CreatedAt: now, ModifiedAt: now,
	}
}

// createDirectoryNamed creates a directory with a name, or returns apierr.DirectoryTaken where
// the tenant has a directory of that name.
func (s *Service) createDirectoryNamed(ctx context.Context, directory directoryapi.Ref, name string) error {
	_, err := s.directories.CreateDirectory(ctx,
		directoryapi.CreateDirectory{Tenant: directory.Tenant, ID: directory.ID, Name: name})
	if errors.Is(err, apierr.Exists) {
		return apierr.DirectoryTaken.Because("a directory with the name %q exists", name)
	}
	return err
}

// maxNumberSuffix is the greatest number that is tried as the suffix of a name. The next
// attempt has a random number: a tenant may have kept the directories of many deleted
// applications.
const maxNumberSuffix = 9

// createDirectoryForOwner creates a directory that is named after its owner: "Shop
// Directory", or "Shop Directory (2)" and so on when the name is taken
// (docs/interface/applications.md#account-store-mappings).
func (s *Service) createDirectoryForOwner(ctx context.Context, directory directoryapi.Ref, owner string) error {
	err := s.createDirectoryNamed(ctx, directory, nameForDirectory(owner, 1))
	for n := 2; n <= maxNumberSuffix && errors.Is(err, apierr.DirectoryTaken); n++ {
		err = s.createDirectoryNamed(ctx, directory, nameForDirectory(owner, n))
	}
	if errors.Is(err, apierr.DirectoryTaken) {
		err = s.createDirectoryNamed(ctx, directory, nameForDirectory(owner, randomNumber(directory.ID)))
	}
	return err
}

// nameForDirectory returns the name of a directory for an owner. The owner's name is shortened
// so that the result has at most maxName characters.
func nameForDirectory(owner string, number int) string {
	suffix := " Directory"
	if number > 1 {
		suffix = fmt.Sprintf(" Directory (%d)", number)
	}
	if most := maxName - utf8.RuneCountInString(suffix); utf8.RuneCountInString(owner) > most {
		owner = string([]rune(owner)[:most])
	}
	return owner + suffix
}

// randomNumber returns a number above maxNumberSuffix from the random bits of an id.
func randomNumber(v id.ID) int {
	n := 0
	for _, b := range v[len(v)-5:] {
		n = n<<8 | int(b)
	}
	return n + maxNumberSuffix + 1
}

// deleteUnusedDirectory deletes a directory whose owner could not be created. It has its own
// timeout, because the context of the request may have ended.
func (s *Service) deleteUnusedDirectory(ctx context.Context, directory directoryapi.Ref) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deleteDirectoryTimeout)
	defer cancel()
	if _, err := s.directories.DeleteDirectory(ctx, directory); err != nil && !errors.Is(err, apierr.NotFound) {
		slog.ErrorContext(ctx, "removal of a directory without its owner failed", "directory", directory.ID.String(),
			"error",
			err.Error())
	}
}

// CheckDirectoryName checks the name in the query parameter createDirectory.
func CheckDirectoryName(name string) (string, error) {
	return field.Required(field.Some(name), "createDirectory", maxName)
}
