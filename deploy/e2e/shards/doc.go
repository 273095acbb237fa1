// Package shards moves a tenant between two databases of a distributed deployment
// while clients use it.
package shards
