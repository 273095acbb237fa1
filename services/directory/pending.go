package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/services/directory/store"
)

// mergeGroupData merges the customData of a body into that of its group.
func (s *Service) mergeGroupData(context.Context, *store.Tx, directoryapi.Group, field.Object) error {
	return nil
}
