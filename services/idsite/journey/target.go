package journey

import (
	"context"
	"errors"
	"strings"

	"github.com/doorward/doorward/pkg/api/applicationapi"
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/idsite/store"
)

// Requested is the account store that the request of a login names.
func Requested(f store.Flow) applicationapi.LoginTarget {
	return applicationapi.LoginTarget{
		Tenant: f.TenantID, Application: f.ApplicationID, NameKey: f.NameKey, AccountStore: href.Link{Href: f.AccountStore},
	}
}

// Target is where a user logs in, registers or is looked up: the account store that the browser names, else the
// one that the request names. It decides that for every step, because the application has signed the request and
// the browser writes the body: it returns apierr.Forbidden where the request names an account store and the
// browser another one. An organization is allowed even then, if the request lets the user name it
// (ShowOrganization).
func (j *Journey) Target(ctx context.Context, f store.Flow,
	named directoryapi.StoreName) (applicationapi.LoginTarget, error) {
	where := Requested(f)
	if named == (directoryapi.StoreName{}) {
		return where, nil
	}
	if named.Href != "" {
		named.NameKey = "" // the href decides
	}
	if where.NameKey != "" || where.AccountStore.Href != "" {
		own, err := j.RequestedStore(ctx, f)
		if err != nil {
			return where, err
		}
		if j.isSameStore(named, own) {
			return where, nil
		}
		if !f.ShowOrganization || !j.isOrganization(named.Href) {
			return where, errOtherStore
		}
	}
	where.NameKey, where.AccountStore = strings.ToLower(named.NameKey), href.Link{Href: named.Href}
	return where, nil
}

// errOtherStore is the error for a browser that names another account store than the signed request.
var errOtherStore = apierr.Forbidden.Because("the signed request of this login names another account store")

// isSameStore reports whether a browser names the account store of the request. Pages name it as
// their session token does: by the claim ash, an href, or by the claim asnk.
func (j *Journey) isSameStore(named, own directoryapi.StoreName) bool {
	if named.Href == "" {
		return strings.EqualFold(strings.TrimSpace(named.NameKey), own.NameKey)
	}
	at, ok := j.base.Parse(named.Href)
	signed, known := j.base.Parse(own.Href)
	return ok && known && at == signed
}

// isOrganization reports whether an href is that of an organization, or a nameKey stands in its place.
func (j *Journey) isOrganization(named string) bool {
	ref, ok := j.base.Parse(named)
	return named == "" || ok && ref.Kind == "organizations"
}

// RequestedStore returns the account store that the request of a login names, with the name that
// pages show: the nameKey of an organization, or the href of another account store. It is empty
// where the request names no account store, and where the organization has none.
func (j *Journey) RequestedStore(ctx context.Context, f store.Flow) (directoryapi.StoreName, error) {
	if ref, _ := j.base.Parse(f.AccountStore); f.NameKey == "" && ref.Kind != "organizations" {
		return directoryapi.StoreName{Href: f.AccountStore, NameKey: f.AccountStore}, nil
	}
	stores, err := j.Stores(ctx, Requested(f))
	if err != nil || stores.Organization.IsZero() {
		return directoryapi.StoreName{}, err
	}
	return directoryapi.StoreName{Href: j.base.To("organizations", stores.Organization), NameKey: stores.NameKey}, nil
}

// Stores returns the account stores of a login, in the order of login, without the default
// store. It returns an error where the target names an organization that does not exist, is
// disabled or is not mapped to the application.
func (j *Journey) Stores(ctx context.Context,
	where applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	where.Brief = true
	return j.storesWithDefault(ctx, where)
}

// storesWithDefault is Stores with the default account store for new accounts.
func (j *Journey) storesWithDefault(ctx context.Context,
	where applicationapi.LoginTarget) (applicationapi.LoginDirectories, error) {
	stores, err := j.peers.Application.LoginDirectories(ctx, where)
	switch {
	case where.NameKey == "":
		return stores, err
	case errors.Is(err, apierr.Reference):
		err = apierr.NameKeyUnknown.Because("there is no organization with the nameKey %q", where.NameKey)
	case errors.Is(err, apierr.OrganizationDisabled):
		err = apierr.NameKeyDisabled.Because("the organization %q is disabled", where.NameKey)
	case errors.Is(err, apierr.NotMapped):
		err = apierr.NameKeyNotMapped.Because("the organization %q is not mapped to the application", where.NameKey)
	}
	return stores, err
}

// Form is what a sign-in or registration form shows.
type Form struct {
	Directories []directoryapi.LoginDirectory   // at whose providers users log in, in the order of login
	Rules       *directoryapi.RegistrationRules // for a new account; nil: nobody can register
}

// Form returns what a form shows for a login in progress.
func (j *Journey) Form(ctx context.Context, f store.Flow) (Form, error) {
	stores, err := j.storesWithDefault(ctx, Requested(f))
	if err != nil {
		return Form{}, err
	}
	return j.form(ctx, f.TenantID, stores)
}

func (j *Journey) form(ctx context.Context, tenant id.ID,
	stores applicationapi.LoginDirectories) (form Form, err error) {
	list, err := j.peers.Directory.LoginDirectories(ctx,
		directoryapi.LoginDirectories{Tenant: tenant, Directories: stores.Directories})
	if err != nil {
		return form, err
	}
	for _, d := range list.Items {
		if d.Status == directoryapi.Enabled && hasProvider(d) {
			form.Directories = append(form.Directories, d)
		}
	}
	form.Rules, err = j.registrationRules(ctx, tenant, stores.Default)
	return form, err
}

// hasProvider reports whether the users of a directory log in at a provider, in the browser.
func hasProvider(d directoryapi.LoginDirectory) bool {
	return d.ProviderID == "saml" || directoryapi.IsSocial(d.ProviderID)
}

// registrationRules returns what a directory requires of a new account. It returns nil where nobody
// can register: there is no such directory, or it is a mirror.
func (j *Journey) registrationRules(ctx context.Context, tenant,
	directory id.ID) (*directoryapi.RegistrationRules, error) {
	if directory.IsZero() {
		return nil, nil
	}
	rules, err := j.peers.Directory.RegistrationRules(ctx, id.Ref{Tenant: tenant, ID: directory})
	if errors.Is(err, apierr.NotFound) || rules.Mirror {
		return nil, nil
	}
	return &rules, err
}
