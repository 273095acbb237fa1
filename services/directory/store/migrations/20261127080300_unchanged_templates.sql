-- +goose Up

-- A template whose texts no tenant has changed: its mail is the deployment's, in the user's language.
ALTER TABLE email_templates ADD COLUMN unchanged boolean NOT NULL DEFAULT false;
UPDATE email_templates SET unchanged = modified_at = created_at;

-- The mail to the owner of an email with which somebody registers. Its texts are those of the release.
INSERT INTO email_templates (tenant_id, id, directory_id, workflow, name, description, subject, mime_type, text_body, html_body,
    unchanged, created_at, modified_at)
SELECT tenant_id, gen_random_uuid(), directory_id, 'existingAccount', 'Default Existing Account Email Template',
    'Tells a user who registers again that there is an account.', '', 'text/plain', '', '', true, created_at, created_at
FROM email_templates WHERE workflow = 'verification' ON CONFLICT DO NOTHING;
