package store

import (
	"context"
	"time"

	"github.com/doorward/doorward/pkg/cache"
	"github.com/doorward/doorward/pkg/id"
)

// Access is what decides whether an account may act: the status of the account and of its
// directory.
type Access struct {
	TenantID           id.ID
	DirectoryID        id.ID
	Status             string // of the account
	DirectoryStatus    string
	PasswordModifiedAt *time.Time
	CreatedAt          time.Time
}

// accessChannel is the channel of PostgreSQL notifications (NOTIFY) with the accounts, groups,
// directories, agents and tenants whose access changes.
const accessChannel = "directory.access"

// accessCacheSize is twice the number of accounts that the cache holds, some 400 bytes each.
const accessCacheSize = 1 << 16

const accessQuery = `SELECT a.tenant_id, a.directory_id, a.status, d.status AS directory_status, a.password_modified_at,
	a.created_at
	FROM ` + accountsWithDirectory + ` WHERE a.tenant_id = $1 AND a.id = $2`

// directory is the directory whose changes invalidate the cached access, too.
func (a Access) directory() id.Ref { return id.Ref{Tenant: a.TenantID, ID: a.DirectoryID} }

// Access returns the access of an account as it was at most 50 ms ago, mostly from the cache, or
// apierr.NotFound.
func (s *Store) Access(ctx context.Context, tenant, account id.ID) (Access, error) {
	return s.access.One(ctx, id.Ref{Tenant: tenant, ID: account})
}

// AccessChanges returns what invalidateAccess was called for since a position.
func (s *Store) AccessChanges(after cache.Position) cache.Page {
	return s.accessFeed.After(after)
}
