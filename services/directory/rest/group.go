package rest

import (
	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/rest/directoryview"
)

func (v views) group(g directoryapi.Group) directoryview.GroupView {
	return directoryview.Group(v.base, g)
}
