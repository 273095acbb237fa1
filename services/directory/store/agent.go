package store

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward/pkg/apierr"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

// The states of an agent.
const (
	Online  = "ONLINE"
	Offline = "OFFLINE"
	Failed  = "ERROR"
)

// Agent is the program that copies the accounts and groups of an LDAP or Active Directory server
// into a mirror directory.
type Agent struct {
	TenantID       id.ID
	ID             id.ID
	DirectoryID    id.ID
	ProviderID     string // of its directory
	Status         string // Online, Offline or Failed
	Config         AgentConfig
	PasswordSealed []byte    // of the server's user AgentUserDN
	LastSync       *LastSync // nil when there was none
	// AbsenceConfirmedUntil is when the confirmation of an administrator ends that a sync may make any
	// number of accounts absent; nil for none.
	AbsenceConfirmedUntil *time.Time
	// Vanished counts the accounts that pages without a complete sync have named as deleted since the
	// last complete one.
	Vanished   int64
	CreatedAt  time.Time
	ModifiedAt time.Time
}

// Ref returns the reference to the agent.
func (a Agent) Ref() id.Ref { return id.Ref{Tenant: a.TenantID, ID: a.ID} }

// Times returns the times of the collections below the agent.
func (a Agent) Times() (createdAt, modifiedAt time.Time) { return a.CreatedAt, a.ModifiedAt }

// LastSync is the result of the last sync of an agent.
type LastSync struct {
	StartedAt   time.Time  `json:"startedAt"`
	CompletedAt *time.Time `json:"completedAt"` // nil while it runs
	Accounts    int64      `json:"accounts"`    // in the directory when it completed
	Groups      int64      `json:"groups"`
	Refused     int64      `json:"refused"`
	Absent      int64      `json:"absent"` // of the accounts, those that are absent
	Held        int64      `json:"held"`   // accounts that the brake has kept from becoming absent; 0: it was not held
}

// AgentConfig says where the directory server is and how an agent reads it. Its JSON is that of
// the HTTP interface.
type AgentConfig struct {
	DirectoryHost        string  `json:"directoryHost"`
	DirectoryPort        int     `json:"directoryPort"`
	SSLRequired          bool    `json:"sslRequired"`
	AgentUserDN          string  `json:"agentUserDn"`
	BaseDN               string  `json:"baseDn"`
	PollInterval         int     `json:"pollInterval"`                   // minutes
	ReferralMode         *string `json:"referralMode,omitempty"`         // Active Directory only
	IgnoreReferralIssues *bool   `json:"ignoreReferralIssues,omitempty"` // Active Directory only
	// ISO 8601 duration; zero deletes at once
	AbsentRetention string             `json:"absentRetention"`
	MaxAbsent       Share              `json:"maxAbsent"`
	AccountConfig   AgentAccountConfig `json:"accountConfig"`
	GroupConfig     AgentGroupConfig   `json:"groupConfig"`
}

// Share is a number of accounts, or a percentage of those of a directory such as "10%". In JSON a
// number is a number, and a percentage is a text.
type Share string

// Percentage returns the percentage; ok is false for a number.
func (s Share) Percentage() (percent int64, ok bool) {
	digits, ok := strings.CutSuffix(string(s), "%")
	percent, _ = strconv.ParseInt(digits, 10, 64)
	return percent, ok
}

// Number returns the number; zero for a percentage.
func (s Share) Number() int64 {
	n, _ := strconv.ParseInt(string(s), 10, 64)
	return n
}

// MarshalJSON writes a share.
func (s Share) MarshalJSON() ([]byte, error) {
	if _, isPercentage := s.Percentage(); isPercentage || s == "" {
		return json.Marshal(string(s))
	}
	return []byte(s), nil
}

// UnmarshalJSON reads a share without checking it.
func (s *Share) UnmarshalJSON(data []byte) error {
	var text string
	var number json.Number
	switch {
	case json.Unmarshal(data, &text) == nil:
		*s = Share(text)
	case json.Unmarshal(data, &number) == nil:
		*s = Share(number)
	default:
		return apierr.WrongType.Because("must be a number or a percentage such as \"10%%\"")
	}
	return nil
}

// AgentAccountConfig says which LDAP entries are accounts, and which attributes are their
// properties.
type AgentAccountConfig struct {
	DNSuffix      *string `json:"dnSuffix"` // nil: search from the base
	ObjectClass   string  `json:"objectClass"`
	ObjectFilter  *string `json:"objectFilter"`
	EmailRDN      string  `json:"emailRdn"`
	GivenNameRDN  string  `json:"givenNameRdn"`
	MiddleNameRDN *string `json:"middleNameRdn"`
	SurnameRDN    string  `json:"surnameRdn"`
	UsernameRDN   string  `json:"usernameRdn"`
	PasswordRDN   *string `json:"passwordRdn,omitempty"` // LDAP only
}

// AgentGroupConfig says which LDAP entries are groups, and which attributes are their properties.
type AgentGroupConfig struct {
	DNSuffix       *string `json:"dnSuffix"` // nil: search from the base
	ObjectClass    string  `json:"objectClass"`
	ObjectFilter   *string `json:"objectFilter"`
	NameRDN        string  `json:"nameRdn"`
	DescriptionRDN string  `json:"descriptionRdn"`
	MembersRDN     *string `json:"membersRdn"`
}

// Agents are searched and sorted by these attributes.
var Agents = list.Spec{
	"id":         {Column: "id", Kind: list.Enum, NoFind: true},
	"status":     {Column: "status", Kind: list.Enum, Values: []string{Online, Offline, Failed}},
	"createdAt":  {Column: "created_at", Kind: list.Time},
	"modifiedAt": {Column: "modified_at", Kind: list.Time},
}

// lastSync selects the sync of agent a that completed last, or, without one, the running sync.
const lastSync = `(SELECT to_jsonb(last) FROM (
	SELECT started_at AS "startedAt", completed_at AS "completedAt", accounts, groups, refused, absent, held
	FROM agent_syncs y
	WHERE y.tenant_id = a.tenant_id AND y.agent_id = a.id ORDER BY completed_at DESC NULLS LAST, number DESC
	LIMIT 1) last)
	AS last_sync`

// The agents of tenant $1, of which those that have not called since $2 are
// offline.
const (
	agentColumns = `tenant_id, id, directory_id, provider_id, status, config, password_sealed, last_sync,
		absence_confirmed_until, vanished, created_at, modified_at`
	fromAgents = ` FROM (SELECT a.tenant_id, a.id, a.directory_id, d.provider_id,
		CASE WHEN a.status = 'ONLINE' AND a.called_at < $2 THEN 'OFFLINE' ELSE a.status END AS status,
		a.config, a.password_sealed, ` + lastSync + `, a.absence_confirmed_until, a.vanished,
		a.created_at, a.modified_at
		FROM agents a JOIN directories d ON d.tenant_id = a.tenant_id AND d.id = a.directory_id) agent
		WHERE tenant_id = $1`
)

// Agent returns an agent, or apierr.NotFound. One that has not called since
// onlineSince is offline.
func (s *Store) Agent(ctx context.Context, tenant, agent id.ID, onlineSince time.Time) (Agent, error) {
	return pg.One[Agent](ctx, s.db, `SELECT `+agentColumns+fromAgents+` AND id = $3`, tenant, onlineSince, agent)
}

// ListAgents returns a page of the tenant's agents. Those that have not called
// since onlineSince are offline.
func (s *Store) ListAgents(ctx context.Context, tenant id.ID, onlineSince time.Time,
	query list.Query) (list.Page[Agent], error) {
	return listsql.Select[Agent](ctx, s.db, Agents, query, agentColumns, fromAgents, "id", tenant, onlineSince)
}

// LockAgent reads an agent and locks it for a change. An agent that has not called since
// onlineSince is offline.
func (tx *Tx) LockAgent(ctx context.Context, tenant, agent id.ID, onlineSince time.Time) (Agent, error) {
	return pg.One[Agent](ctx, tx, `SELECT `+agentColumns+fromAgents+` AND id = $3 FOR UPDATE`, tenant, onlineSince,
		agent)
}

// InsertAgent adds the agent of a new directory, which has not called yet.
func (tx *Tx) InsertAgent(ctx context.Context, a Agent) error {
	_, err := pg.Exec(ctx, tx, pg.Insert("agents", `tenant_id, id, directory_id, status, config, password_sealed,
		created_at, modified_at`), pg.Named(a))
	return err
}

// UpdateAgent writes what a client can change.
func (tx *Tx) UpdateAgent(ctx context.Context, a Agent) error {
	return pg.MustChange(ctx, tx, `UPDATE agents SET config = $3, password_sealed = $4, absence_confirmed_until = $5,
		modified_at = $6
		WHERE tenant_id = $1 AND id = $2`, a.TenantID, a.ID, a.Config, a.PasswordSealed, a.AbsenceConfirmedUntil,
		a.ModifiedAt)
}

// RecordAgentCall records that an agent called now. An agent that was offline becomes online only
// where synchronizes is true.
func (tx *Tx) RecordAgentCall(_ context.Context, tenant, agent id.ID, now time.Time, synchronizes bool) {
	tx.Queue(`UPDATE agents SET called_at = $3, status = CASE WHEN status = 'OFFLINE' AND $4 THEN 'ONLINE' ELSE status
		END
		WHERE tenant_id = $1 AND id = $2`, tenant, agent, now, synchronizes)
}

// SetAgentStatus records the status of an agent, and that it called now.
func (tx *Tx) SetAgentStatus(ctx context.Context, tenant, agent id.ID, status string, now time.Time) error {
	return pg.MustChange(ctx, tx, `UPDATE agents SET status = $3, called_at = $4 WHERE tenant_id = $1 AND id = $2`,
		tenant, agent, status, now)
}
