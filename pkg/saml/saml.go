// Package saml reads and writes the messages of SAML 2.0. The product is a service provider (SP) for
// a SAML directory, and an identity provider (IdP) for an application.
//
// As a service provider, it sends AuthnRequests and LogoutRequests (redirect.go), verifies the
// response of an identity provider and its assertion (verifyresponse.go: signature, audience, time),
// with their XML signatures (signature.go), decrypts assertions (encryption.go), and reads
// LogoutResponses (logout.go). As an identity provider, it reads AuthnRequests (request.go) and
// issues responses with assertions (issueresponse.go). keypair.go has keys and certificates,
// certificatecheck.go warns of those that end, metadata.go has the metadata, and document.go the XML
// parser (XXE).
package saml
