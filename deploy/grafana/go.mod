module github.com/doorward/doorward/deploy/grafana

go 1.26.0
