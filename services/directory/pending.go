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
func (s *Service) AskVerification(context.Context, directoryapi.AskVerification) (directoryapi.Empty, error) {
	return directoryapi.Empty{}, apierr.NotFound
}
func (s *Service) AskReset(context.Context, directoryapi.AskReset) (directoryapi.PasswordReset, error) {
	return directoryapi.PasswordReset{}, apierr.NotFound
}
func (s *Service) Reset(context.Context, directoryapi.ResetToken) (directoryapi.PasswordReset, error) {
	return directoryapi.PasswordReset{}, apierr.NotFound
}
func (s *Service) SpendReset(context.Context, directoryapi.SpendReset) (directoryapi.PasswordReset, error) {
	return directoryapi.PasswordReset{}, apierr.NotFound
}
