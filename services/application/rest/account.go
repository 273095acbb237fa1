package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
)

// accountAttributes are those that accounts are searched and sorted by
// (docs/interface/search.md#searchable-attributes). The directory service, which
// holds the accounts, knows their columns.
var accountAttributes = list.Spec{
	"username":   {},
	"email":      {},
	"givenName":  {},
	"middleName": {},
	"surname":    {},
	"status": {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified,
		directoryapi.Locked}},
	"createdAt":          {Kind: list.Time},
	"modifiedAt":         {Kind: list.Time},
	"passwordModifiedAt": {Kind: list.Time},

	"fullName":                {NoFind: true},
	"emailVerificationStatus": {Kind: list.Enum, NoFind: true},
}
