# Everything here works on a clean clone with Go, make and a Debian or Ubuntu
# package manager, as root and as an ordinary user. Binaries and what else is
# made lie in .work; standalone keeps its data in .doorward.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The modules of the workspace. deploy/e2e starts the whole product, so it has
# a target of its own.
MODULES := $(shell sed -nE 's:^[[:space:]]+\./::p' go.work)
PARTS   := $(filter-out deploy/e2e,$(MODULES))
# What of the workspace has Go files.
packages = $(addprefix ./,$(addsuffix /...,$(1)))

# What e2e-chart runs of the scenarios: CHARTRUN=. for all of them.
CHARTRUN ?= ^Test(AnApplicationWithADirectoryLogsItsAccountsIn|TokensFromGrant|ANewAccountProves|AHostedLogin$$|AnAccountEnrols)

# The processes of both shapes, and the folder that they are compiled into.
BIN      := $(CURDIR)/.work/bin
COMMANDS := $(addprefix ./,$(wildcard gateway/cmd/* services/*/cmd/* deploy/mailbox/cmd/* deploy/standalone/cmd/* deploy/demo))

SETUP := deploy/setup/setup.sh
TOOL   = cd .ci/tools && GOWORK=off go tool -n

# Time for which each fuzz function runs, arguments of the load generator, and
# arguments of every go test: make test ARGS='-run Login'.
FUZZTIME ?= 10s
REQUESTS ?= 20000
BENCH    ?=
LOAD     ?= noisy
ARGS     ?=
# Time for which make faults breaks parts, and the number that draws which.
FAULTS_FOR  ?= 15m
FAULTS_SEED ?=

##@ Use

.PHONY: help
help: ## explain the targets
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z0-9-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## start standalone, everything in one process, on https://localhost:8443
	@$(SETUP) postgresql
	@.ci/build ./deploy/standalone/cmd/doorward
	@exec .work/bin/doorward

.PHONY: demo
demo: ## start standalone and two applications that sign in through its pages
	@$(SETUP) postgresql
	@.ci/build ./deploy/standalone/cmd/doorward ./deploy/demo
	@exec .work/bin/demo

.PHONY: up
up: ## start the distributed shape in containers, on https://localhost:8443
	@deploy/docker/compose.sh up

.PHONY: down
down: ## stop the containers; their data stays
	@deploy/docker/compose.sh down

.PHONY: observe
observe: ## start Prometheus, and Grafana where it is installed, for a standalone on this machine
	@$(SETUP) prometheus
	@deploy/prometheus/observe.sh

.PHONY: agent
agent: ## build the directory agent for all systems, and its archive .work/agent.zip
	@.ci/agent

##@ Release

.PHONY: release
release: ## make dist/VERSION of the commit that is checked out: VERSION=1.0.0 KEY=cosign.key
	@KEY=$(KEY) deploy/release/release.sh $(VERSION)

.PHONY: notice
notice: ## write NOTICE, the licences of what the programs contain
	@cd deploy/release && GOWORK=off go build -o $(BIN)/release .
	@$(BIN)/release notice > NOTICE

##@ Prove

.PHONY: test
test: ## test all modules on a private PostgreSQL; a skipped test is a failure
	@$(SETUP) postgresql chromium xmlsec1
	@.ci/test $(ARGS) $(call packages,$(PARTS))

.PHONY: race
race: ## run the same tests under the race detector
	@$(SETUP) postgresql chromium xmlsec1
	@.ci/test -race $(ARGS) $(call packages,$(PARTS))

.PHONY: fuzz
fuzz: ## fuzz every parser of outside input for FUZZTIME (10s)
	@$(SETUP) postgresql
	@.ci/fuzz $(FUZZTIME)

.PHONY: fuzz-api
fuzz-api: ## send REQUESTS (20000) made up from the description of the interface to a standalone
	@$(SETUP) postgresql python
	@.ci/fuzzapi $(REQUESTS)

.PHONY: e2e
e2e: ## try both shapes end to end, with a real Redis and Kafka, the distributed one with TLS between its processes
	@$(SETUP) postgresql redis kafka chromium prometheus axe-core jq python node
	@go build -o $(BIN)/ $(COMMANDS)
	@DOORWARD_E2E_BIN=$(BIN) .ci/test -count 1 -p 2 -timeout 30m $(ARGS) $$(go list ./deploy/e2e/... | grep -vE '/(connectors|previous|backup|failover)$$')
	@DOORWARD_E2E_BIN=$(BIN) DOORWARD_E2E_SHAPE=distributed .ci/test -count 1 -timeout 30m $(ARGS) ./deploy/e2e

.PHONY: e2e-chart
e2e-chart: ## try login, tokens, mails and a hosted page on processes started from what the Helm chart renders
	@$(SETUP) postgresql redis kafka
	@go build -o $(BIN)/ $(COMMANDS)
	@DOORWARD_E2E_BIN=$(BIN) DOORWARD_E2E_SHAPE=chart .ci/test -count 1 -timeout 15m $(ARGS) -run '$(CHARTRUN)' ./deploy/e2e

.PHONY: e2e-connectors
e2e-connectors: ## try both shapes with Keycloak, node-oidc-provider, pysaml2, slapd, Samba and the relying parties of docs/connect
	@$(SETUP) postgresql redis kafka chromium connectors
	@go build -o $(BIN)/ $(COMMANDS)
	@DOORWARD_E2E_BIN=$(BIN) .ci/test -count 1 -timeout 25m $(ARGS) ./deploy/e2e/connectors

.PHONY: screenshots
screenshots: ## photograph every hosted screen: light, dark, telephone, all languages, into .work/screenshots
	@$(SETUP) postgresql chromium axe-core
	@DOORWARD_SCREENSHOTS=$(CURDIR)/.work/screenshots .ci/test -count 1 -timeout 15m -run EveryScreen ./deploy/e2e

.PHONY: kill
kill: ## kill notification every second of 10,000 mails: none is lost, and it prints how many came twice
	@$(SETUP) postgresql
	@NOTIFICATION_KILL_MAILS=10000 .ci/test -count 1 -run KilledEverySecond $(ARGS) ./services/notification/app

.PHONY: proof-rotation
proof-rotation: ## issue 10,000 tokens over two replicas while the signing key changes: none is refused
	@$(SETUP) postgresql
	@ROTATION_TOKENS=10000 go test -count 1 -v -run TestKeysRotateUnderLoad $(ARGS) ./services/oauth/openid

.PHONY: upgrade
upgrade: ## replace the release before by this one and back under load, process by process: no request fails
	@$(SETUP) postgresql redis kafka
	@go test -count 1 -v -timeout 60m $(ARGS) ./deploy/e2e/previous

.PHONY: backup-drill
backup-drill: ## restore a deployment as it was at a given time, and switch to a second region, as docs/backup.md says
	@$(SETUP) postgresql redis kafka
	@go test -count 1 -v -timeout 30m $(ARGS) ./deploy/e2e/backup

.PHONY: backends
backends: ## try each form of PostgreSQL, PgBouncer, Redis and Kafka, and end their servers while users log in
	@$(SETUP) postgresql redis kafka pgbouncer
	@go build -o $(BIN)/ $(COMMANDS)
	@DOORWARD_E2E_BIN=$(BIN) go test -count 1 -v -p 1 -timeout 30m $(ARGS) ./deploy/e2e/backends/...

.PHONY: faults
faults: ## break one part after another of a loaded deployment for FAULTS_FOR (15m); FAULTS_SEED repeats a run
	@$(SETUP) postgresql redis kafka
	@FAULTS_FOR=$(FAULTS_FOR) FAULTS_SEED=$(FAULTS_SEED) go test -count 1 -v -timeout 0 -run EveryFault $(ARGS) ./deploy/e2e/faults

.PHONY: bench
bench: ## measure against a bare handler in the same run; BENCH='arguments'
	@$(SETUP) postgresql
	@go run ./deploy/bench $(BENCH)

.PHONY: load
load: ## put the load of many tenants on it: LOAD=noisy, tenants or soak, LOAD_FOR=6h, LOAD_ARGS='-shape distributed'
	@$(SETUP) postgresql redis kafka
	@go run ./deploy/e2e/load $(LOAD) $(if $(LOAD_FOR),-for $(LOAD_FOR)) $(LOAD_ARGS)

##@ Change

.PHONY: check
check: format scripts modules migrations images chart alerts lint ## the checks of the code, from format to lint, cheapest first

.PHONY: format
format: ## gofmt leaves nothing to do
	@test -z "$$(gofmt -l pkg gateway services deploy .ci | tee /dev/stderr)" || { echo 'format: run gofmt -w on these files' >&2; exit 1; }

.PHONY: scripts
scripts: ## shellcheck finds nothing in the scripts
	@.ci/scripts

.PHONY: modules
modules: ## each module stands alone and is tidy
	@.ci/modules $(MODULES)

.PHONY: migrations
migrations: ## squawk finds no migration that takes a lock which stops logins
	@$(SETUP) python
	@.ci/migrations

.PHONY: vulnerabilities
vulnerabilities: ## no process contains a function with a known vulnerability
	@.ci/vulnerabilities

.PHONY: images
images: ## images are the same when made twice; compose.yaml and the Dockerfile fit the processes
	@.ci/images/check

.PHONY: chart
chart: ## the Helm chart renders what the processes know, and lets through what they call
	@.ci/chart/check

.PHONY: alerts
alerts: ## each alert fires when it should and is silent when it should not
	@$(SETUP) prometheus
	@promtool check rules deploy/helm/doorward/alerts.yml
	@promtool test rules deploy/prometheus/alerts_test.yml

.PHONY: collector
collector: ## a collector with deploy/otel/collector.yaml keeps errors and slow requests
	@cd .ci/collector && GOWORK=off go test -count 1 $(ARGS) .

.PHONY: lint
lint: ## golangci-lint, with each library in its one home
	@$$($(TOOL) golangci-lint) run $(ARGS) $(call packages,$(MODULES))

.PHONY: openapi
openapi: ## spectral finds nothing in the description of the interface
	@.ci/openapi

.PHONY: generate
generate: ## write *.gen.go: the clients of the contracts and of the interface
	@go generate ./pkg/client ./pkg/api/...

.PHONY: generated
generated: ## what make generate writes is current
	@.ci/generated

.PHONY: tidy
tidy: ## fix what format and modules find
	@gofmt -w pkg gateway services deploy .ci
	@go work sync
	@for module in $(MODULES); do (cd $$module && GOWORK=off go mod tidy); done
