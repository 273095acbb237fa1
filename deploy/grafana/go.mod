module github.com/doorward/doorward/deploy/grafana

go 1.26.0

toolchain go1.26.11

require github.com/grafana/grafana-foundation-sdk/go v0.0.18
