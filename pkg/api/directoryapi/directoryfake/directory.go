// Package directoryfake is a fake of the directory service in memory (test double), for the tests
// of the services that call it: without password hashing, and with calls that a test can make fail
// (fault.Injector). It passes the contract's suite (apitest).
package directoryfake

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/fault"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/changefeed"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
)

// Service stores tenants, directories, groups and accounts in memory.
type Service struct {
	fault.Injector
	directoryapi.SAML // nil: the fake has no SAML
	now               func() time.Time

	Changes *changefeed.Log // changefeed of the access of accounts

	mu          sync.Mutex
	tenants     map[id.ID]directoryapi.Tenant
	directories map[directoryapi.Ref]directoryapi.Directory
	verifying   map[directoryapi.Ref]bool // directories with email verification enabled
	accounts    []*account                // in the order of their creation
	resets      map[secure.Secret]reset   // pending resets by their tokens
	endedResets map[secure.Secret]reset   // those that were used
	mails       map[mailed]int            // number of mails that anonymous callers requested
	sent        map[directoryapi.Ref]int  // number of verification mails that were requested and sent, by account
	rules       map[directoryapi.Ref]directoryapi.RegistrationRules
	signUps     map[secure.Secret]signUp // by their mailed tokens
	groups      []directoryapi.Group     // in the order of their creation
	links       []link
}

type account struct {
	directoryapi.Account
	password   secure.Secret // empty: none can log in
	groups     []id.ID       // that it is a member of
	externalID string        // of the user at the provider of the directory
	data       json.RawMessage
	// verificationApplication is the application through which the verification mail was caused, and
	// endedVerification the token that was used.
	verificationApplication id.ID
	endedVerification       secure.Secret
}

var _ directoryapi.Contract = (*Service)(nil)

// New makes an empty service.
func New(now func() time.Time) *Service {
	return &Service{
		now: now, Changes: changefeed.NewLog(),
		tenants: map[id.ID]directoryapi.Tenant{}, directories: map[directoryapi.Ref]directoryapi.Directory{},
		verifying: map[directoryapi.Ref]bool{}, resets: map[secure.Secret]reset{}, endedResets: map[secure.Secret]reset{},
		mails: map[mailed]int{}, sent: map[directoryapi.Ref]int{},
		rules: map[directoryapi.Ref]directoryapi.RegistrationRules{}, signUps: map[secure.Secret]signUp{},
	}
}

// call runs a method under the lock, unless a test makes it fail.
func call[T any](d *Service, method string, do func() (T, error)) (T, error) {
	return fault.Call(&d.Injector, &d.mu, method, do)
}

// Names returns the names of a tenant's directories, in no order.
func (d *Service) Names(tenant id.ID) (names []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for at, directory := range d.directories {
		if at.Tenant == tenant {
			names = append(names, directory.Name)
		}
	}
	return names
}

// Disable sets the status of a directory to DISABLED.
func (d *Service) Disable(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.SetStatus(t, at, directoryapi.Directories, directoryapi.Disabled)
}

// SetStatus sets the status of a directory or a group.
func (d *Service) SetStatus(t testing.TB, at directoryapi.Ref, kind, status string) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if directory, ok := d.directories[at]; ok && kind == directoryapi.Directories {
		directory.Status = status
		d.directories[at] = directory
		d.Changes.Append(at)
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

// InsertDirectory inserts an enabled directory.
func (d *Service) InsertDirectory(directory directoryapi.Directory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.insertDirectory(directory)
}

// InsertAccount inserts an account as it is. With an empty password it cannot log in.
func (d *Service) InsertAccount(a directoryapi.Account, password secure.Secret) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.accounts = append(d.accounts, &account{Account: a, password: password})
}

// Mirror makes a directory the mirror of one at a provider.
func (d *Service) Mirror(t testing.TB, at directoryapi.Ref, provider string) {
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

// EnableVerification enables the email verification of a directory.
func (d *Service) EnableVerification(t *testing.T, at directoryapi.Ref) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.verifying[at] = true
}

// SignUp creates a tenant.
func (d *Service) SignUp(_ context.Context, in directoryapi.SignUp) (directoryapi.SignedUp, error) {
	return call(d, "SignUp", func() (directoryapi.SignedUp, error) {
		now := d.now()
		if _, done := d.tenants[in.Tenant]; !done {
			verified := directoryapi.Unverified
			if in.Pending {
				pending, ok := d.pendingSignUpOf(in.Tenant, in.Owner)
				if !ok {
					return directoryapi.SignedUp{}, apierr.NotFound
				}
				in.Email, in.Password, verified = pending.Email, pending.password, directoryapi.Verified
			}
			for _, other := range d.tenants {
				if other.Key == in.Key {
					return directoryapi.SignedUp{}, apierr.Exists
				}
			}
			d.tenants[in.Tenant] = directoryapi.Tenant{ID: in.Tenant, Key: in.Key, Name: in.Key, CreatedAt: now, ModifiedAt: now}
			d.insertDirectory(directoryapi.Directory{TenantID: in.Tenant, ID: in.Directory, Name: in.DirectoryName, Builtin: true})
			d.accounts = append(d.accounts, &account{password: in.Password, Account: directoryapi.Account{
				TenantID: in.Tenant, ID: in.Owner, DirectoryID: in.Directory, Username: in.Email, Email: in.Email, Owner: true,
				Status: directoryapi.Enabled, EmailVerificationStatus: verified,
				PasswordModifiedAt: &now, CreatedAt: now, ModifiedAt: now,
			}})
		}
		owner := d.findAccount(in.Tenant, in.Owner)
		return directoryapi.SignedUp{
			Tenant: d.tenants[in.Tenant], Directory: d.directories[directoryapi.Ref{Tenant: in.Tenant, ID: in.Directory}],
			Owner: owner.Account,
		}, nil
	})
}

func (d *Service) insertDirectory(directory directoryapi.Directory) directoryapi.Directory {
	directory.Status, directory.CreatedAt, directory.ModifiedAt = directoryapi.Enabled, d.now(), d.now()
	directory.SchemaID, directory.ProviderID = id.New(d.now()), directoryapi.Native
	d.directories[directoryapi.Ref{Tenant: directory.TenantID, ID: directory.ID}] = directory
	return directory
}

// CreateDirectory creates a directory.
func (d *Service) CreateDirectory(_ context.Context, in directoryapi.CreateDirectory) (directoryapi.Directory, error) {
	return call(d, "CreateDirectory", func() (directoryapi.Directory, error) {
		if own, mine := d.directories[directoryapi.Ref{Tenant: in.Tenant, ID: in.ID}]; mine {
			return own, nil
		}
		for at, directory := range d.directories {
			if at.Tenant == in.Tenant && field.Fold(directory.Name) == field.Fold(in.Name) {
				return directory, apierr.Exists
			}
		}
		return d.insertDirectory(directoryapi.Directory{TenantID: in.Tenant, ID: in.ID, Name: in.Name}), nil
	})
}

// Directory returns a directory.
func (d *Service) Directory(_ context.Context, in directoryapi.Ref) (directoryapi.Directory, error) {
	return call(d, "Directory", func() (directoryapi.Directory, error) { return d.directory(in) })
}

func (d *Service) directory(in directoryapi.Ref) (directoryapi.Directory, error) {
	directory, ok := d.directories[in]
	if !ok {
		return directory, apierr.NotFound
	}
	return directory, nil
}

// DeleteDirectory deletes a directory.
func (d *Service) DeleteDirectory(_ context.Context, in directoryapi.Ref) (directoryapi.Empty, error) {
	return call(d, "DeleteDirectory", func() (directoryapi.Empty, error) {
		directory, err := d.directory(in)
		if err != nil {
			return directoryapi.Empty{}, err
		}
		if directory.Builtin {
			return directoryapi.Empty{}, apierr.BadRequest
		}
		d.removeDirectory(in)
		return directoryapi.Empty{}, nil
	})
}

// removeDirectory deletes a directory with its accounts and groups.
func (d *Service) removeDirectory(in directoryapi.Ref) {
	delete(d.directories, in)
	d.Changes.Append(in)
	d.accounts = slices.DeleteFunc(d.accounts, func(a *account) bool { return a.TenantID == in.Tenant && a.DirectoryID == in.ID })
	d.groups = slices.DeleteFunc(d.groups, func(g directoryapi.Group) bool { return g.TenantID == in.Tenant && g.DirectoryID == in.ID })
}

// RemoveDirectory deletes a directory, also a built-in one.
func (d *Service) RemoveDirectory(at directoryapi.Ref) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.removeDirectory(at)
}
