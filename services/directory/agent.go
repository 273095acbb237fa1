package directory

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory/store"
)

// agentSilence is the time without a call after which an agent counts as offline
// (docs/interface/connectors.md#agents).
const agentSilence = 2 * time.Minute

// Limits of an agent's configuration.
const (
	maxLDAPText     = 1000 // characters of a distinguished name, a filter or a password
	maxPollInterval = 7 * 24 * 60
)

// NewAgent is the agent inside of a new directory, or the body that changes one.
type NewAgent struct {
	Config        field.Nullable[NewAgentConfig] `json:"config"`
	ConfirmAbsent field.Bool                     `json:"confirmAbsent"` // of a change alone: the next complete sync may make any number absent
}

// UnmarshalJSON reads an agent inside of a provider.
func (in *NewAgent) UnmarshalJSON(data []byte) error {
	type members NewAgent // without this method
	return field.Nested(data, (*members)(in), struct {
		field.Head
		ID        any `json:"id"`
		Status    any `json:"status"`
		Directory any `json:"directory"`
		Download  any `json:"download"`
		Tenant    any `json:"tenant"`
		LastSync  any `json:"lastSync"`
	}{})
}

// NewAgentConfig is the configuration of an agent, or a part of it.
type NewAgentConfig struct {
	DirectoryHost        field.Text                       `json:"directoryHost"`
	DirectoryPort        field.Int                        `json:"directoryPort"`
	SSLRequired          field.Bool                       `json:"sslRequired"`
	AgentUserDN          field.Text                       `json:"agentUserDn"`
	AgentUserDNPassword  field.Text                       `json:"agentUserDnPassword"`
	BaseDN               field.Text                       `json:"baseDn"`
	PollInterval         field.Int                        `json:"pollInterval"`
	ReferralMode         field.Text                       `json:"referralMode"`
	IgnoreReferralIssues field.Bool                       `json:"ignoreReferralIssues"`
	AbsentRetention      field.Text                       `json:"absentRetention"`
	MaxAbsent            field.Nullable[store.Share]      `json:"maxAbsent"`
	AccountConfig        field.Nullable[NewAgentAccounts] `json:"accountConfig"`
	GroupConfig          field.Nullable[NewAgentGroups]   `json:"groupConfig"`
}

// UnmarshalJSON reads a configuration inside of an agent.
func (in *NewAgentConfig) UnmarshalJSON(data []byte) error {
	type members NewAgentConfig
	return field.Nested(data, (*members)(in), nil)
}

// NewAgentAccounts says which LDAP entries are accounts, and which attributes are their
// properties.
type NewAgentAccounts struct {
	DNSuffix      field.Text `json:"dnSuffix"`
	ObjectClass   field.Text `json:"objectClass"`
	ObjectFilter  field.Text `json:"objectFilter"`
	EmailRDN      field.Text `json:"emailRdn"`
	GivenNameRDN  field.Text `json:"givenNameRdn"`
	MiddleNameRDN field.Text `json:"middleNameRdn"`
	SurnameRDN    field.Text `json:"surnameRdn"`
	UsernameRDN   field.Text `json:"usernameRdn"`
	PasswordRDN   field.Text `json:"passwordRdn"`
}

// UnmarshalJSON reads the accountConfig of a configuration.
func (in *NewAgentAccounts) UnmarshalJSON(data []byte) error {
	type members NewAgentAccounts
	return field.Nested(data, (*members)(in), nil)
}

// NewAgentGroups says which LDAP entries are groups, and which attributes are their properties.
type NewAgentGroups struct {
	DNSuffix       field.Text `json:"dnSuffix"`
	ObjectClass    field.Text `json:"objectClass"`
	ObjectFilter   field.Text `json:"objectFilter"`
	NameRDN        field.Text `json:"nameRdn"`
	DescriptionRDN field.Text `json:"descriptionRdn"`
	MembersRDN     field.Text `json:"membersRdn"`
}

// UnmarshalJSON reads the groupConfig of a configuration.
func (in *NewAgentGroups) UnmarshalJSON(data []byte) error {
	type members NewAgentGroups
	return field.Nested(data, (*members)(in), nil)
}

// newAgent makes the agent of a new directory, without storing it.
func (s *Service) newAgent(p store.Provider, in field.Nullable[NewAgent]) (*store.Agent, error) {
	if !in.Given() {
		return nil, apierr.Required.Because("agent is required for the provider %q", p.ProviderID)
	}
	a := store.Agent{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), DirectoryID: p.DirectoryID, ProviderID: p.ProviderID,
		Status: store.Offline, CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	return &a, s.configure(&a, in.Value.Config, true)
}

// configure writes the members of a configuration into an agent and validates them
// (docs/interface/directories.md#ldap-and-active-directory). The configuration of a new agent must
// be complete.
func (s *Service) configure(a *store.Agent, config field.Nullable[NewAgentConfig], isNew bool) error {
	var errs field.Errors
	in, to := config.Value, &a.Config
	accounts, groups := in.AccountConfig.Value, in.GroupConfig.Value
	for _, part := range []struct {
		name           string
		present, given bool
	}{
		{"config", config.Present, config.Given()},
		{"accountConfig", in.AccountConfig.Present, in.AccountConfig.Given()},
		{"groupConfig", in.GroupConfig.Present, in.GroupConfig.Given()},
	} {
		if !part.given && (part.present || isNew) {
			return apierr.Required.Because("%s of the agent is required; it cannot be null", part.name)
		}
	}

	if accounts.PasswordRDN.Given() && a.ProviderID == ad {
		return unusedMemberError("accountConfig.passwordRdn")
	}
	var password, passwordRDN string
	errs.Verbatim(&to.DirectoryHost, in.DirectoryHost, "directoryHost", maxName, isNew)
	errs.Verbatim(&to.AgentUserDN, in.AgentUserDN, "agentUserDn", maxLDAPText, isNew)
	errs.Verbatim(&password, in.AgentUserDNPassword, "agentUserDnPassword", maxLDAPText, isNew)
	errs.Verbatim(&to.BaseDN, in.BaseDN, "baseDn", maxLDAPText, isNew)
	errs.Verbatim(&to.AccountConfig.ObjectClass, accounts.ObjectClass, "accountConfig.objectClass", maxName, isNew)
	errs.Verbatim(&to.AccountConfig.EmailRDN, accounts.EmailRDN, "accountConfig.emailRdn", maxName, isNew)
	errs.Verbatim(&to.AccountConfig.GivenNameRDN, accounts.GivenNameRDN, "accountConfig.givenNameRdn", maxName, isNew)
	errs.Verbatim(&to.AccountConfig.SurnameRDN, accounts.SurnameRDN, "accountConfig.surnameRdn", maxName, isNew)
	errs.Verbatim(&to.AccountConfig.UsernameRDN, accounts.UsernameRDN, "accountConfig.usernameRdn", maxName, isNew)
	if a.ProviderID != ad {
		errs.Verbatim(&passwordRDN, accounts.PasswordRDN, "accountConfig.passwordRdn", maxName, isNew)
	}
	errs.Verbatim(&to.GroupConfig.ObjectClass, groups.ObjectClass, "groupConfig.objectClass", maxName, isNew)
	errs.Verbatim(&to.GroupConfig.NameRDN, groups.NameRDN, "groupConfig.nameRdn", maxName, isNew)
	errs.Verbatim(&to.GroupConfig.DescriptionRDN, groups.DescriptionRDN, "groupConfig.descriptionRdn", maxName, isNew)
	if password != "" {
		a.PasswordSealed = s.ring.Seal(secure.Secret(password), agentPasswordPurpose(a.ID))
	}
	if passwordRDN != "" {
		to.AccountConfig.PasswordRDN = &passwordRDN
	}

	errs.Optional(&to.AccountConfig.DNSuffix, accounts.DNSuffix, "accountConfig.dnSuffix", maxLDAPText)
	errs.Optional(&to.AccountConfig.ObjectFilter, accounts.ObjectFilter, "accountConfig.objectFilter", maxLDAPText)
	errs.Optional(&to.AccountConfig.MiddleNameRDN, accounts.MiddleNameRDN, "accountConfig.middleNameRdn", maxName)
	errs.Optional(&to.GroupConfig.DNSuffix, groups.DNSuffix, "groupConfig.dnSuffix", maxLDAPText)
	errs.Optional(&to.GroupConfig.ObjectFilter, groups.ObjectFilter, "groupConfig.objectFilter", maxLDAPText)
	errs.Optional(&to.GroupConfig.MembersRDN, groups.MembersRDN, "groupConfig.membersRdn", maxName)
	errs.Add(configureConnection(to, in, isNew))
	errs.Add(configureReferrals(a, in, isNew))
	errs.Add(configureAbsence(to, in, isNew))
	return errs.First()
}

// configureConnection writes the members that have a default; null in the body restores the
// default.
func configureConnection(to *store.AgentConfig, in NewAgentConfig, isNew bool) (err error) {
	if in.SSLRequired.Present {
		to.SSLRequired = in.SSLRequired.Or(false)
	}
	port := 389
	if to.SSLRequired {
		port = 636
	}
	for _, m := range []struct {
		name           string
		in             field.Int
		to             *int
		fallback, most int
	}{
		{"directoryPort", in.DirectoryPort, &to.DirectoryPort, port, 65535},
		{"pollInterval", in.PollInterval, &to.PollInterval, 60, maxPollInterval},
	} {
		switch {
		case m.in.Given():
			*m.to, err = field.Whole(m.in, m.name, 0, 1, m.most)
		case m.in.Null || isNew:
			*m.to = m.fallback
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// configureReferrals writes the members that only agents of Active Directory have.
func configureReferrals(a *store.Agent, in NewAgentConfig, isNew bool) error {
	if a.ProviderID != ad {
		switch {
		case in.ReferralMode.Given():
			return unusedMemberError("referralMode")
		case in.IgnoreReferralIssues.Given():
			return unusedMemberError("ignoreReferralIssues")
		}
		return nil
	}
	if in.ReferralMode.Given() {
		mode, err := field.Enum(in.ReferralMode, "referralMode", "", "follow", "ignore")
		if err != nil {
			return err
		}
		a.Config.ReferralMode = &mode
	}
	if in.ReferralMode.Null {
		a.Config.ReferralMode = nil
	}
	if in.IgnoreReferralIssues.Present || isNew {
		ignore := in.IgnoreReferralIssues.Or(false)
		a.Config.IgnoreReferralIssues = &ignore
	}
	return nil
}

func agentPasswordPurpose(agent id.ID) string { return "directory.agent/" + agent.String() }

// onlineSince returns the time since which an agent must have called to count as online.
func (s *Service) onlineSince() time.Time { return s.now().Add(-agentSilence) }

// Agent returns an agent, or apierr.NotFound.
func (s *Service) Agent(ctx context.Context, at id.Ref) (store.Agent, error) {
	return s.store.Agent(ctx, at.Tenant, at.ID, s.onlineSince())
}

// TenantAgents returns a page of the agents of a tenant.
func (s *Service) TenantAgents(ctx context.Context, tenant id.Ref, query list.Query) (list.Page[store.Agent], error) {
	parent, err := s.Tenant(ctx, tenant)
	if err != nil {
		return list.Page[store.Agent]{}, err
	}
	return s.store.ListAgents(ctx, tenant.Tenant, s.onlineSince(), query.WithParentTimes(parent.CreatedAt, parent.ModifiedAt))
}

// UpdateAgent changes the members of the configuration that the body names. The status of the
// agent stays. confirmAbsent lets its next complete sync, within an hour, pass the brake
// (agentabsence.go).
func (s *Service) UpdateAgent(ctx context.Context, at id.Ref, in NewAgent) (store.Agent, error) {
	var a store.Agent
	err := s.store.Tx(ctx, func(tx *store.Tx) (err error) {
		if a, err = tx.LockAgent(ctx, at.Tenant, at.ID, s.onlineSince()); err != nil {
			return err
		}
		if err := s.configure(&a, in.Config, false); err != nil {
			return err
		}
		if in.ConfirmAbsent.Present {
			a.AbsenceConfirmedUntil = nil
		}
		if in.ConfirmAbsent.Or(false) {
			until := s.now().Add(confirmationLifetime)
			a.AbsenceConfirmedUntil = &until
		}
		a.ModifiedAt = s.now()
		return tx.UpdateAgent(ctx, a)
	})
	return a, err
}

// AgentConfiguration returns an agent with the password of its LDAP bind (bind DN), for the agent
// itself.
func (s *Service) AgentConfiguration(ctx context.Context, at id.Ref) (store.Agent, secure.Secret, error) {
	a, err := s.Agent(ctx, at)
	if err != nil {
		return a, "", err
	}
	password, err := s.ring.Open(a.PasswordSealed, agentPasswordPurpose(a.ID))
	return a, password, err
}

// AgentDownload returns the ZIP archive of the agent's program, or apierr.NotFound where the
// deployment has none.
func (s *Service) AgentDownload(ctx context.Context, at id.Ref) ([]byte, error) {
	if _, err := s.Agent(ctx, at); err != nil {
		return nil, err
	}
	if s.cfg.AgentArchive == "" {
		return nil, apierr.NotFound.Because("this deployment has no archive of the agent; set DOORWARD_AGENT_ARCHIVE")
	}
	archive, err := os.ReadFile(s.cfg.AgentArchive)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, apierr.NotFound.Because("this deployment has no archive of the agent; its DOORWARD_AGENT_ARCHIVE is no file")
	}
	return archive, err
}

// Ping is the status that an agent reports (heartbeat).
type Ping struct {
	Status  field.Text `json:"status"`
	Message field.Text `json:"message"`
}

// Ping records the status that an agent reports: online, or an error until its next call without
// one. The message of an error goes to the log.
func (s *Service) Ping(ctx context.Context, at id.Ref, in Ping) (store.Agent, error) {
	if !in.Status.Present {
		return store.Agent{}, apierr.Required.Because("status is required: %s or %s", store.Online, store.Failed)
	}
	status, err := field.Enum(in.Status, "status", "", store.Online, store.Failed)
	if err != nil {
		return store.Agent{}, err
	}
	message, err := field.Optional(in.Message, "message", maxLDAPText)
	if err != nil {
		return store.Agent{}, err
	}
	err = s.store.Tx(ctx, func(tx *store.Tx) error { return tx.SetAgentStatus(ctx, at.Tenant, at.ID, status, s.now()) })
	if err != nil {
		return store.Agent{}, err
	}
	if status == store.Failed && message != nil {
		slog.WarnContext(ctx, "a directory agent reports an error", "agent", at.ID.String(), "message", *message)
	}
	return s.Agent(ctx, at)
}
