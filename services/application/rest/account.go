package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
)

// accountAttributes has the attributes by which accounts are searched and sorted
// (docs/interface/search.md#searchable-attributes). Their columns are in the directory service,
// which stores the accounts.
var accountAttributes = list.Spec{
	"username":   {Login: true},
	"email":      {Login: true},
	"givenName":  {},
	"middleName": {},
	"surname":    {},
	"locale":     {},
	"status": {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled, directoryapi.Unverified,
		directoryapi.Locked}},
	"createdAt":          {Kind: list.Time},
	"modifiedAt":         {Kind: list.Time},
	"passwordModifiedAt": {Kind: list.Time},

	"fullName":                {NoFind: true},
	"emailVerificationStatus": {Kind: list.Enum, NoFind: true},

	list.AfterKey: list.After(""),
}
