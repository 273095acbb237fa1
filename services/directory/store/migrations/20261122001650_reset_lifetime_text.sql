-- +goose Up

-- The default reset mail says "24 hours" or "1 hour" instead of a bare number.
UPDATE email_templates SET
    text_body = replace(text_body, 'The link works for this number of hours: $!{passwordPolicy.resetTokenTtl}.', 'The link works for $!{passwordPolicy.resetTokenLifetime}.'),
    html_body = replace(html_body, 'The link works for this number of hours: $!{passwordPolicy.resetTokenTtl}.', 'The link works for $!{passwordPolicy.resetTokenLifetime}.')
WHERE workflow = 'reset' AND name = 'Default Password Reset Email Template';
