-- +goose Up

-- The default reset mail tells the lifetime that the directory has, in the place
-- of the one that new directories have.
UPDATE email_templates SET
    text_body = replace(text_body, 'The link works for 24 hours.', 'The link works for this number of hours: $!{passwordPolicy.resetTokenTtl}.'),
    html_body = replace(html_body, 'The link works for 24 hours.', 'The link works for this number of hours: $!{passwordPolicy.resetTokenTtl}.')
WHERE workflow = 'reset' AND name = 'Default Password Reset Email Template';
