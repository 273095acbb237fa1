package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/directory/store"
)

// These methods of the contract move to the file of their noun as it is built.

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

// mergeGroupData merges the customData of a body into that of its group.
func (s *Service) mergeGroupData(context.Context, *store.Tx, directoryapi.Group, field.Object) error {
	return nil
}
