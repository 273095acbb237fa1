// Package agentconfig reads and validates the configuration of an LDAP agent: in the provider of a
// new directory, and in an update of the agent.
package agentconfig

import (
	"strconv"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/field"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/secure"
	"github.com/doorward/doorward/services/directory"
	"github.com/doorward/doorward/services/directory/store"
)

// Limits of an agent's configuration.
const (
	MaxText                = 1000 // characters of a distinguished name, a filter or a password
	maxPollInterval        = 7 * 24 * 60
	defaultAbsentRetention = "P30D"
	maxAbsentRetention     = 3653 * 24 * time.Hour
	defaultMaxAbsent       = store.Share("10%")
)

// Agent is the agent inside of a new directory, or the body that changes one.
type Agent struct {
	Config field.Nullable[Config] `json:"config"`
	// of a change alone: the next complete sync may make any number absent
	ConfirmAbsent field.Bool `json:"confirmAbsent"`
}

// UnmarshalJSON reads an agent inside of a provider.
func (in *Agent) UnmarshalJSON(data []byte) error {
	type members Agent // without this method
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

// Config is the configuration of an agent, or a part of it.
type Config struct {
	DirectoryHost        field.Text                  `json:"directoryHost"`
	DirectoryPort        field.Int                   `json:"directoryPort"`
	SSLRequired          field.Bool                  `json:"sslRequired"`
	AgentUserDN          field.Text                  `json:"agentUserDn"`
	AgentUserDNPassword  field.Text                  `json:"agentUserDnPassword"`
	BaseDN               field.Text                  `json:"baseDn"`
	PollInterval         field.Int                   `json:"pollInterval"`
	ReferralMode         field.Text                  `json:"referralMode"`
	IgnoreReferralIssues field.Bool                  `json:"ignoreReferralIssues"`
	AbsentRetention      field.Text                  `json:"absentRetention"`
	MaxAbsent            field.Nullable[store.Share] `json:"maxAbsent"`
	AccountConfig        field.Nullable[Accounts]    `json:"accountConfig"`
	GroupConfig          field.Nullable[Groups]      `json:"groupConfig"`
}

// UnmarshalJSON reads a configuration inside of an agent.
func (in *Config) UnmarshalJSON(data []byte) error {
	type members Config
	return field.Nested(data, (*members)(in), nil)
}

// Accounts says which LDAP entries are accounts, and which attributes are their
// properties.
type Accounts struct {
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
func (in *Accounts) UnmarshalJSON(data []byte) error {
	type members Accounts
	return field.Nested(data, (*members)(in), nil)
}

// Groups says which LDAP entries are groups, and which attributes are their properties.
type Groups struct {
	DNSuffix       field.Text `json:"dnSuffix"`
	ObjectClass    field.Text `json:"objectClass"`
	ObjectFilter   field.Text `json:"objectFilter"`
	NameRDN        field.Text `json:"nameRdn"`
	DescriptionRDN field.Text `json:"descriptionRdn"`
	MembersRDN     field.Text `json:"membersRdn"`
}

// UnmarshalJSON reads the groupConfig of a configuration.
func (in *Groups) UnmarshalJSON(data []byte) error {
	type members Groups
	return field.Nested(data, (*members)(in), nil)
}

// New makes the agent of a new directory, without storing it.
func New(ring *secure.Keyring, p store.Provider, in field.Nullable[Agent]) (*store.Agent, error) {
	if !in.Given() {
		return nil, apierr.Required.Because("agent is required for the provider %q", p.ProviderID)
	}
	a := store.Agent{
		TenantID: p.TenantID, ID: id.New(p.CreatedAt), DirectoryID: p.DirectoryID, ProviderID: p.ProviderID,
		Status: store.Offline, CreatedAt: p.CreatedAt, ModifiedAt: p.CreatedAt,
	}
	return &a, Apply(&a, ring, in.Value.Config, true)
}

// Apply writes the members of a configuration into an agent and validates them
// (docs/interface/directories.md#ldap-and-active-directory). The configuration of a new agent must
// be complete.
func Apply(a *store.Agent, ring *secure.Keyring, config field.Nullable[Config], isNew bool) error {
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

	if accounts.PasswordRDN.Given() && a.ProviderID == directory.AD {
		return directory.UnusedMember("accountConfig.passwordRdn")
	}
	var password, passwordRDN string
	errs.Verbatim(&to.DirectoryHost, in.DirectoryHost, "directoryHost", directory.MaxName, isNew)
	errs.Verbatim(&to.AgentUserDN, in.AgentUserDN, "agentUserDn", MaxText, isNew)
	errs.Verbatim(&password, in.AgentUserDNPassword, "agentUserDnPassword", MaxText, isNew)
	errs.Verbatim(&to.BaseDN, in.BaseDN, "baseDn", MaxText, isNew)
	errs.Verbatim(&to.AccountConfig.ObjectClass, accounts.ObjectClass, "accountConfig.objectClass", directory.MaxName,
		isNew)
	errs.Verbatim(&to.AccountConfig.EmailRDN, accounts.EmailRDN, "accountConfig.emailRdn", directory.MaxName, isNew)
	errs.Verbatim(&to.AccountConfig.GivenNameRDN, accounts.GivenNameRDN, "accountConfig.givenNameRdn",
		directory.MaxName, isNew)
	errs.Verbatim(&to.AccountConfig.SurnameRDN, accounts.SurnameRDN, "accountConfig.surnameRdn", directory.MaxName,
		isNew)
	errs.Verbatim(&to.AccountConfig.UsernameRDN, accounts.UsernameRDN, "accountConfig.usernameRdn", directory.MaxName,
		isNew)
	if a.ProviderID != directory.AD {
		errs.Verbatim(&passwordRDN, accounts.PasswordRDN, "accountConfig.passwordRdn", directory.MaxName, isNew)
	}
	errs.Verbatim(&to.GroupConfig.ObjectClass, groups.ObjectClass, "groupConfig.objectClass", directory.MaxName, isNew)
	errs.Verbatim(&to.GroupConfig.NameRDN, groups.NameRDN, "groupConfig.nameRdn", directory.MaxName, isNew)
	errs.Verbatim(&to.GroupConfig.DescriptionRDN, groups.DescriptionRDN, "groupConfig.descriptionRdn",
		directory.MaxName, isNew)
	if password != "" {
		a.PasswordSealed = ring.Seal(secure.Secret(password), PasswordPurpose(a.ID))
	}
	if passwordRDN != "" {
		to.AccountConfig.PasswordRDN = &passwordRDN
	}

	errs.Optional(&to.AccountConfig.DNSuffix, accounts.DNSuffix, "accountConfig.dnSuffix", MaxText)
	errs.Optional(&to.AccountConfig.ObjectFilter, accounts.ObjectFilter, "accountConfig.objectFilter", MaxText)
	errs.Optional(&to.AccountConfig.MiddleNameRDN, accounts.MiddleNameRDN, "accountConfig.middleNameRdn",
		directory.MaxName)
	errs.Optional(&to.GroupConfig.DNSuffix, groups.DNSuffix, "groupConfig.dnSuffix", MaxText)
	errs.Optional(&to.GroupConfig.ObjectFilter, groups.ObjectFilter, "groupConfig.objectFilter", MaxText)
	errs.Optional(&to.GroupConfig.MembersRDN, groups.MembersRDN, "groupConfig.membersRdn", directory.MaxName)
	errs.Add(configureConnection(to, in, isNew))
	errs.Add(configureReferrals(a, in, isNew))
	errs.Add(configureAbsence(to, in, isNew))
	return errs.First()
}

// configureConnection writes the members that have a default; null in the body restores the
// default.
func configureConnection(to *store.AgentConfig, in Config, isNew bool) (err error) {
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
func configureReferrals(a *store.Agent, in Config, isNew bool) error {
	if a.ProviderID != directory.AD {
		switch {
		case in.ReferralMode.Given():
			return directory.UnusedMember("referralMode")
		case in.IgnoreReferralIssues.Given():
			return directory.UnusedMember("ignoreReferralIssues")
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

// PasswordPurpose is the purpose under which the password of an agent is sealed.
func PasswordPurpose(agent id.ID) string { return "directory.agent/" + agent.String() }

// configureAbsence writes the members that say what becomes of vanished accounts; null in the body
// restores the default.
func configureAbsence(to *store.AgentConfig, in Config, isNew bool) error {
	switch {
	case in.AbsentRetention.Given():
		text, err := field.Required(in.AbsentRetention, "absentRetention", directory.MaxName)
		if err != nil {
			return err
		}
		retention, err := field.ParseDuration(text)
		if err != nil {
			return apierr.From(err).Because("absentRetention: %s", apierr.From(err).Reason)
		}
		if retention > maxAbsentRetention {
			return apierr.AboveMaximum.Because("absentRetention must be at most P10Y")
		}
		to.AbsentRetention = text
	case in.AbsentRetention.Null || isNew:
		to.AbsentRetention = defaultAbsentRetention
	}
	switch {
	case in.MaxAbsent.Given():
		return readShare(&to.MaxAbsent, in.MaxAbsent.Value)
	case in.MaxAbsent.Null || isNew:
		to.MaxAbsent = defaultMaxAbsent
	}
	return nil
}

// readShare checks maxAbsent: a whole number, or a percentage up to 100%.
func readShare(to *store.Share, in store.Share) error {
	most, text := int64(1_000_000_000), string(in)
	if _, isPercentage := in.Percentage(); isPercentage {
		most, text = 100, text[:len(text)-1]
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return apierr.Format.Because("maxAbsent must be a whole number or a percentage such as \"10%%\"")
	}
	if int64(n) > most {
		return apierr.AboveMaximum.Because("maxAbsent must be at most %d or \"100%%\"", most)
	}
	*to = in
	return nil
}
