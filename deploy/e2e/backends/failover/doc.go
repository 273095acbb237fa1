// Package failover kills the servers of a whole deployment one after another while
// clients use it: the primary of PostgreSQL, the master of a Sentinel group, a node
// of a Cluster, and two of three brokers; and it tries poolers. make backends runs
// it; make e2e does not.
package failover
