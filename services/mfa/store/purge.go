package store

import (
	"github.com/doorward/doorward/pkg/counter"
	"github.com/doorward/doorward/pkg/purge/purgesql"
)

// Expiring are the rows of a table that are purged by their age.
type Expiring = purgesql.Rows

// EndedCounts are the counters whose window has ended, for the purge.
var EndedCounts = counter.Ended
