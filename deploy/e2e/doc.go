// Package e2e has the end-to-end tests: they test the whole product as a client does, over HTTPS with an
// API key and a CA file. It imports the Go client and packages for tests, but no package of a service
// or of the gateway.
//
// This package is the client that the scenarios (acceptance tests) use; the scenarios are
// its test files, and they run against any deployment. Package harness starts a
// deployment. Further packages have the tests that need processes of their own:
// standalone (crash, stop, several side by side), distributed (replicas and the broker
// killed under load), previous (upgrade), backup, backends, connectors and faults.
package e2e
