package store

import (
	"context"

	"github.com/doorward/doorward/pkg/api/directoryapi"
	"github.com/doorward/doorward/pkg/id"
	"github.com/doorward/doorward/pkg/pg"
)

const templateColumns = `tenant_id, id, directory_id, workflow, name, description, from_name, from_email_address, subject,
	mime_type, text_body, html_body, link_base_url, created_at, modified_at`

// Template gives the template of a directory's workflow, or apierr.NotFound.
func (s *Store) Template(ctx context.Context, tenant, directory id.ID, workflow directoryapi.Workflow) (directoryapi.EmailTemplate, error) {
	return pg.One[directoryapi.EmailTemplate](ctx, s.db, `SELECT `+templateColumns+` FROM email_templates
		WHERE tenant_id = $1 AND directory_id = $2 AND workflow = $3`, tenant, directory, workflow)
}

// InsertTemplate adds the template of a new directory's workflow.
func (tx *Tx) InsertTemplate(ctx context.Context, t directoryapi.EmailTemplate) error {
	_, err := pg.Exec(ctx, tx, `INSERT INTO email_templates (`+templateColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		t.TenantID, t.ID, t.DirectoryID, t.Workflow, t.Name, t.Description, t.FromName, t.FromEmailAddress, t.Subject,
		t.MimeType, t.TextBody, t.HTMLBody, t.LinkBaseURL, t.CreatedAt, t.ModifiedAt)
	return err
}
