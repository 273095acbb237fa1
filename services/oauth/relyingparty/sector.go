package relyingparty

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/services/oauth/store"
)

// checkSector refuses, by apierr.Format, a client whose sectorIdentifierUri does not list all its redirect URIs
// (OpenID Connect Core, section 8.1). Else a client could get the pairwise subjects of somebody else's sector.
func (s *Clients) checkSector(ctx context.Context, v store.OpenIDClientSettings) error {
	if v.SectorIdentifierURI == nil {
		return nil
	}
	text, _, err := s.fetch(ctx, *v.SectorIdentifierURI, "application/json", maxMetadata)
	if err != nil {
		return apierr.Format.Because("the document of sectorIdentifierUri cannot be read: %s", err)
	}
	var listed []string
	if json.Unmarshal(text, &listed) != nil {
		return apierr.Format.Because("the document of sectorIdentifierUri must be a JSON array of redirect URIs")
	}
	for _, uri := range v.RedirectURIs {
		if !slices.Contains(listed, uri) {
			return apierr.Format.Because("the document of sectorIdentifierUri does not have the redirect URI %s", uri)
		}
	}
	return nil
}

// checkRegisteredSector is checkSector with the error of a registration.
func (s *Clients) checkRegisteredSector(ctx context.Context, v store.OpenIDClientSettings) error {
	err := s.checkSector(ctx, v)
	if apierr.IsRefusal(err) {
		return refuseMetadata("invalid_client_metadata", apierr.From(err).Reason)
	}
	return err
}
