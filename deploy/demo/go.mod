module github.com/doorward/doorward/deploy/demo

go 1.26.0

toolchain go1.26.11

require github.com/doorward/doorward/pkg v0.0.0

replace github.com/doorward/doorward/pkg => ../../pkg
