// Package e2e tries the whole product from outside, as a stranger would: over
// HTTPS, with an API key and a CA file, and nothing else. It knows no package
// of the product.
//
// This package is the client that the scenarios (acceptance tests) use; the scenarios are
// its test files, and they run against any deployment. Package harness starts a
// deployment. Further packages have the tests that need processes of their own:
// standalone (crash, stop, several side by side), distributed (replicas and the broker
// killed under load), shards, previous (upgrade), backup, backends, connectors and faults.
package e2e
