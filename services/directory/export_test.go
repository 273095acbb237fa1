package directory

import (
	"context"

	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

// CheckSAMLCertificates is one check of the worker.
var CheckSAMLCertificates = (*Service).checkSAMLCertificates

// UseAssertion refuses an assertion that was used already.
func UseAssertion(ctx context.Context, s *Service, p store.Provider, login saml.Login) error {
	return s.useAssertion(ctx, p, login, func(*store.Tx) {})
}
