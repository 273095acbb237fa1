package rest

import (
	"github.com/doorward/doorward/pkg/href"
	"github.com/doorward/doorward/pkg/rest"
	"github.com/doorward/doorward/services/directory/store"
)

type schemaView struct {
	rest.Head
	Fields    href.Link `json:"fields"`
	Directory href.Link `json:"directory"`
}

func (v views) schema(s store.Schema) schemaView {
	return schemaView{
		Head:   rest.Head{Href: v.base.To("schemas", s.ID), CreatedAt: rest.Time(s.CreatedAt), ModifiedAt: rest.Time(s.ModifiedAt)},
		Fields: v.base.Link("schemas", s.ID, "fields"), Directory: v.base.Link("directories", s.DirectoryID),
	}
}

type fieldView struct {
	rest.Head
	Name     string    `json:"name"`
	Required bool      `json:"required"`
	Schema   href.Link `json:"schema"`
}

func (v views) field(f store.Field) fieldView {
	return fieldView{
		Head: rest.Head{Href: v.base.To("fields", f.ID), CreatedAt: rest.Time(f.CreatedAt), ModifiedAt: rest.Time(f.ModifiedAt)},
		Name: f.Name, Required: f.Required, Schema: v.base.Link("schemas", f.SchemaID),
	}
}
