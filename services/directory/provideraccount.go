package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// maxProviderAttempts limits how many times a login starts again because a parallel one
// created the account, or took the login name, that it was about to.
const maxProviderAttempts = 4

// ProviderAccount returns the account of a user of a provider, or creates it
// (docs/interface/applications.md#accounts-by-provider).
func (s *Service) ProviderAccount(ctx context.Context, in directoryapi.ProviderAccount) (directoryapi.ProvidedAccount, error) {
	p, err := s.store.AccountProvider(ctx, in.Tenant, in.Directory)
	if err != nil {
		return directoryapi.ProvidedAccount{}, err
	}
	if p.ProviderID == directoryapi.Native {
		return directoryapi.ProvidedAccount{}, apierr.Reference.Because("the directory is a cloud directory, which has no provider")
	}
	stated, err := stated(p, in)
	if err != nil {
		return directoryapi.ProvidedAccount{}, err
	}
	return s.providerAccount(ctx, p, in, stated)
}

// providerAccount is ProviderAccount for what a provider states.
func (s *Service) providerAccount(
	ctx context.Context, p store.AccountProvider, in directoryapi.ProviderAccount, stated userFacts,
) (directoryapi.ProvidedAccount, error) {
	for attempt := 1; ; attempt++ {
		out, err := s.provide(ctx, in, stated, p.Registrar)
		if errors.Is(err, apierr.Exists) && attempt < maxProviderAttempts {
			continue
		}
		if err != nil {
			return directoryapi.ProvidedAccount{}, err
		}
		out.Account, err = s.unsealed(out.Account)
		return out, err
	}
}

// provide finds or creates the account in one transaction. It returns
// apierr.Exists also where a parallel login was faster.
func (s *Service) provide(
	ctx context.Context, in directoryapi.ProviderAccount, stated userFacts, by store.Registrar,
) (out directoryapi.ProvidedAccount, err error) {
	err = s.store.Tx(ctx, func(tx *store.Tx) error {
		out = directoryapi.ProvidedAccount{}
		user, err := findUser(ctx, tx, in, stated)
		switch {
		case errors.Is(err, apierr.NotFound):
			out.IsNew = true
			out.Account, err = s.createUser(ctx, tx, in, stated, by)
		case err == nil:
			if err := checkUserAdmission(user); err != nil {
				return err
			}
			out.IsNew = user.ID == in.Account
			out.Account, err = s.refreshUser(ctx, tx, user, stated)
		}
		if err != nil {
			return err
		}
		if err := s.mapData(ctx, tx, out.Account, stated.data); err != nil {
			return err
		}
		tokens, err := s.sealTokens(out.Account.ID, user.TokensSealed, in.Tokens)
		if err != nil {
			return err
		}
		if user.SameFacts && tokens == nil {
			return nil
		}
		return tx.SetProviderData(ctx, out.Account, stated.externalID, stated.shown, tokens, s.now())
	})
	return out, err
}

// checkUserAdmission is checkAdmission for the account of a provider's user.
func checkUserAdmission(user store.ProviderUser) error {
	return checkAdmission(store.Candidate{Account: user.Account, DirectoryStatus: user.DirectoryStatus, StoreStatus: directoryapi.Enabled})
}

// isAsStated reports whether a login leaves the account of a user as it is.
func (s *Service) isAsStated(user store.ProviderUser, stated userFacts) bool {
	if !user.SameFacts || len(stated.data) > 0 {
		return false
	}
	after := user.Account
	isSettled := func(string) (bool, error) { return false, errUnsettled }
	return state(&after, stated, isSettled) == nil && differs(user.Account, after) == ""
}

// errUnsettled is that of a name that another account may have.
var errUnsettled = errors.New("the account may take another name")

// findUser is the account linking inside one directory: it returns the account that the provider knows by the user's id, or else the one of
// the user's email where both sides have verified it, or apierr.NotFound. An account of that
// email which the user cannot have is apierr.Exists: without a verified address an attacker
// may have created it in advance (account pre-hijacking).
func findUser(ctx context.Context, tx *store.Tx, in directoryapi.ProviderAccount, stated userFacts) (store.ProviderUser, error) {
	user, err := tx.LockProviderUser(ctx, in.Tenant, in.Directory, stated.externalID, stated.shown)
	if !errors.Is(err, apierr.NotFound) {
		return user, err
	}
	user, err = tx.LockAccountByLoginName(ctx, in.Tenant, in.Directory, stated.email)
	if err != nil {
		return user, err
	}
	if !field.SameMailbox(user.Email, stated.email) || !stated.emailVerified || !hasProvedEmail(user.Account) {
		return user, apierr.Exists.Because(
			"the directory has another account with the email %q, and an account is found by its email only where the provider and the account "+
				"both have it verified", stated.email).Saying("An account with that email exists.")
	}
	return user, nil
}

// createUser adds the account of a user who logs in for the first time.
func (s *Service) createUser(ctx context.Context, tx *store.Tx, in directoryapi.ProviderAccount, stated userFacts,
	by store.Registrar) (directoryapi.Account, error) {
	if by.Status != directoryapi.Enabled {
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
	if err := state(&a, stated, isFree(ctx, tx, a)); err != nil {
		return a, err
	}
	event, verification := s.register(&a, directoryapi.CreateAccount{Application: in.Application, Workflow: true}, by.CreationPolicy)
	if err := tx.InsertAccount(ctx, a, "", verification); err != nil || event == nil {
		return a, err
	}
	return a, tx.Emit(ctx, *event)
}

// refreshUser writes what the provider states now into an account.
func (s *Service) refreshUser(ctx context.Context, tx *store.Tx, user store.ProviderUser, stated userFacts) (directoryapi.Account, error) {
	before := user.Account
	a := before
	if err := state(&a, stated, isFree(ctx, tx, a)); err != nil {
		return a, err
	}
	if differs(before, a) == "" {
		return a, nil
	}
	a.ModifiedAt = s.now()
	if field.Fold(a.Email) != field.Fold(before.Email) {
		a.VerificationSealed = nil // its token proves the former email
		if err := tx.DropResets(ctx, a.TenantID, a.ID); err != nil {
			return a, err
		}
	}
	return a, tx.UpdateAccount(ctx, before, a)
}

// state writes the facts into an account. An email that the provider does not call
// verified stays verified where it was before, and counts as verified in a new account
// where the provider says nothing of it; a user name or email that is not free is left
// as it was.
func state(a *directoryapi.Account, stated userFacts, isFree func(name string) (bool, error)) error {
	isNew := a.Email == ""
	followsEmail := isNew || field.Fold(a.Username) == field.Fold(a.Email)
	emailChanges := field.Fold(a.Email) != field.Fold(stated.email)
	if emailChanges && !isNew {
		free, err := isFree(stated.email)
		if err != nil {
			return err
		}
		emailChanges = free
	}
	if emailChanges {
		a.Email, a.EmailVerificationStatus, a.EmailAssumed = stated.email, directoryapi.Unverified, false
	}
	switch {
	case stated.emailVerified && field.Fold(a.Email) == field.Fold(stated.email):
		a.Email, a.EmailVerificationStatus, a.EmailAssumed = stated.email, directoryapi.Verified, false
	case isNew && stated.emailUnstated:
		a.EmailVerificationStatus, a.EmailAssumed = directoryapi.Verified, true
	}
	if followsEmail {
		a.Username = a.Email
	}
	if stated.username != "" && field.Fold(stated.username) != field.Fold(a.Username) {
		free, err := isFree(stated.username)
		if err != nil {
			return err
		}
		if free {
			a.Username = stated.username
		}
	}
	for _, part := range []struct {
		to    **string
		value string
	}{{&a.GivenName, stated.givenName}, {&a.MiddleName, stated.middleName}, {&a.Surname, stated.surname}} {
		if part.value != "" {
			*part.to = &part.value
		}
	}
	return nil
}

// isFree reports of a user name or email whether no other account of the directory has
// it.
func isFree(ctx context.Context, tx *store.Tx, a directoryapi.Account) func(name string) (bool, error) {
	return func(name string) (bool, error) {
		holder, err := tx.LockAccountByLoginName(ctx, a.TenantID, a.DirectoryID, name)
		if errors.Is(err, apierr.NotFound) {
			return true, nil
		}
		return err == nil && holder.ID == a.ID, err
	}
}

// sealTokens returns the tokens of a login, sealed. A refresh token, which some
// providers issue at the first login alone, is kept.
func (s *Service) sealTokens(account id.ID, before []byte, tokens directoryapi.ProviderTokens) ([]byte, error) {
	if tokens == (directoryapi.ProviderTokens{}) {
		return nil, nil
	}
	if tokens.RefreshToken == "" && before != nil {
		former, err := s.ring.Open(before, providerTokensPurpose(account))
		if err != nil {
			return nil, err
		}
		var kept directoryapi.ProviderTokens
		if err := json.Unmarshal([]byte(former.Reveal()), &kept); err != nil {
			return nil, err
		}
		tokens.RefreshToken = kept.RefreshToken
	}
	text, err := json.Marshal(tokens)
	if err != nil {
		return nil, err
	}
	return s.ring.Seal(secure.Secret(text), providerTokensPurpose(account)), nil
}

// mapData writes the values of mapping rules into the customData of an account. A
// value that customData cannot hold is left out: no provider's answer keeps its
// users from logging in.
func (s *Service) mapData(ctx context.Context, tx *store.Tx, a directoryapi.Account, values []mappedValue) error {
	if len(values) == 0 {
		return nil
	}
	before, err := tx.AccountDocument(ctx, a.TenantID, a.ID, s.now())
	if err != nil {
		return err
	}
	after := before
	for _, value := range values {
		if with, err := value.into(after); err == nil {
			after = with
		}
	}
	if after == before {
		return nil
	}
	return tx.MergeAccountData(ctx, a.TenantID, a.ID, after, s.now())
}

// userFacts are what a provider states of a user, after the mapping rules.
type userFacts struct {
	externalID                               string
	email                                    string
	emailVerified, emailUnstated             bool
	username, givenName, middleName, surname string
	data                                     []mappedValue              // for customData
	shown                                    map[string]json.RawMessage // by the provider data
}

// stated checks what a provider states and applies the mapping rules of its
// directory.
func stated(p store.AccountProvider, in directoryapi.ProviderAccount) (userFacts, error) {
	facts := userFacts{
		email: in.Email, emailVerified: in.EmailVerified, emailUnstated: in.EmailUnstated,
		username: in.Username, givenName: in.GivenName, middleName: in.MiddleName, surname: in.Surname,
		shown: map[string]json.RawMessage{},
	}
	sources := attributeSources(in.Attributes)
	maps.Copy(facts.shown, shownAttributes(in.Attributes))
	if len(in.UserInfo) > 0 {
		object, text, err := readUserInfo(in.UserInfo)
		if err != nil {
			return facts, err
		}
		facts.shown["userInfo"], sources = text, userInfoSources(object)
	}
	facts.apply(p.Rules, sources, in)
	facts.clean()
	if facts.email == "" {
		return facts, apierr.ProviderIncomplete.Because("the provider %q states no email address of the user; request a scope that shares it, "+
			"or add a mapping rule for email", p.ProviderID)
	}
	if facts.externalID = cmp.Or(in.ExternalID, field.Fold(facts.email)); len(facts.externalID) > maxExternalID ||
		strings.ContainsRune(facts.externalID, 0) {
		return facts, apierr.ProviderIncomplete.Because("the id that the provider %q states of the user is not a text of at most %d bytes",
			p.ProviderID, maxExternalID)
	}
	return facts, nil
}

// maxExternalID is the longest id of a user at a provider, in bytes: an index
// holds it.
const maxExternalID = 1000
