// Package saml reads and writes the messages of SAML 2.0. The service is a service provider
// for a directory, and an identity provider for an application.
//
// login.go verifies a response of an identity provider and its assertion, signature.go an XML
// signature, encryption.go decrypts an assertion. response.go writes what the service issues,
// request.go and redirect.go read and write requests, logout.go those of single logout.
// keypair.go and metadata.go are what the other parties are shown.
package saml
