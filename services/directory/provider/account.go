package provider

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// maxProviderAttempts limits how many times a login is retried because a concurrent one created
// the account first, or took its login name.
const maxProviderAttempts = 4

// ProviderAccount returns the account of a user of a provider, and creates it at the first login
// (just-in-time provisioning, JIT; docs/interface/applications.md#accounts-by-provider). Claims of
// the user are mapped in claims.go and written into the account here at every login.
func (s *Service) ProviderAccount(ctx context.Context,
	in directoryapi.ProviderUser) (directoryapi.ProviderAccountResult, error) {
	p, err := s.store.AccountProvider(ctx, in.Tenant, in.Directory)
	if err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	if p.ProviderID == directoryapi.Native {
		return directoryapi.ProviderAccountResult{},
			apierr.Reference.Because("the directory is a cloud directory, which has no provider")
	}
	claims, err := mapClaims(p, in)
	if err != nil {
		return directoryapi.ProviderAccountResult{}, err
	}
	return s.accountOfClaims(ctx, p, in, claims)
}

// accountOfClaims is ProviderAccount for claims that are mapped already.
func (s *Service) accountOfClaims(
	ctx context.Context, p store.AccountProvider, in directoryapi.ProviderUser, claims providerClaims,
) (directoryapi.ProviderAccountResult, error) {
	for attempt := 1; ; attempt++ {
		out, err := s.findOrCreateAccount(ctx, in, claims, p.RegistrationPolicy)
		if errors.Is(err, apierr.Exists) && attempt < maxProviderAttempts {
			continue
		}
		if err != nil {
			return directoryapi.ProviderAccountResult{}, err
		}
		out.Account, err = s.core.WithVerificationToken(out.Account)
		return out, err
	}
}

// findOrCreateAccount finds or creates the account, in one transaction. It returns apierr.Exists
// also where a concurrent login was first.
func (s *Service) findOrCreateAccount(
	ctx context.Context, in directoryapi.ProviderUser, claims providerClaims, policy store.RegistrationPolicy,
) (out directoryapi.ProviderAccountResult, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		user, err := findUser(ctx, tx, in, claims)
		isUnknown := errors.Is(err, apierr.NotFound)
		switch {
		case isUnknown:
			out.Account, err = s.createUser(ctx, tx, in, claims, policy)
		case err == nil:
			out.Account, err = s.updateUser(ctx, tx, user, claims)
		}
		if err != nil {
			return err
		}
		// Also where an earlier attempt of this login created it under the id that the caller chose.
		out.IsNew = isUnknown || user.ID == in.Account
		if err := directory.CheckMirrorDomain(policy, out.Account.Email); err != nil { // the claims may have another
			return err
		}
		if err := s.applyCustomData(ctx, tx, out.Account, claims.customData); err != nil {
			return err
		}
		tokens, err := s.sealTokens(out.Account.ID, user.TokensSealed, in.Tokens)
		if err != nil {
			return err
		}
		if user.SameProviderData && tokens == nil {
			return nil
		}
		return tx.UpsertProviderData(ctx, out.Account, externalIDAfter(user, claims), claims.providerData, tokens,
			s.now())
	})
	return out, err
}

// checkUserLoginAllowed is directory.CheckLoginAllowed for the account of a provider's user.
func checkUserLoginAllowed(user store.AccountOfUser) error {
	return directory.CheckLoginAllowed(store.Candidate{
		Account: user.Account, DirectoryStatus: user.DirectoryStatus, StoreStatus: directoryapi.Enabled,
	})
}

// isUnchanged reports whether a login leaves the account of a user as it is.
func (s *Service) isUnchanged(user store.AccountOfUser, claims providerClaims) bool {
	if !user.SameProviderData || len(claims.customData) > 0 {
		return false
	}
	after := user.Account
	isNameFree := func(string) (bool, error) { return false, errNameMayChange }
	return applyClaims(&after, claims, isNameFree) == nil && directory.ChangedProperty(user.Account, after) == ""
}

// errNameMayChange stops isUnchanged where the account would get another login name.
var errNameMayChange = errors.New("the account may take another name")

// findUser is the account linking inside one directory: it returns the account with the provider's
// id of the user, or else the account of the user's email where both sides have verified that
// email, or apierr.NotFound. An account of that email which does not match is apierr.Exists:
// without a verified address an attacker may have created it in advance (account pre-hijacking).
func findUser(ctx context.Context, tx *store.Tx, in directoryapi.ProviderUser,
	claims providerClaims) (store.AccountOfUser, error) {
	user, err := tx.LockAccountByExternalID(ctx, in.Tenant, in.Directory, claims.externalID, claims.providerData)
	if !errors.Is(err, apierr.NotFound) {
		return user, err
	}
	user, err = tx.LockAccountByLoginName(ctx, in.Tenant, in.Directory, claims.email)
	if err != nil {
		return user, err
	}
	if !field.SameMailbox(user.Email, claims.email) || !claims.emailVerified ||
		!directory.HasVerifiedEmail(user.Account) {
		return user, apierr.Exists.Because(
			"the directory has another account with the email %q, and an account is found by its email only where "+
				"the provider and the account both have it verified", claims.email).Saying(
			"An account with that email exists.")
	}
	if isPersistent(user.ExternalID) && isPersistent(claims.externalID) && !claims.trustsReusedEmails {
		return user, apierr.SAMLMalformed.Because(
			"the account of the email %q has another persistent NameID: the email may have passed on to "+
				"another person; delete that account, or set trustsReusedEmails of the provider", claims.email)
	}
	return user, nil
}

// isPersistent reports whether an external id is a persistent NameID.
func isPersistent(externalID string) bool { return strings.HasPrefix(externalID, persistentID) }

// externalIDAfter returns the external id of an account after a login. A persistent NameID stays bound to it
// when a login brings a NameID of another format.
func externalIDAfter(user store.AccountOfUser, claims providerClaims) string {
	if isPersistent(user.ExternalID) && !isPersistent(claims.externalID) {
		return user.ExternalID
	}
	return claims.externalID
}

// createUser creates the account of a user at the first login.
func (s *Service) createUser(ctx context.Context, tx *store.Tx, in directoryapi.ProviderUser, claims providerClaims,
	policy store.RegistrationPolicy) (directoryapi.Account, error) {
	if policy.Status != directoryapi.Enabled {
		return directoryapi.Account{}, apierr.DirectoryDisabled.Because("the directory of the provider is disabled")
	}
	now := s.now()
	a := directoryapi.Account{
		TenantID: in.Tenant, ID: in.Account, DirectoryID: in.Directory, Status: directoryapi.Enabled,
		EmailVerificationStatus: directoryapi.Unverified, CreatedAt: now, ModifiedAt: now,
	}
	if a.ID.IsZero() {
		a.ID = id.New(now)
	}
	if err := applyClaims(&a, claims, isLoginNameFree(ctx, tx, a)); err != nil {
		return a, err
	}
	registration := directoryapi.CreateAccount{Application: in.Application, Workflow: true}
	event, verification := s.core.ApplyRegistrationWorkflow(&a, registration, policy.CreationPolicy)
	if err := tx.InsertAccount(ctx, a, "", verification); err != nil {
		return a, err
	}
	if err := tx.MergeAccountCustomData(ctx, a.TenantID, a.ID, in.CustomData.Value, now); err != nil || event == nil {
		return a, err
	}
	return a, tx.Emit(ctx, *event)
}

// updateUser updates an account that may log in with the claims of a login.
func (s *Service) updateUser(ctx context.Context, tx *store.Tx, user store.AccountOfUser,
	claims providerClaims) (directoryapi.Account, error) {
	before := user.Account
	if err := checkUserLoginAllowed(user); err != nil {
		return before, err
	}
	a := before
	if err := applyClaims(&a, claims, isLoginNameFree(ctx, tx, a)); err != nil {
		return a, err
	}
	if field.LoginName(a.Email) != field.LoginName(claims.email) {
		slog.WarnContext(ctx,
			"email of a provider's user is that of another account, the account keeps its former email",
			"tenant", a.TenantID.String(), "directory", a.DirectoryID.String(), "account", a.ID.String())
	}
	if directory.ChangedProperty(before, a) == "" {
		return a, nil
	}
	a.ModifiedAt = s.now()
	if field.LoginName(a.Email) != field.LoginName(before.Email) {
		a.VerificationSealed = nil // the token was mailed to the former email
		if err := tx.EndResets(ctx, a.TenantID, a.ID, s.now()); err != nil {
			return a, err
		}
	}
	return a, tx.UpdateAccount(ctx, before, a)
}

// applyClaims writes claims into an account. An email that the provider does not call verified
// stays verified where it was before; in a new account it counts as verified where the provider
// makes no statement. A user name or email that another account has is not changed.
func applyClaims(a *directoryapi.Account, claims providerClaims, isNameFree func(name string) (bool, error)) error {
	isNew := a.Email == ""
	followsEmail := isNew || field.LoginName(a.Username) == field.LoginName(a.Email)
	emailChanges := field.LoginName(a.Email) != field.LoginName(claims.email)
	if emailChanges && !isNew {
		free, err := isNameFree(claims.email)
		if err != nil {
			return err
		}
		emailChanges = free
	}
	if emailChanges {
		a.Email, a.EmailVerificationStatus, a.EmailAssumed = claims.email, directoryapi.Unverified, false
	}
	switch {
	case claims.emailVerified && field.LoginName(a.Email) == field.LoginName(claims.email):
		a.Email, a.EmailVerificationStatus, a.EmailAssumed = claims.email, directoryapi.Verified, false
	case isNew && claims.emailUnstated:
		a.EmailVerificationStatus, a.EmailAssumed = directoryapi.Verified, true
	}
	if followsEmail {
		a.Username = a.Email
	}
	if claims.username != "" && field.LoginName(claims.username) != field.LoginName(a.Username) {
		free, err := isNameFree(claims.username)
		if err != nil {
			return err
		}
		if free {
			a.Username = claims.username
		}
	}
	for _, part := range []struct {
		to    **string
		value string
	}{{&a.GivenName, claims.givenName}, {&a.MiddleName, claims.middleName}, {&a.Surname, claims.surname}} {
		if part.value != "" {
			*part.to = &part.value
		}
	}
	if a.Locale == nil && claims.locale != "" {
		a.Locale = &claims.locale
	}
	return nil
}

// isLoginNameFree returns the function that reports whether no other account of the directory has
// a user name or email.
func isLoginNameFree(ctx context.Context, tx *store.Tx, a directoryapi.Account) func(name string) (bool, error) {
	return func(name string) (bool, error) {
		owner, err := tx.LockAccountByLoginName(ctx, a.TenantID, a.DirectoryID, name)
		if errors.Is(err, apierr.NotFound) {
			return true, nil
		}
		return owner.ID == a.ID, err
	}
}

// sealTokens returns the provider's tokens of a login, sealed. A refresh token of an earlier login
// is kept, as some providers issue one at the first login only.
func (s *Service) sealTokens(account id.ID, before []byte, tokens directoryapi.ProviderTokens) ([]byte, error) {
	if tokens == (directoryapi.ProviderTokens{}) {
		return nil, nil
	}
	if tokens.RefreshToken == "" && before != nil {
		plain, err := s.ring.Open(before, providerTokensPurpose(account))
		if err != nil {
			return nil, err
		}
		var former directoryapi.ProviderTokens
		if err := json.Unmarshal([]byte(plain.Reveal()), &former); err != nil {
			return nil, err
		}
		tokens.RefreshToken = former.RefreshToken
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, err
	}
	return s.ring.Seal(secure.Secret(text), providerTokensPurpose(account)), nil
}

// applyCustomData writes the values that mapping rules give for customData into that of an
// account. A value that customData cannot hold is skipped: it must not keep the user from logging
// in.
func (s *Service) applyCustomData(ctx context.Context, tx *store.Tx, a directoryapi.Account,
	values []mappedValue) error {
	if len(values) == 0 {
		return nil
	}
	before, err := tx.LockAccountCustomData(ctx, a.TenantID, a.ID)
	if err != nil {
		return err
	}
	after := before
	for _, value := range values {
		if with, err := value.mergeInto(after); err == nil {
			after = with
		}
	}
	if after == before {
		return nil
	}
	return tx.MergeAccountCustomData(ctx, a.TenantID, a.ID, after, s.now())
}
