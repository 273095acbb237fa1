// Package backup tries docs/backup.md: a deployment is restored from a base backup
// and the archived log as it was at a time, with the scripts of that page, and its
// logins, tokens, keys and mails are right afterwards. make backup-drill runs it.
package backup
