package sizeapi

import (
	"github.com/doorward/doorward/pkg/api/usageapi"
	"github.com/doorward/doorward/pkg/id"
)

// Figures are what operators are shown of a tenant: its owner, what the services store of it, and what they have
// counted in 30 days.
type Figures struct {
	Owner        *Owner `json:"owner"`
	Accounts     int64  `json:"accounts"`
	Applications int64  `json:"applications"`
	Directories  int64  `json:"directories"`
	Bytes        int64  `json:"bytes"`
	Logins       int64  `json:"logins"`
	FailedLogins int64  `json:"failedLogins"`
	Mails        int64  `json:"mails"`
	Texts        int64  `json:"texts"`
}

// Owner is the account that owns a tenant.
type Owner struct {
	ID    id.ID  `json:"id"`
	Email string `json:"email"`
}

// SetUsage sets what was counted.
func (f *Figures) SetUsage(used usageapi.Count) {
	f.Logins, f.FailedLogins, f.Mails, f.Texts = used.Logins, used.FailedLogins, used.Mails, used.Texts
}

// AddSize adds what a service stores.
func (f *Figures) AddSize(size Size) {
	f.Bytes += size.Bytes
	f.Accounts += size.Rows["accounts"]
	f.Applications += size.Rows["applications"]
	f.Directories += size.Rows["directories"]
}
