package directory

import (
	"context"
	"slices"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/customdata"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/services/directory/maildomain"
	"github.com/doorward/doorward/services/directory/store"
)

// CreationPolicyChange is the body that updates an account creation policy.
type CreationPolicyChange struct {
	VerificationEmailStatus        field.Text `json:"verificationEmailStatus"`
	VerificationSuccessEmailStatus field.Text `json:"verificationSuccessEmailStatus"`
	WelcomeEmailStatus             field.Text `json:"welcomeEmailStatus"`
	EmailDomainWhitelist           field.List `json:"emailDomainWhitelist"`
	EmailDomainBlacklist           field.List `json:"emailDomainBlacklist"`
	RegistrationCustomData         field.List `json:"registrationCustomData"`
}

// CreationPolicy returns the account creation policy of a directory, or apierr.NotFound.
// registration.go applies it.
func (s *Service) CreationPolicy(ctx context.Context, directory id.Ref) (store.CreationPolicy, error) {
	return s.store.CreationPolicy(ctx, directory.Tenant, directory.ID)
}

// UpdateCreationPolicy changes what the body names. A list in the body replaces the whole list. Of
// the policy of a mirror directory only the lists can be changed, which bind it to the domains that
// it may speak for (CheckMirrorDomain); what else would change is apierr.MirroredProperty.
func (s *Service) UpdateCreationPolicy(ctx context.Context, directory id.Ref,
	in CreationPolicyChange) (store.CreationPolicy, error) {
	var p store.CreationPolicy
	d, err := s.store.Directory(ctx, directory.Tenant, directory.ID)
	if err != nil {
		return p, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if p, err = tx.LockCreationPolicy(ctx, directory.Tenant, directory.ID); err != nil {
			return err
		}
		var errs field.Errors
		status := func(to *string, in field.Text, name string) {
			errs.Enum(to, in, name, directoryapi.Enabled, directoryapi.Disabled)
		}
		status(&p.VerificationEmailStatus, in.VerificationEmailStatus, "verificationEmailStatus")
		status(&p.VerificationSuccessEmailStatus, in.VerificationSuccessEmailStatus, "verificationSuccessEmailStatus")
		status(&p.WelcomeEmailStatus, in.WelcomeEmailStatus, "welcomeEmailStatus")
		if in.EmailDomainWhitelist.Present {
			p.EmailDomainWhitelist, err = maildomain.List("emailDomainWhitelist",
				in.EmailDomainWhitelist.Or([]string{}))
			errs.Add(err)
		}
		if in.EmailDomainBlacklist.Present {
			p.EmailDomainBlacklist, err = maildomain.List("emailDomainBlacklist",
				in.EmailDomainBlacklist.Or([]string{}))
			errs.Add(err)
		}
		if in.RegistrationCustomData.Present {
			p.RegistrationCustomData, err = keyList("registrationCustomData", in.RegistrationCustomData.Or(nil))
			errs.Add(err)
		}
		if err := errs.First(); err != nil {
			return err
		}
		if d.Mirror() && (p.SendsMails() || p.RegistrationCustomData != nil) {
			return apierr.MirroredProperty.Because("the directory %q is a mirror, in which nobody registers; "+
				"of its policy, only the lists of domains can be changed", d.Name)
		}
		p.ModifiedAt = s.now()
		return tx.UpdateCreationPolicy(ctx, p)
	})
	return p, err
}

// maxDataKeys bounds the keys of customData that a policy lists.
const maxDataKeys = 100

// keyList validates a list of root keys of customData.
func keyList(name string, keys []string) ([]string, error) {
	if len(keys) > maxDataKeys {
		return nil, apierr.TooLong.Because("%s has %d entries; at most %d are allowed", name, len(keys), maxDataKeys)
	}
	for _, key := range keys {
		if err := customdata.CheckKey(key); err != nil {
			return nil, apierr.Invalid.Because("%s holds %q, which is not a key of customData: %s", name, key,
				apierr.From(err).Reason)
		}
	}
	return keys, nil
}

// checkRegistrationData returns apierr.UnknownProperty for customData of a registration with a key
// that the policy does not list: what a user writes there himself is read by applications.
func checkRegistrationData(p store.CreationPolicy, data customdata.Document) error {
	if p.RegistrationCustomData == nil {
		return nil
	}
	for _, key := range data.Keys() {
		if !slices.Contains(p.RegistrationCustomData, key) {
			return apierr.UnknownProperty.
				Because("customData.%s is not among registrationCustomData of the directory's account creation policy",
					key).
				Saying("customData.%s is not a field of a registration.", key)
		}
	}
	return nil
}

// CheckMirrorDomain binds a mirror directory to the domains of its lists: it returns
// apierr.OutsideDomains for an email that a provider, an identity provider or a directory server
// has no right to speak for. It is asked before an account of a mirror is made, changed, logged in
// or linked; registrations in a cloud directory have codes of their own (maildomain.Check).
func CheckMirrorDomain(p store.RegistrationPolicy, email string) error {
	if p.ProviderID == directoryapi.Native {
		return nil
	}
	if err := maildomain.Check(p.CreationPolicy, email); err != nil {
		return apierr.OutsideDomains.Because("%s", apierr.From(err).Reason)
	}
	return nil
}

// CheckAccountDomain is CheckMirrorDomain for an account that exists.
func (s *Service) CheckAccountDomain(ctx context.Context, a directoryapi.Account) error {
	p, err := s.store.RegistrationPolicy(ctx, a.TenantID, a.DirectoryID)
	if err != nil {
		return err
	}
	return CheckMirrorDomain(p, a.Email)
}
