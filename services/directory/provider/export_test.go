package provider

import (
	"context"

	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

// CheckSAMLCertificates is one pass of the worker.
func CheckSAMLCertificates(ctx context.Context, s *Service) (map[string]int64, error) {
	return s.certificateCheck().Run(ctx)
}

// RefreshDueMetadata is one pass of the worker.
var RefreshDueMetadata = (*Service).refreshDueMetadata

// UseAssertion consumes an assertion, or refuses one that was used (replay).
func UseAssertion(ctx context.Context, s *Service, p store.Provider, login saml.Login) error {
	return s.useAssertion(ctx, p, login, func(*store.Tx) {})
}
