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
		Head:   rest.NewHead(v.Base.To("schemas", s.ID), s.CreatedAt, s.ModifiedAt),
		Fields: v.Base.Link("schemas", s.ID, "fields"), Directory: v.Base.Link("directories", s.DirectoryID),
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
		Head: rest.NewHead(v.Base.To("fields", f.ID), f.CreatedAt, f.ModifiedAt),
		Name: f.Name, Required: f.Required, Schema: v.Base.Link("schemas", f.SchemaID),
	}
}
