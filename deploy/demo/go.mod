module github.com/doorward/doorward/deploy/demo

go 1.26.0

toolchain go1.26.11

require (
	github.com/coreos/go-oidc/v3 v3.21.0
	github.com/doorward/doorward/pkg v0.0.0
	golang.org/x/oauth2 v0.37.0
)

require github.com/go-jose/go-jose/v4 v4.1.4 // indirect

replace github.com/doorward/doorward/pkg => ../../pkg
