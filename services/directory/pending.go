package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/list"
)

// These methods of the contract move to the file of their noun as it is built.

func (s *Service) CreateGroup(context.Context, directoryapi.CreateGroup) (directoryapi.Group, error) {
	return directoryapi.Group{}, apierr.NotFound
}
func (s *Service) Group(context.Context, directoryapi.Ref) (directoryapi.Group, error) {
	return directoryapi.Group{}, apierr.NotFound
}
func (s *Service) ListGroups(context.Context, directoryapi.ListGroups) (list.Page[directoryapi.Group], error) {
	return list.Page[directoryapi.Group]{}, apierr.NotFound
}
func (s *Service) StoresOf(context.Context, directoryapi.Ref) (directoryapi.StoresOf, error) {
	return directoryapi.StoresOf{}, apierr.NotFound
}
