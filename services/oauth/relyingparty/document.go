package relyingparty

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/outbound"
	"github.com/doorward/doorward/services/oauth/store"
)

// The times for which a client ID metadata document is used: as its Cache-Control says, within these bounds.
const (
	leastDocumentAge = time.Minute // also of one that cannot be read
	mostDocumentAge  = 24 * time.Hour
)

// documentRef names a client ID metadata document at an application.
type documentRef struct {
	application id.Ref
	address     string
}

// document is a client ID metadata document that was fetched, or why it cannot be used.
type document struct {
	client store.OpenIDClient
	reason error // an apierr.Error
	until  time.Time
}

// IsDocument reports whether a client_id is the address of a client ID metadata document
// (draft-ietf-oauth-client-id-metadata-document, section 3): https with a path, without dot segments, user name and
// fragment.
func IsDocument(clientID string) bool {
	u, ok := plainURL(clientID)
	return ok && u.Scheme == "https" && u.Hostname() != "" && len(u.Path) > 1 &&
		!slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." })
}

// DocumentClient returns the client that a client ID metadata document describes, as it was fetched within the time of
// its Cache-Control. The same document is always the same client of an application; RecordLogin stores it. A
// document that cannot be used is apierr.BadRequest with the reason.
func (s *Clients) DocumentClient(ctx context.Context, application id.Ref, address string) (store.OpenIDClient, error) {
	ref := documentRef{application, address}
	fetch := func(ctx context.Context) (document, error) { return s.fetchDocument(ctx, ref) }
	found, err := s.documents.Get(ctx, ref, fetch)
	if err == nil && !s.Now().Before(found.until) {
		found, err = s.documents.Refresh(ctx, ref, fetch)
	}
	if err != nil {
		return found.client, err
	}
	return found.client, found.reason
}

// RecordLogin records that a user logs in at a client. That of a client ID metadata document is stored, so that its
// tokens and consents lead to it; one that has registered itself is kept from then on.
func (s *Clients) RecordLogin(ctx context.Context, tx *store.Tx, c store.OpenIDClient) error {
	switch {
	case IsDocument(c.ClientID):
		return tx.SaveOpenIDClient(ctx, c)
	case c.UnusedUntil != nil:
		return tx.KeepOpenIDClient(ctx, id.Ref{Tenant: c.TenantID, ID: c.ID})
	}
	return nil
}

// fetchDocument fetches a document. Its error is one of ours: what the document or its server does wrong is the reason.
func (s *Clients) fetchDocument(ctx context.Context, ref documentRef) (document, error) {
	profile, err := s.profile(ctx, ref.application)
	if err != nil {
		return document{}, err
	}
	now := s.Now()
	out := document{until: now.Add(leastDocumentAge)}
	body, life, err := s.readDocument(ctx, ref.address)
	if err != nil {
		out.reason = apierr.BadRequest.Because("the client ID metadata document %s cannot be read: %s", ref.address, err)
		return out, nil
	}
	out.until = now.Add(min(max(life, leastDocumentAge), mostDocumentAge))
	out.client, err = s.clientOf(ctx, ref, body, profile, now)
	if apierr.IsRefusal(err) {
		out.reason = apierr.BadRequest.Because("the client ID metadata document %s is not accepted: %s", ref.address,
			apierr.From(err).Reason)
		return out, nil
	}
	return out, err
}

// clientOf returns the client of the text of a document after all checks.
func (s *Clients) clientOf(ctx context.Context, ref documentRef, body []byte, profile string,
	now time.Time) (store.OpenIDClient, error) {
	c, err := ref.client(body, profile, now)
	if err != nil {
		return c, err
	}
	return c, s.checkSector(ctx, c.Settings)
}

// client is the client of the text of a document.
func (ref documentRef) client(body []byte, profile string, now time.Time) (c store.OpenIDClient, err error) {
	in, err := readMetadata(body, AuthNone)
	if err != nil {
		return c, err
	}
	var named struct {
		ClientID string  `json:"client_id"`
		Secret   *string `json:"client_secret"`
	}
	switch {
	case json.Unmarshal(body, &named) != nil || named.ClientID != ref.address:
		return c, refuseMetadata("invalid_client_metadata", "client_id must be the address of the document")
	case named.Secret != nil:
		return c, refuseMetadata("invalid_client_metadata", "a document has no client_secret")
	}
	sum := sha256.Sum256([]byte("client ID metadata document\n" + ref.application.Tenant.String() + "\n" +
		ref.application.ID.String() + "\n" + ref.address))
	c = store.OpenIDClient{
		TenantID: ref.application.Tenant, ID: id.ID(sum[:len(id.ID{})]), ClientID: ref.address,
		ApplicationID: ref.application.ID, Status: directoryapi.Enabled, CreatedAt: now, ModifiedAt: now,
	}
	// The user is told whose document it is: anyone may write any name into one.
	in.Name = field.Some(strings.TrimSpace(in.Name.Value + " (" + strings.TrimPrefix(ref.address, "https://") + ")"))
	if err := in.registeredClient(&c, profile); err != nil {
		return c, err
	}
	if method := c.Settings.TokenEndpointAuthMethod; method != AuthNone && method != AuthKey {
		return c, refuseMetadata("invalid_client_metadata", "token_endpoint_auth_method must be none or private_key_jwt")
	}
	if slices.Contains(c.Settings.GrantTypes, GrantDevice) { // it is stored when a user has logged in, not before
		return c, refuseMetadata("invalid_client_metadata", "grant_types may have authorization_code or refresh_token")
	}
	return c, nil
}

// readDocument returns the text of a document, and for how long its server says that it may be used.
func (s *Clients) readDocument(ctx context.Context, address string) ([]byte, time.Duration, error) {
	text, header, err := s.fetch(ctx, address, "application/json", maxMetadata)
	if err != nil {
		return nil, 0, err
	}
	kind, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, 0, errors.New("its Content-Type is not application/json")
	}
	return text, outbound.CacheAge(header.Get("Cache-Control"), 0), nil
}
