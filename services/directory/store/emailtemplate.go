package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/list"
	"github.com/doorward/doorward/pkg/list/listsql"
	"github.com/doorward/doorward/pkg/pg"
)

const templateColumns = `tenant_id, id, directory_id, workflow, name, description, from_name, from_email_address,
	subject, mime_type, text_body, html_body, link_base_url, unchanged, created_at, modified_at`

// Templates are searched and sorted by these attributes.
var Templates = list.Spec{
	"name":             {Column: "name", NoFind: true},
	"description":      {Column: "description", NoFind: true},
	"fromName":         {Column: "from_name", NoFind: true},
	"fromEmailAddress": {Column: "from_email_address", NoFind: true},
	"subject":          {Column: "subject", NoFind: true},
	"mimeType":         {Column: "mime_type", NoFind: true},
	"textBody":         {Column: "text_body", NoFind: true},
	"htmlBody":         {Column: "html_body", NoFind: true},
	"createdAt":        {Column: "created_at", Kind: list.Time},
	"modifiedAt":       {Column: "modified_at", Kind: list.Time},
}

// Template returns the template of a directory's workflow, or apierr.NotFound.
func (s *Store) Template(ctx context.Context, tenant, directory id.ID,
	workflow directoryapi.Workflow) (directoryapi.EmailTemplate, error) {
	return pg.One[directoryapi.EmailTemplate](ctx, s.db, `SELECT `+templateColumns+` FROM email_templates
		WHERE tenant_id = $1 AND directory_id = $2 AND workflow = $3`, tenant, directory, workflow)
}

// TemplateByID returns a template, or apierr.NotFound.
func (s *Store) TemplateByID(ctx context.Context, tenant, template id.ID) (directoryapi.EmailTemplate, error) {
	return pg.One[directoryapi.EmailTemplate](ctx, s.db, `SELECT `+templateColumns+` FROM email_templates
		WHERE tenant_id = $1 AND id = $2`, tenant, template)
}

// ListTemplates returns a page of the templates of a directory's workflow, of
// which there is one.
func (s *Store) ListTemplates(ctx context.Context, tenant, directory id.ID, workflow directoryapi.Workflow,
	query list.Query) (list.Page[directoryapi.EmailTemplate], error) {
	return listsql.Select[directoryapi.EmailTemplate](ctx, s.db, Templates, query, templateColumns,
		`FROM email_templates WHERE tenant_id = $1 AND directory_id = $2 AND workflow = $3`, "id", tenant, directory,
		workflow)
}

// LockTemplate reads a template and locks it for a change.
func (tx *Tx) LockTemplate(ctx context.Context, tenant, template id.ID) (directoryapi.EmailTemplate, error) {
	return pg.One[directoryapi.EmailTemplate](ctx, tx, `SELECT `+templateColumns+` FROM email_templates
		WHERE tenant_id = $1 AND id = $2 FOR UPDATE`, tenant, template)
}

// UpdateTemplate updates what a client can change.
func (tx *Tx) UpdateTemplate(ctx context.Context, t directoryapi.EmailTemplate) error {
	return pg.MustChange(ctx, tx,
		`UPDATE email_templates SET `+pg.Set(`name, description, from_name, from_email_address,
		subject, mime_type, text_body, html_body, link_base_url, modified_at, unchanged`)+`
		WHERE tenant_id = @tenant_id AND id = @id`, pg.Named(t))
}

func insertTemplate(batch *pg.Batch, t directoryapi.EmailTemplate) {
	batch.Queue(pg.Insert("email_templates", templateColumns), pg.Named(t))
}
