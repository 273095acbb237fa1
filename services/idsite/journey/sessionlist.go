package journey

import (
	"context"

	"github.com/doorward/doorward/pkg/api/mfaapi"
	"github.com/doorward/doorward/pkg/api/oauthapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/services/idsite/store"
)

// AuthenticationContext returns how a user has proved who he is: the claims acr and amr (RFC 8176). Of a login at
// another provider without a second factor both are empty: that provider knows them.
func AuthenticationContext(byPassword, factorPassed bool, factorType string) (acr string, amr []string) {
	if byPassword {
		acr, amr = oauthapi.ACRPassword, []string{"pwd"}
	}
	if !factorPassed {
		return acr, amr
	}
	switch factorType {
	case mfaapi.SMS:
		amr = append(amr, "sms")
	case mfaapi.Authenticator:
		amr = append(amr, "otp")
	}
	return oauthapi.ACRMFA, append(amr, "mfa")
}

// ListedSession is a session of single sign-on, with the clients to which codes were given in it.
type ListedSession struct {
	store.Session
	Clients []id.ID
}

// ListSessions returns a page of the sessions of an account that go on, or apierr.NotFound for the account.
func (j *Journey) ListSessions(ctx context.Context, account id.Ref, query list.Query) (list.Page[ListedSession], error) {
	owner, err := j.peers.Directory.Account(ctx, account)
	if err != nil {
		return list.Page[ListedSession]{}, err
	}
	query = query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt)
	out := list.NewPage[ListedSession](query)
	page, err := j.store.ListSessions(ctx, account, j.now(), query)
	if err != nil {
		return out, err
	}
	out.Size = page.Size
	out.Items, err = j.withClients(ctx, account.Tenant, page.Items)
	return out, err
}

// withClients returns sessions with their clients.
func (j *Journey) withClients(ctx context.Context, tenant id.ID, sessions []store.Session) ([]ListedSession, error) {
	names := make([]id.ID, len(sessions))
	for i, s := range sessions {
		names[i] = s.SessionID
	}
	rows, err := j.store.SessionClients(ctx, tenant, names)
	if err != nil {
		return nil, err
	}
	out := make([]ListedSession, len(sessions))
	for i, s := range sessions {
		out[i] = ListedSession{Session: s, Clients: []id.ID{}}
		for _, row := range rows {
			if row.SessionID == s.SessionID {
				out[i].Clients = append(out[i].Clients, row.ClientID)
			}
		}
	}
	return out, nil
}

// Session returns a session by its name, or apierr.NotFound for one that has ended.
func (j *Journey) Session(ctx context.Context, session id.Ref) (ListedSession, error) {
	s, err := j.store.SessionByName(ctx, session, j.now())
	if err != nil {
		return ListedSession{}, err
	}
	found, err := j.withClients(ctx, session.Tenant, []store.Session{s})
	if err != nil {
		return ListedSession{}, err
	}
	return found[0], nil
}

// DeleteSession ends a session with all its tokens, or returns apierr.NotFound.
func (j *Journey) DeleteSession(ctx context.Context, session id.Ref) error {
	s, err := j.store.SessionByName(ctx, session, j.now())
	if err != nil {
		return err
	}
	return j.EndSession(ctx, s, false)
}

// DeleteSessions ends all sessions of an account with all their tokens.
func (j *Journey) DeleteSessions(ctx context.Context, account id.Ref) error {
	if _, err := j.peers.Directory.Account(ctx, account); err != nil {
		return err
	}
	sessions, err := j.store.SessionsOf(ctx, account, j.now())
	for i := 0; i < len(sessions) && err == nil; i++ {
		err = j.EndSession(ctx, sessions[i], false)
	}
	return err
}

// ListConsents returns a page of what an account has allowed clients, or apierr.NotFound for the account.
func (j *Journey) ListConsents(ctx context.Context, account id.Ref, query list.Query) (list.Page[store.Consent], error) {
	owner, err := j.peers.Directory.Account(ctx, account)
	if err != nil {
		return list.Page[store.Consent]{}, err
	}
	return j.store.ListConsents(ctx, account, query.WithParentTimes(owner.CreatedAt, owner.ModifiedAt))
}

// Consent returns a consent, or apierr.NotFound.
func (j *Journey) Consent(ctx context.Context, consent id.Ref) (store.Consent, error) {
	return j.store.Consent(ctx, consent)
}

// DeleteConsent takes a consent back, which ends the client's tokens of the account, or returns apierr.NotFound.
func (j *Journey) DeleteConsent(ctx context.Context, consent id.Ref) error {
	c, err := j.store.Consent(ctx, consent)
	if err != nil {
		return err
	}
	err = j.store.Tx(ctx, func(tx *store.Tx) error {
		tx.DeleteConsent(consent)
		return nil
	})
	if err != nil {
		return err
	}
	// After the consent: a code that was given before it is exchanged for tokens that end here.
	_, err = j.peers.OAuth.EndTokens(ctx, oauthapi.EndTokens{
		Tenant: c.TenantID, Account: c.AccountID, Client: c.ClientID,
	})
	return err
}
