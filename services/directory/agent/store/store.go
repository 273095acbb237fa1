// Package store has the SQL about the work of agents: the syncs that they send, the entries that these refused, and
// the password checks for which logins wait. Agents, their keys, and the accounts and groups that a sync writes are in
// services/directory/store, whose transactions these functions take part in.
package store

import "github.com/doorward/doorward/pkg/pg"

// Store reads the tables of the directory service.
type Store struct{ db *pg.DB }

// New makes the store.
func New(db *pg.DB) Store { return Store{db} }
