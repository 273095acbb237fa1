// Package backup tests docs/backup.md: a deployment is restored from a base backup and the
// archived log as it was at a time (point-in-time recovery), with the scripts of that
// page, and its logins, tokens, API keys and mails are correct afterwards. make backup-drill runs it.
package backup
