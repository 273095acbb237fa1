package directory

import "github.com/doorward/doorward/pkg/customdata"

// TenantData is the customData of tenants, a resource of its own (docs/interface/custom-data.md#owners).
func (s *Service) TenantData() customdata.Owners { return s.store.TenantData(s.now) }

// DirectoryData is the customData of directories.
func (s *Service) DirectoryData() customdata.Owners { return s.store.DirectoryData(s.now) }

// GroupData is the customData of groups.
func (s *Service) GroupData() customdata.Owners { return s.store.GroupData(s.now) }

// AccountData is the customData of accounts.
func (s *Service) AccountData() customdata.Owners { return s.store.AccountData(s.now) }
