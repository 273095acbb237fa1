-- +goose Up

-- The default mails greet those who have no name, too, and name the application or
-- the directory. A body that was changed stays as it is.
WITH texts (workflow, old_text, new_text, old_html, new_html) AS (VALUES
    ('verification',
     E'Hello $!{account.givenName}\n\nPlease confirm that this email address is yours by opening this link:\n\n$!{url}\n\nIf you did not register, there is nothing to do.\n',
     E'$!{greeting}\n\nPlease confirm the email address of your account at $!{sender.name} by opening this link:\n\n$!{url}\n\nIf you did not register, there is nothing to do.\n',
     E'<p>Hello $!{account.givenName}</p>\n<p>Please confirm that this email address is yours by opening this link:</p>\n<p><a href="$!{url}">$!{url}</a></p>\n<p>If you did not register, there is nothing to do.</p>\n',
     E'<p>$!{greeting}</p>\n<p>Please confirm the email address of your account at $!{sender.name} by opening this link:</p>\n<p><a href="$!{url}">$!{url}</a></p>\n<p>If you did not register, there is nothing to do.</p>\n'),
    ('verificationSuccess',
     E'Hello $!{account.givenName}\n\nThank you: your email address is confirmed and your account is ready.\n',
     E'$!{greeting}\n\nThank you: your email address is confirmed and your account at $!{sender.name} is ready.\n',
     E'<p>Hello $!{account.givenName}</p>\n<p>Thank you: your email address is confirmed and your account is ready.</p>\n',
     E'<p>$!{greeting}</p>\n<p>Thank you: your email address is confirmed and your account at $!{sender.name} is ready.</p>\n'),
    ('welcome',
     E'Hello $!{account.givenName}\n\nWelcome! Your account is ready. Your user name is $!{account.username}.\n',
     E'$!{greeting}\n\nWelcome to $!{sender.name}! Your account is ready. Your user name is $!{account.username}.\n',
     E'<p>Hello $!{account.givenName}</p>\n<p>Welcome! Your account is ready. Your user name is $!{account.username}.</p>\n',
     E'<p>$!{greeting}</p>\n<p>Welcome to $!{sender.name}! Your account is ready. Your user name is $!{account.username}.</p>\n'),
    ('reset',
     E'Hello $!{account.givenName}\n\nYou can choose a new password by opening this link:\n\n$!{url}\n\nThe link works for $!{passwordPolicy.resetTokenLifetime}. If you did not ask for it, there is nothing to do.\n',
     E'$!{greeting}\n\nYou can choose a new password for your account at $!{sender.name} by opening this link:\n\n$!{url}\n\nThe link works for $!{passwordPolicy.resetTokenLifetime}. If you did not ask for it, there is nothing to do.\n',
     E'<p>Hello $!{account.givenName}</p>\n<p>You can choose a new password by opening this link:</p>\n<p><a href="$!{url}">$!{url}</a></p>\n<p>The link works for $!{passwordPolicy.resetTokenLifetime}. If you did not ask for it, there is nothing to do.</p>\n',
     E'<p>$!{greeting}</p>\n<p>You can choose a new password for your account at $!{sender.name} by opening this link:</p>\n<p><a href="$!{url}">$!{url}</a></p>\n<p>The link works for $!{passwordPolicy.resetTokenLifetime}. If you did not ask for it, there is nothing to do.</p>\n'),
    ('resetSuccess',
     E'Hello $!{account.givenName}\n\nYour password was changed. If that was not you, please tell us at once.\n',
     E'$!{greeting}\n\nThe password of your account at $!{sender.name} was changed. If that was not you, please tell us at once.\n',
     E'<p>Hello $!{account.givenName}</p>\n<p>Your password was changed. If that was not you, please tell us at once.</p>\n',
     E'<p>$!{greeting}</p>\n<p>The password of your account at $!{sender.name} was changed. If that was not you, please tell us at once.</p>\n'))
UPDATE email_templates t SET
    text_body = CASE t.text_body WHEN x.old_text THEN x.new_text ELSE t.text_body END,
    html_body = CASE t.html_body WHEN x.old_html THEN x.new_html ELSE t.html_body END
FROM texts x WHERE t.tenant_id IS NOT NULL AND t.workflow = x.workflow AND (t.text_body = x.old_text OR t.html_body = x.old_html);
