package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
)

// groupAttributes has the attributes by which groups are searched and sorted. Their columns are
// in the directory service, which stores the groups.
var groupAttributes = list.Spec{
	"name":        {},
	"description": {},
	"status":      {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Kind: list.Time},
	"modifiedAt":  {Kind: list.Time},
}
