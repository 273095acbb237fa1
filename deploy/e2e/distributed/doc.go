// Package distributed has the tests that start a distributed deployment of their own: they
// kill replicas, Kafka and Redis while accounts register (crash_test.go), and measure how
// long a revoked token is still accepted by each replica (staleness_test.go).
package distributed
