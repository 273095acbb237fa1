package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory"
)

// NewDirectory is the body that creates or changes a directory of any type. An update may only repeat the
// provider that the directory has.
type NewDirectory struct {
	directory.NewDirectory
	Provider field.Nullable[NewProvider] `json:"provider"`
}

// CreateDirectoryIn creates a directory of any type from the body of a client, with the resources
// that belong to it, in one transaction.
func (s *Service) CreateDirectoryIn(ctx context.Context, tenant id.ID,
	in NewDirectory) (directoryapi.Directory, error) {
	d := directoryapi.Directory{TenantID: tenant, ID: id.New(s.now()), Status: directoryapi.Enabled}
	refusal := in.Apply(&d, true)
	if in.Provider.Given() && s.canonicalProviderID(in.Provider.Value.ProviderID.Or("")) == "saml" && refusal == nil {
		var err error
		if in.Provider.Value, err = s.readMetadata(ctx, in.Provider.Value); err != nil {
			return d, err // else all that the metadata would have filled in is missing
		}
	}
	mirror, err := s.newMirrorResources(d, in.Provider)
	if err = field.First(refusal, err); err != nil {
		return d, err
	}
	if mirror == nil {
		return s.core.CreateDirectoryWith(ctx, d, in.CustomData.Value, nil)
	}
	d.ProviderID = mirror.provider.ProviderID
	return s.core.CreateDirectoryWith(ctx, d, in.CustomData.Value, mirror.insert)
}

// UpdateDirectoryIn changes what the body of a client names. A provider in it must be the one that the
// directory has, which never changes.
func (s *Service) UpdateDirectoryIn(ctx context.Context, at id.Ref, in NewDirectory) (directoryapi.Directory, error) {
	if in.Provider.Given() {
		d, err := s.store.Directory(ctx, at.Tenant, at.ID)
		if err != nil {
			return d, err
		}
		if err := s.checkProviderUnchanged(d.ProviderID, in.Provider.Value); err != nil {
			return d, err
		}
	}
	return s.core.UpdateDirectory(ctx, at, in.NewDirectory)
}
