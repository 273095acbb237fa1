package provider

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/purge"
	"github.com/doorward/doorward/pkg/saml"
	"github.com/doorward/doorward/services/directory/store"
)

const (
	// metadataPause is the time between two looks for metadata that are due, metadataAge the time after
	// which they are due again.
	metadataPause = 10 * time.Minute
	metadataAge   = 24 * time.Hour
	// metadataBatch is how many providers a worker takes at a time.
	metadataBatch = 20

	defaultClockSkew = 180 // seconds
	maxClockSkew     = 300
)

// applySAMLSettings writes the members of a SAML provider that are no texts.
func applySAMLSettings(to *store.ProviderSettings, in NewProvider, isNew bool) error {
	if in.TrustsReusedEmails.Present || isNew {
		trusts := in.TrustsReusedEmails.Or(false)
		to.TrustsReusedEmails = &trusts
	}
	if in.ClockSkew.Present || isNew {
		skew, err := field.Whole(in.ClockSkew.NullIsAbsent(true), "clockSkew", defaultClockSkew, 0, maxClockSkew)
		if err != nil {
			return err
		}
		to.ClockSkew = &skew
	}
	if to.Metadata == nil && to.MetadataURL == nil {
		to.MetadataCertificates = nil // what the metadata said beyond the members that anybody may set goes with them
	}
	if to.SSOLoginURL == nil || to.EncodedX509SigningCert == nil { // null, although metadata have filled them
		return apierr.Required.Because("ssoLoginUrl and encodedX509SigningCert cannot be null")
	}
	return nil
}

// readMetadata reads the metadata of an identity provider that a body has or names, before any
// transaction. A document that cannot be used is apierr.Format, an address that cannot be read
// apierr.Invalid, each with the reason.
func (s *Service) readMetadata(ctx context.Context, in NewProvider) (NewProvider, error) {
	text, name := []byte(in.Metadata.Or("")), "metadata"
	switch {
	case in.Metadata.Given() && in.MetadataURL.Given():
		return in, apierr.Invalid.Because("of metadata and metadataUrl one can be given")
	case in.MetadataURL.Given():
		address, err := field.URL("https")("metadataUrl", in.MetadataURL.Value)
		if err != nil {
			return in, err
		}
		if text, err = s.client.Metadata(ctx, address); err != nil {
			return in, apierr.Invalid.Because("metadataUrl cannot be read: %s", err.Error())
		}
		name = "the document at metadataUrl"
	case !in.Metadata.Given():
		return in, nil
	}
	read, err := saml.ReadMetadata(text)
	if err != nil {
		return in, apierr.Format.Because("%s cannot be used: %s", name, err.Error())
	}
	in.read = &read
	return in, nil
}

// readChangedMetadata is readMetadata for the body that updates a provider. Metadata that the provider has
// already are not read again: clients post whole objects, as they have read them.
func (s *Service) readChangedMetadata(ctx context.Context, directory id.Ref, in NewProvider) (NewProvider, error) {
	if !in.Metadata.Given() && !in.MetadataURL.Given() {
		return in, nil
	}
	p, err := s.store.Provider(ctx, directory.Tenant, directory.ID)
	if err != nil || p.ProviderID != "saml" {
		return in, err // for another type, the members are refused later
	}
	isKnown := func(sent field.Text, known *string) bool { return sent.Given() && known != nil && sent.Value == *known }
	if isKnown(in.Metadata, p.Settings.Metadata) || isKnown(in.MetadataURL, p.Settings.MetadataURL) {
		return in, nil
	}
	return s.readMetadata(ctx, in)
}

// applyMetadata writes what metadata say into the body that named them: the metadata win over members of
// the same body, as they do when they are read again. A provider has metadata or their address, the one
// that was sent last.
func applyMetadata(p *store.Provider, in *NewProvider, now time.Time) error {
	if in.Metadata.Present && !in.Metadata.Given() && p.Settings.MetadataURL == nil || in.MetadataURL.Present &&
		!in.MetadataURL.Given() {
		p.MetadataDueAt = nil
	}
	if in.read == nil {
		return nil
	}
	null := field.Text{Present: true, Null: true}
	if in.Metadata.Given() {
		in.MetadataURL, p.MetadataDueAt = null, nil
	} else {
		due := now.Add(metadataAge)
		in.Metadata, p.MetadataDueAt = null, &due
	}
	in.SSOLoginURL, in.EntityID = field.Some(in.read.LoginURL), field.Some(in.read.EntityID)
	if in.read.LogoutURL != "" {
		in.SSOLogoutURL = field.Some(in.read.LogoutURL)
	}
	certificates := in.read.Certificates
	in.EncodedX509SigningCert, in.EncodedX509SigningCertNext = field.Some(certificates[0]), null
	p.Settings.MetadataCertificates = nil
	if len(certificates) > 1 {
		in.EncodedX509SigningCertNext = field.Some(certificates[1])
		p.Settings.MetadataCertificates = certificates[2:]
	}
	return nil
}

// RefreshSAMLMetadata is the worker that reads the metadata of identity providers again, daily: a provider
// that changes its key publishes the next certificate there before it signs with it.
func (s *Service) RefreshSAMLMetadata(ctx context.Context) error {
	return purge.Periodically(metadataPause, "refresh of SAML metadata failed, retrying", s.refreshDueMetadata)(ctx)
}

// refreshDueMetadata reads the metadata that are due. Where that fails, what the provider has stays, and a
// warning is logged.
func (s *Service) refreshDueMetadata(ctx context.Context) error {
	for {
		var due []store.ProviderRef
		err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
			due, err = tx.TakeDueMetadata(ctx, s.now(), s.now().Add(metadataAge), metadataBatch)
			return err
		})
		if err != nil || len(due) == 0 {
			return err
		}
		for _, p := range due {
			if err := s.refreshMetadata(ctx, id.Ref{Tenant: p.TenantID, ID: p.DirectoryID}); err != nil {
				slog.WarnContext(ctx,
					"metadata of a SAML identity provider cannot be read, those of before stay in use",
					"tenant", p.TenantID.String(), "directory", p.DirectoryID.String(), "error", err.Error())
			}
		}
	}
}

// refreshMetadata reads the metadata of a provider again and stores what has changed.
func (s *Service) refreshMetadata(ctx context.Context, directory id.Ref) error {
	p, err := s.store.Provider(ctx, directory.Tenant, directory.ID)
	if err != nil || p.Settings.MetadataURL == nil {
		return err
	}
	in, err := s.readMetadata(ctx, NewProvider{MetadataURL: field.Some(*p.Settings.MetadataURL)})
	if err != nil {
		return err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		current, err := tx.LockProvider(ctx, directory.Tenant, directory.ID)
		if err != nil || current.Settings.MetadataURL == nil || *current.Settings.MetadataURL != in.MetadataURL.Value {
			return err // changed meanwhile
		}
		before := current.Settings
		if err := s.applyProvider(&current, in, false); err != nil || reflect.DeepEqual(before, current.Settings) {
			return err
		}
		current.ModifiedAt = s.now()
		return tx.UpdateProvider(ctx, current)
	})
	if errors.Is(err, apierr.NotFound) {
		return nil // deleted meanwhile
	}
	return err
}
