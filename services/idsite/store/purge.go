package store

import "github.com/doorward/doorward/pkg/purge/purgesql"

// Expiring are the rows of a table that are purged by their age.
type Expiring = purgesql.Rows
