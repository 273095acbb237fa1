// Package peertest stands in for the services that are asked. It keeps to their
// contracts in what a sign-up relies on: a repeated call returns what the first
// made, a tenant key is unique in the deployment, and an API key has one secret;
// and in what a mailed link relies on (link.go): its token is good once.
package peertest

import (
	"context"
	"sync"
	"time"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/caller"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/idsite"
)

// Deployment is what the services hold together.
type Deployment struct {
	mu           sync.Mutex
	tenants      map[id.ID]directoryapi.SignedUp
	tenantKeys   map[string]id.ID
	applications map[id.ID]applicationapi.SignUp
	keys         map[string]oauthapi.EnsureKey
	links        map[secure.Secret]directoryapi.PasswordReset
	signUps      map[secure.Secret]directoryapi.PendingSignUp
	hosted       hosted
	calls        int
	fail         func(call int) error
}

// New returns an empty deployment.
func New() *Deployment {
	return &Deployment{
		tenants: map[id.ID]directoryapi.SignedUp{}, tenantKeys: map[string]id.ID{},
		applications: map[id.ID]applicationapi.SignUp{}, keys: map[string]oauthapi.EnsureKey{},
		links:   map[secure.Secret]directoryapi.PasswordReset{},
		signUps: map[secure.Secret]directoryapi.PendingSignUp{}, hosted: newHosted(),
		fail: func(int) error { return nil },
	}
}

// Peers returns the ways to the services.
func (d *Deployment) Peers() idsite.Peers {
	return idsite.Peers{Directory: directory{d: d}, Application: application{d: d}, OAuth: oauth{d: d}, MFA: mfa{d: d}}
}

// Fail lets calls fail after they had their effect: their number counts from 1.
func (d *Deployment) Fail(fail func(call int) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls, d.fail = 0, fail
}

// Take reserves a tenant key for another tenant.
func (d *Deployment) Take(key string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tenantKeys[key] = id.ID{1}
}

// Tenants returns the tenants that were made.
func (d *Deployment) Tenants() (list []directoryapi.SignedUp) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, tenant := range d.tenants {
		list = append(list, tenant)
	}
	return list
}

// Applications returns the first applications of a tenant.
func (d *Deployment) Applications(tenant id.ID) applicationapi.SignUp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.applications[tenant]
}

// Keys returns the API keys by their ids.
func (d *Deployment) Keys() map[string]oauthapi.EnsureKey {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := map[string]oauthapi.EnsureKey{}
	for name, key := range d.keys {
		keys[name] = key
	}
	return keys
}

// called counts a call. A call for a tenant comes on behalf of that tenant.
func (d *Deployment) called(ctx context.Context, tenant id.ID) error {
	if caller.From(ctx).Tenant != tenant {
		return apierr.Forbidden.Because("the caller belongs to another tenant")
	}
	d.calls++
	return d.fail(d.calls)
}

type directory struct {
	directoryapi.API
	directoryapi.Hosted
	d *Deployment
}

func (p directory) SignUp(ctx context.Context, in directoryapi.SignUp) (directoryapi.SignedUp, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	made, ok := p.d.tenants[in.Tenant]
	if !ok {
		if _, taken := p.d.tenantKeys[in.Key]; taken {
			return made, apierr.Exists.Because("the tenant key %q is taken", in.Key)
		}
		if in.Pending {
			for _, pending := range p.d.signUps {
				if pending.Tenant == in.Tenant && pending.Account == in.Owner {
					in.Email = pending.Email
				}
			}
		}
		made = directoryapi.SignedUp{
			Tenant:    directoryapi.Tenant{ID: in.Tenant, Key: in.Key, Name: in.Key},
			Directory: directoryapi.Directory{TenantID: in.Tenant, ID: in.Directory, Name: in.DirectoryName},
			Owner:     directoryapi.Account{TenantID: in.Tenant, ID: in.Owner, DirectoryID: in.Directory, Email: in.Email},
		}
		p.d.tenants[in.Tenant], p.d.tenantKeys[in.Key] = made, in.Tenant
	}
	return made, p.d.called(ctx, in.Tenant)
}

// Tenant returns any tenant to itself.
func (directory) Tenant(_ context.Context, in directoryapi.Ref) (directoryapi.Tenant, error) {
	if in.Tenant != in.ID {
		return directoryapi.Tenant{}, apierr.NotFound
	}
	since := time.Date(2026, 11, 20, 20, 25, 0, 0, time.UTC)
	return directoryapi.Tenant{ID: in.ID, CreatedAt: since, ModifiedAt: since}, nil
}

type application struct {
	applicationapi.API
	applicationapi.Hosted
	d *Deployment
}

func (p application) SignUp(ctx context.Context, in applicationapi.SignUp) (applicationapi.SignedUp, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if _, ok := p.d.tenants[in.Tenant]; !ok {
		return applicationapi.SignedUp{}, apierr.NotFound.Because("there is no such tenant")
	}
	if _, ok := p.d.applications[in.Tenant]; !ok {
		p.d.applications[in.Tenant] = in
	}
	return applicationapi.SignedUp{}, p.d.called(ctx, in.Tenant)
}

type mfa struct {
	mfaapi.API
	mfaapi.Hosted
	d *Deployment
}

type oauth struct {
	oauthapi.API
	oauthapi.Hosted
	d *Deployment
}

func (p oauth) EnsureKey(ctx context.Context, in oauthapi.EnsureKey) (oauthapi.Key, error) {
	p.d.mu.Lock()
	defer p.d.mu.Unlock()
	if known, ok := p.d.keys[in.ID]; ok && known != in {
		return oauthapi.Key{}, apierr.Exists.Because("the key exists with another secret")
	}
	p.d.keys[in.ID] = in
	return oauthapi.Key{TenantID: in.Tenant, ID: in.ID, AccountID: in.Account}, p.d.called(ctx, in.Tenant)
}
