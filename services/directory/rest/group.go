package rest

import "github.com/doorward/doorward/pkg/api/directoryapi"

func (v views) group(g directoryapi.Group) directoryapi.GroupView { return g.View(v.base) }
