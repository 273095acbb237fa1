// Package e2e has the end-to-end tests: they test the whole product as a client does, over HTTPS with an
// API key and a CA file. It imports the Go client and packages for tests, but no package of a service
// or of the gateway.
//
// The test files are the scenarios, which run against any deployment; the other files are the client
// that they use. Package harness starts a deployment. Further packages test what needs processes of
// their own, such as standalone (crash, stop, several processes on one machine) and distributed
// (replicas and the broker killed under load).
package e2e
