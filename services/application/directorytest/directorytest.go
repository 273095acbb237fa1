// Package directorytest is the directory service as the tests of this service
// see it: the contract's promises kept in memory, without hashing, and with a
// place to break a call (Break). It passes the contract's own suite.
package directorytest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Directories keeps tenants, directories, groups and accounts in memory.
type Directories struct {
	directoryapi.API // what is not kept here yet
	now              func() time.Time

	mu          sync.Mutex
	tenants     map[id.ID]directoryapi.Tenant
	directories map[directoryapi.Ref]directoryapi.Directory
	verifying   map[directoryapi.Ref]bool          // directories whose verification workflow is on
	accounts    []*account                         // in the order of their creation
	resets      map[secure.Secret]directoryapi.Ref // accounts by their open reset tokens
	groups      []directoryapi.Group               // in the order of their creation
	links       [][2]id.ID                         // of accounts
	broken      map[string]fault
}

type account struct {
	directoryapi.Account
	password secure.Secret // empty: none can log in
	groups   []id.ID       // that it is a member of
}

var _ directoryapi.API = (*Directories)(nil)

// New makes an empty service.
func New(now func() time.Time) *Directories {
	return &Directories{
		now: now, tenants: map[id.ID]directoryapi.Tenant{}, directories: map[directoryapi.Ref]directoryapi.Directory{},
		verifying: map[directoryapi.Ref]bool{}, resets: map[secure.Secret]directoryapi.Ref{}, broken: map[string]fault{},
	}
}

// Moment says when a broken call fails.
type Moment int

// A call fails before it had its effect, or after it: then only its answer is
// lost.
const (
	Before Moment = iota
	After
)

type fault struct {
	moment Moment
	cause  func() error
}

// Break lets a method of that name fail with what cause gives, for as long as
// that is not nil.
func (d *Directories) Break(method string, moment Moment, cause func() error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.broken[method] = fault{moment, cause}
}

// fail gives the error that a call of the method ends with at that moment. cause
// runs without the lock, so that it can ask the service.
func (d *Directories) fail(method string, moment Moment) error {
	d.mu.Lock()
	broken, ok := d.broken[method]
	d.mu.Unlock()
	if !ok || broken.moment != moment {
		return nil
	}
	return broken.cause()
}

// call runs a method under the lock, unless it is broken.
func call[T any](d *Directories, method string, do func() (T, error)) (T, error) {
	var none T
	if err := d.fail(method, Before); err != nil {
		return none, err
	}
	d.mu.Lock()
	answer, err := do()
	d.mu.Unlock()
	if err != nil {
		return none, err
	}
	if err := d.fail(method, After); err != nil {
		return none, err
	}
	return answer, nil
}

// Names gives the names of a tenant's directories, in no order.
func (d *Directories) Names(tenant id.ID) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, directory := range d.directories {
		if at.Tenant == tenant {
			names = append(names, directory.Name)
		}
	}
	return names
}

// Disable gives a directory the status DISABLED.
func (d *Directories) Disable(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.SetStatus(t, at, directoryapi.Directories, directoryapi.Disabled)
}

// SetStatus gives a directory or a group a status.
func (d *Directories) SetStatus(t *testing.T, at directoryapi.Ref, kind, status string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if directory, ok := d.directories[at]; ok && kind == directoryapi.Directories {
		directory.Status = status
		d.directories[at] = directory
		return
	}
	for i, g := range d.groups {
		if g.TenantID == at.Tenant && g.ID == at.ID && kind == directoryapi.Groups {
			d.groups[i].Status = status
			return
		}
	}
	t.Fatalf("there is none of the %s with the id %s", kind, at.ID)
}

// Mirror makes a directory the mirror of one of a provider elsewhere.
func (d *Directories) Mirror(t *testing.T, at directoryapi.Ref, provider string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	directory, ok := d.directories[at]
	if !ok {
		t.Fatalf("there is no directory %s to mirror", at.ID)
	}
	directory.ProviderID = provider
	d.directories[at] = directory
}

// EnableVerification turns a directory's verification workflow on.
func (d *Directories) EnableVerification(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verifying[at] = true
}

// SignUp makes a tenant.
func (d *Directories) SignUp(_ context.Context, in directoryapi.SignUp) (directoryapi.SignedUp, error) {
	return call(d, "SignUp", func() (directoryapi.SignedUp, error) {
		now := d.now()
		if _, done := d.tenants[in.Tenant]; !done {
			d.tenants[in.Tenant] = directoryapi.Tenant{ID: in.Tenant, Key: in.Key, Name: in.Key, CreatedAt: now, ModifiedAt: now}
			d.insert(directoryapi.Directory{TenantID: in.Tenant, ID: in.Directory, Name: in.DirectoryName, Builtin: true})
			d.accounts = append(d.accounts, &account{password: in.Password, Account: directoryapi.Account{
				TenantID: in.Tenant, ID: in.Owner, DirectoryID: in.Directory, Username: in.Email, Email: in.Email, Owner: true,
				Status: directoryapi.Enabled, EmailVerificationStatus: directoryapi.Unverified,
				PasswordModifiedAt: &now, CreatedAt: now, ModifiedAt: now,
			}})
		}
		owner := d.find(in.Tenant, in.Owner)
		return directoryapi.SignedUp{Tenant: d.tenants[in.Tenant], Directory: d.directories[directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory}], Owner: owner.Account}, nil
	})
}

func (d *Directories) insert(directory directoryapi.Directory) directoryapi.Directory {
	directory.Status, directory.CreatedAt, directory.ModifiedAt = directoryapi.Enabled, d.now(), d.now()
	directory.SchemaID, directory.ProviderID = id.New(d.now()), directoryapi.Native
	d.directories[directoryapi.Ref{Tenant: directory.TenantID, ID: directory.ID}] = directory
	return directory
}

// CreateDirectory makes a directory.
func (d *Directories) CreateDirectory(_ context.Context, in directoryapi.CreateDirectory) (directoryapi.Directory, error) {
	return call(d, "CreateDirectory", func() (directoryapi.Directory, error) {
		if own, mine := d.directories[directoryapi.Ref{Tenant: in.Tenant, ID: in.ID}]; mine {
			return own, nil
		}
		for at, directory := range d.directories {
			if at.Tenant == in.Tenant && field.Fold(directory.Name) == field.Fold(in.Name) {
				return directory, apierr.Exists
			}
		}
		return d.insert(directoryapi.Directory{TenantID: in.Tenant, ID: in.ID, Name: in.Name}), nil
	})
}

// Directory gives a directory.
func (d *Directories) Directory(_ context.Context, in directoryapi.Ref) (directoryapi.Directory, error) {
	return call(d, "Directory", func() (directoryapi.Directory, error) { return d.directory(in) })
}

func (d *Directories) directory(in directoryapi.Ref) (directoryapi.Directory, error) {
	directory, ok := d.directories[in]
	if !ok {
		return directory, apierr.NotFound
	}
	return directory, nil
}

// DeleteDirectory removes a directory.
func (d *Directories) DeleteDirectory(_ context.Context, in directoryapi.Ref) (directoryapi.Empty, error) {
	return call(d, "DeleteDirectory", func() (directoryapi.Empty, error) {
		directory, err := d.directory(in)
		if err != nil {
			return directoryapi.Empty{}, err
		}
		if directory.Builtin {
			return directoryapi.Empty{}, apierr.BadRequest
		}
		delete(d.directories, in)
		kept := d.accounts[:0:0]
		for _, a := range d.accounts {
			if a.TenantID != in.Tenant || a.DirectoryID != in.ID {
				kept = append(kept, a)
			}
		}
		d.accounts = kept
		d.groups = slices.DeleteFunc(d.groups, func(g directoryapi.Group) bool { return g.TenantID == in.Tenant && g.DirectoryID == in.ID })
		return directoryapi.Empty{}, nil
	})
}
