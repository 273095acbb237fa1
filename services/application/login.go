package application

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/secure"
)

// LoginAttempt is the body that logs an account in.
type LoginAttempt struct {
	Type         field.Text              `json:"type"`
	Value        field.Of[secure.Secret] `json:"value"` // Base64 of <login>:<password>
	AccountStore field.Of[StoreName]     `json:"accountStore"`
}

// StoreName names an account store of an application: by its href, or an
// organization by its key.
type StoreName struct {
	Href    string `json:"href"`
	NameKey string `json:"nameKey"`
}

// Attempt logs an account in with the body of a login attempt (resolutions,
// section 2.7).
func (s *Service) Attempt(ctx context.Context, application directoryapi.Ref, in LoginAttempt) (directoryapi.Account, error) {
	if !in.Type.Present {
		return directoryapi.Account{}, apierr.Required.Because("type is required")
	}
	if _, err := field.Enum(in.Type, "type", "basic", "basic"); err != nil {
		return directoryapi.Account{}, err
	}
	login, password, err := readBasic(in.Value)
	if err != nil {
		return directoryapi.Account{}, err
	}
	where, err := storeName(in.AccountStore)
	if err != nil {
		return directoryapi.Account{}, err
	}
	return s.login(ctx, application, where, login, password)
}

// storeName reads where a login is looked for; absent or null is everywhere.
func storeName(in field.Of[StoreName]) (StoreName, error) {
	where := in.Or(StoreName{})
	if in.Given() && where == (StoreName{}) {
		return where, apierr.WrongType.Because(`accountStore must be an object of the form {"href": "…"} or {"nameKey": "…"}`)
	}
	return where, nil
}

// encodings are the forms of Base64 that clients send: the standard and the
// URL-safe alphabet, with padding and without.
var encodings = []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding, base64.RawURLEncoding}

// readBasic reads the value of an attempt. The login ends at the first colon,
// so that a password may hold any number of them.
func readBasic(in field.Of[secure.Secret]) (login string, password secure.Secret, err error) {
	if in.Or("") == "" {
		return "", "", apierr.Required.Because("value is required; it cannot be null or empty")
	}
	decoded, ok := decode(in.Value)
	if !ok {
		return "", "", apierr.Format.Because("value is not Base64")
	}
	if !utf8.Valid(decoded) {
		return "", "", apierr.Encoding.Because("value is not the Base64 form of UTF-8 text")
	}
	login, rest, ok := strings.Cut(string(decoded), ":")
	if !ok || strings.ContainsRune(login, 0) {
		return "", "", apierr.Format.Because("value is not the Base64 form of <login>:<password>")
	}
	return login, secure.Secret(rest), nil
}

func decode(value secure.Secret) ([]byte, bool) {
	for _, encoding := range encodings {
		if decoded, err := encoding.DecodeString(value.Reveal()); err == nil {
			return decoded, true
		}
	}
	return nil, false
}

// Login checks a password for a peer.
func (s *Service) Login(ctx context.Context, in applicationapi.Login) (directoryapi.Account, error) {
	application := directoryapi.Ref{Tenant: in.Tenant, ID: in.Application}
	return s.login(ctx, application, StoreName{Href: in.AccountStore.Href}, in.Login, in.Password)
}

// login checks a password in the stores that are searched.
func (s *Service) login(ctx context.Context, application directoryapi.Ref, where StoreName, login string, password secure.Secret) (directoryapi.Account, error) {
	stores, err := s.searched(ctx, application, where)
	if err != nil {
		return directoryapi.Account{}, err
	}
	in, err := s.directories.Authenticate(ctx, directoryapi.Authenticate{Tenant: application.Tenant, Stores: stores, Login: login, Password: password})
	return in.Account, err
}

// searched gives the stores in which a login is looked for: those of the
// application in their order, or the one that where names. A disabled application
// reaches none of them: its answer, and the work for it, are those of a login
// that nobody has. One without stores is apierr.NoStores.
func (s *Service) searched(ctx context.Context, application directoryapi.Ref, where StoreName) ([]directoryapi.Store, error) {
	reach, err := s.store.Reach(ctx, application.Tenant, application.ID)
	if err != nil {
		return nil, err
	}
	stores := reach.Stores()
	switch {
	case reach.Status != directoryapi.Enabled:
		return nil, nil
	case where != (StoreName{}):
		return s.named(ctx, application, stores, where)
	case len(stores) == 0:
		return nil, apierr.NoStores.Because("the application has no account stores")
	}
	return stores, nil
}

// named finds the store that a body names among those of the application.
// One that exists and is not mapped is apierr.NotMapped, any other Reference.
// No store is an organization yet, so that no key leads to one.
func (s *Service) named(ctx context.Context, application directoryapi.Ref, stores []directoryapi.Store, where StoreName) ([]directoryapi.Store, error) {
	if where.Href == "" {
		return nil, apierr.Reference.Because("accountStore: there is no organization with the nameKey %q", where.NameKey)
	}
	unknown := apierr.Reference.Because("accountStore: there is no account store %q", where.Href)
	ref, ok := s.base.Parse(where.Href)
	if !ok || ref.Kind != directories {
		return nil, unknown
	}
	store := directoryapi.Store{Kind: ref.Kind, ID: ref.ID}
	if slices.Contains(stores, store) {
		return []directoryapi.Store{store}, nil
	}
	_, err := s.directories.Directory(ctx, directoryapi.Ref{Tenant: application.Tenant, ID: ref.ID})
	if errors.Is(err, apierr.NotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return nil, apierr.NotMapped.Because("the account store %q is not mapped to the application", where.Href)
}
