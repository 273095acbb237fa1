package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/list"
)

// groupAttributes are those that groups are searched and sorted by. The
// directory service, which holds the groups, knows their columns.
var groupAttributes = list.Spec{
	"name":        {},
	"description": {},
	"status":      {Kind: list.Enum, Values: []string{directoryapi.Enabled, directoryapi.Disabled}},
	"createdAt":   {Kind: list.Time},
	"modifiedAt":  {Kind: list.Time},
}
