package main

import "strings"

// services are the names in the metrics, doorward_<service>_request_duration_seconds.
var services = []string{"gateway", "directory", "application", "oauth", "mfa", "notification", "idsite"}

// perService is one query for each service, in which SERVICE stands for its name.
func perService(expression string) (queries []query) {
	for _, service := range services {
		queries = append(queries, query{strings.ReplaceAll(expression, "SERVICE", service), service})
	}
	return queries
}

// withoutLongPolls selects all requests but the long polls of directory agents, whose
// latency is the time until the next login.
const withoutLongPolls = `{route!="/v1/agents/:id/authentications"}`

// autoscalers selects the autoscalers of the chosen releases: the series of kube-state-metrics have no label of a release.
const autoscalers = `namespace=~"$namespace",` +
	`horizontalpodautoscaler=~"$release-(gateway|directory|application|oauth|mfa|notification|idsite)"`

// oneQuery is the queries of a panel with one.
func oneQuery(expression, legend string) []query { return []query{{expression, legend}} }

var dashboards = []dashboard{
	{
		name: "overview", title: "Doorward / Overview",
		rows: []row{
			{"Objectives", []panel{
				{title: "Requests that did not fail, 6 hours", unit: "percentunit", kind: "stat", description: "The objective is 99.9 %.",
					runbook: "error-budget-burns-slowly.md", threshold: 0.994, fallsBelow: true,
					queries: oneQuery(`1 - doorward:gateway_errors:ratio_rate6h`, "answered {{release}}")},
				{title: "Requests within a second, 6 hours", unit: "percentunit", kind: "stat", description: "The objective is 99 %.",
					runbook: "slow-requests-burn-slowly.md", threshold: 0.94, fallsBelow: true,
					queries: oneQuery(`1 - doorward:gateway_slow:ratio_rate6h`, "in time {{release}}")},
				{title: "Rate at which error budgets burn", unit: "short",
					description: "1 uses up the budget of 30 days in 30 days. Alerts fire at 14.4 and at 6.",
					runbook:     "error-budget-burns-fast.md", threshold: 14.4,
					queries: []query{
						{`doorward:gateway_errors:ratio_rate1h / 0.001`, "errors, 1 hour {{release}}"},
						{`doorward:gateway_slow:ratio_rate1h / 0.01`, "slow requests, 1 hour {{release}}"},
						{`doorward:logins_lost:ratio_rate1h / 0.001`, "logins, 1 hour {{release}}"},
					}},
			}},
			{"Processes", []panel{
				{title: "Processes by version", unit: "short",
					description: "Two versions while an update goes on.",
					queries:     oneQuery(`count by (version) (doorward_build_info)`, "{{version}}")},
				{title: "Time until a certificate ends", unit: "s", kind: "stat",
					description: "The alert fires 14 days before.",
					runbook:     "certificate-ends.md", threshold: 1209600, fallsBelow: true,
					queries: oneQuery(`min by (process) (doorward_certificate_not_after_timestamp_seconds) - time()`, "{{process}}")},
				{title: "Processes that answer Prometheus", unit: "short", kind: "stat",
					description: "1, or 0 where a process that Prometheus knows does not answer.",
					runbook:     "process-down.md", threshold: 1, fallsBelow: true,
					queries: oneQuery(`min by (instance) (up{job=~"doorward.*"})`, "{{instance}}")},
				{title: "Restarts in half an hour", unit: "short",
					description: "The alert fires after the third.",
					runbook:     "process-restarts.md", threshold: 3,
					queries: oneQuery(`changes(process_start_time_seconds{job=~"doorward.*"}[30m])`, "{{instance}}")},
				{title: "Replicas of those that the autoscaler may make", unit: "percentunit",
					description: "By kube-state-metrics, which a cluster alone has. At 1 more load makes no more replicas.",
					runbook:     "autoscaler-at-its-end.md", threshold: 1,
					queries: oneQuery(
						`max by (namespace, horizontalpodautoscaler) (kube_horizontalpodautoscaler_status_desired_replicas{`+autoscalers+
							`} / kube_horizontalpodautoscaler_spec_max_replicas)`, "{{horizontalpodautoscaler}}")},
				{title: "Difference of the clocks of processes and PostgreSQL", unit: "s",
					description: "From five seconds on tokens are refused.",
					runbook:     "clock-skew.md", threshold: 1,
					queries: oneQuery(`max by (schema) (doorward_database_clock_difference_seconds)`, "{{schema}}")},
			}},
			{"Traffic", []panel{
				{title: "Requests by service", unit: "reqps",
					description: "What clients send is the line of the gateway; the others are what it and the services send on.",
					queries:     perService(`sum(rate(doorward_SERVICE_request_duration_seconds_count[$__rate_interval]))`)},
				{title: "Answers with status 5xx by service", unit: "reqps",
					description: "A service that is not the gateway shows where the failure is. The alert looks at the share of the gateway's.",
					queries:     perService(`sum(rate(doorward_SERVICE_request_duration_seconds_count{status=~"5.."}[$__rate_interval])) or vector(0)`)},
				{title: "Latency by service, 99th percentile", unit: "s",
					description: "The slowest of a hundred requests. The alert looks at the share of the gateway's that take more than a second.",
					runbook:     "slow-requests-burn-fast.md", threshold: 1,
					queries: perService(`histogram_quantile(0.99, sum by (le) (` +
						`rate(doorward_SERVICE_request_duration_seconds_bucket` + withoutLongPolls + `[$__rate_interval])))`)},
				{title: "Slowest routes, 99th percentile", unit: "s",
					description: "The ten routes whose slowest of a hundred requests take longest.",
					queries: oneQuery(
						`topk(10, histogram_quantile(0.99, sum by (le, route) (`+
							`rate(doorward_gateway_request_duration_seconds_bucket`+withoutLongPolls+`[$__rate_interval]))))`,
						"{{route}}")},
				{title: "Answers by status", unit: "reqps",
					description: "401 and 403 are mostly wrong keys and logins, 429 limits, 5xx our faults.",
					queries:     oneQuery(`sum by (status) (rate(doorward_gateway_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
				{title: "Refused by the gateway", unit: "reqps",
					description: "The alert fires from one a second on, where they are more than one in twenty requests.",
					runbook:     "requests-refused.md", threshold: 1,
					queries: oneQuery(`sum by (reason) (rate(doorward_gateway_refused_total[$__rate_interval]))`, "{{reason}}")},
			}},
			{"Saturation", []panel{
				{title: "Requests in flight", unit: "short",
					description: "Requests that a service has begun and not answered. The gateway's autoscaler can follow them.",
					queries:     perService(`sum(doorward_SERVICE_requests_in_flight)`)},
				{title: "Passwords that wait for a worker", unit: "short",
					description: "From 128 on logins are refused with 503.",
					runbook:     "password-queue-long.md", threshold: 64,
					queries: oneQuery(`max(doorward_directory_password_queue_length)`, "queue")},
				{title: "Database connections in use", unit: "percentunit",
					description: "One tenant gets three quarters of a pool at most.",
					runbook:     "database-pool-used-up.md", threshold: 0.7,
					queries: oneQuery(
						`max by (schema) (doorward_db_connections{state="used"} / ignoring (state) doorward_db_connections{state="max"})`, "{{schema}}")},
				{title: "Consumer lag", unit: "short",
					description: "Events that a service has still to handle.",
					runbook:     "consumer-lag.md", threshold: 1000,
					queries: oneQuery(`sum by (group) (doorward_events_lag)`, "{{group}}")},
				{title: "Age of the oldest event in an outbox", unit: "s",
					description: "Events wait here while Kafka is away: mails and revocations are late.",
					runbook:     "outbox-old.md", threshold: 60,
					queries: oneQuery(`max by (topic) (doorward_events_outbox_age_seconds)`, "{{topic}}")},
				{title: "Processor time", unit: "short",
					description: "Processors that each process uses. A flat line at its limit is what saturates.",
					queries:     oneQuery(`sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))`, "{{instance}}")},
				{title: "Memory", unit: "bytes",
					description: "Resident memory of each process.",
					queries:     oneQuery(`process_resident_memory_bytes`, "{{instance}}")},
				{title: "Goroutines", unit: "short",
					description: "A number that grows for hours is a leak.",
					queries:     oneQuery(`go_goroutines`, "{{instance}}")},
			}},
		},
	},
	{
		name: "logins", title: "Doorward / Logins",
		rows: []row{
			{"Logins", []panel{
				{title: "Logins that were not lost, 6 hours", unit: "percentunit", kind: "stat",
					description: "The objective is 99.9 %: of those that succeeded, and those that failed by our fault.",
					runbook:     "login-budget-burns.md", threshold: 0.994, fallsBelow: true,
					queries: oneQuery(`1 - doorward:logins_lost:ratio_rate6h`, "not lost {{release}}")},
				{title: "Logins by result", unit: "reqps",
					description: "Success, and why others were refused.",
					queries:     oneQuery(`sum by (result) (rate(doorward_application_logins_total[$__rate_interval]))`, "{{result}}")},
				{title: "Logins that succeed", unit: "percentunit",
					description: "The alert fires where more than half fail, and more than one a second.",
					runbook:     "logins-under-attack.md", threshold: 0.5, fallsBelow: true,
					queries: oneQuery(
						`sum(rate(doorward_application_logins_total{result="success"}[$__rate_interval]))`+
							` / sum(rate(doorward_application_logins_total[$__rate_interval]))`,
						"success")},
				{title: "Logins that a limit refused", unit: "reqps",
					description: "By the limit: of a login name at an address, of a login name, of an address, of an application.",
					queries: oneQuery(
						`sum by (result) (rate(doorward_application_logins_total{result=~".*_limit"}[$__rate_interval])) or vector(0)`, "{{result}}")},
				{title: "Token requests by grant and result", unit: "reqps",
					description: "Whose tokens are refused, and how tokens are asked for.",
					queries:     oneQuery(`sum by (grant, result) (rate(doorward_oauth_grants_total[$__rate_interval]))`, "{{grant}} {{result}}")},
				{title: "Time that a password waits and takes, 99th percentile", unit: "s",
					description: "A wait that exceeds the hash means too few processors for the directory service.",
					queries: []query{
						{`histogram_quantile(0.99, sum by (le) (rate(doorward_directory_password_wait_seconds_bucket[$__rate_interval])))`, "wait"},
						{`histogram_quantile(0.99, sum by (le) (rate(doorward_directory_password_hash_seconds_bucket[$__rate_interval])))`, "hash"},
					}},
				{title: "Hosted pages by status", unit: "reqps",
					description: "The pages of login, registration and consent, and the Client API.",
					queries:     oneQuery(`sum by (status) (rate(doorward_idsite_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
			}},
			{"Second factors and messages", []panel{
				{title: "Requests for second factors by status", unit: "reqps",
					description: "Enrolments and challenges; 4xx are mostly wrong codes.",
					queries:     oneQuery(`sum by (status) (rate(doorward_mfa_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
				{title: "Mails by workflow and result", unit: "reqps",
					description: "Postponed ones are tried again; failed ones are not.",
					queries: oneQuery(
						`sum by (workflow, result) (rate(doorward_notification_mails_total[$__rate_interval]))`,
						"{{workflow}} {{result}}")},
				{title: "Text messages by result", unit: "reqps",
					description: "Postponed ones are tried again; the others but sent are not.",
					queries:     oneQuery(`sum by (result) (rate(doorward_notification_texts_total[$__rate_interval])) or vector(0)`, "{{result}}")},
				{title: "Attempts to send a mail that fail", unit: "percentunit",
					description: "Of the last 15 minutes; the alert also wants five failures.",
					runbook:     "mails-fail.md", threshold: 0.5,
					queries: oneQuery(
						`(sum(rate(doorward_notification_mails_total{result=~"failed|postponed"}[15m])) or vector(0))`+
							` / sum(rate(doorward_notification_mails_total[15m]))`,
						"failed or postponed")},
				{title: "Attempts to send a text message that fail", unit: "percentunit",
					description: "Of the last 15 minutes; the alert also wants five failures.",
					runbook:     "texts-fail.md", threshold: 0.5,
					queries: oneQuery(
						`(sum(rate(doorward_notification_texts_total{result=~"failed|broken|lost|postponed"}[15m])) or vector(0))`+
							` / sum(rate(doorward_notification_texts_total[15m]))`,
						"fail")},
				{title: "Age of the oldest delivery that waits", unit: "s",
					description: "Of a mail or a text message.",
					runbook:     "mails-wait.md", threshold: 3600,
					queries: oneQuery(`max(doorward_notification_oldest_delivery_seconds)`, "age")},
				{title: "Deliveries that wait", unit: "short",
					description: "Mails and text messages that are not done.",
					runbook:     "mails-wait.md", threshold: 500,
					queries: oneQuery(`max(doorward_notification_deliveries_waiting)`, "waiting")},
				{title: "Mail servers of tenants whose circuit breaker is open", unit: "short",
					description: "Their mails go through the server of the deployment.",
					runbook:     "mail-circuit-open.md", threshold: 1,
					queries: oneQuery(`max(doorward_notification_smtp_circuit_open)`, "open")},
			}},
		},
	},
	{
		name: "data", title: "Doorward / Data",
		rows: []row{
			{"PostgreSQL", []panel{
				{title: "Schemas that can be written to", unit: "short", kind: "stat",
					description: "1, or 0 where the last write of a process failed.",
					runbook:     "database-not-writable.md", threshold: 1, fallsBelow: true,
					queries: oneQuery(`min by (schema) (doorward_database_writable)`, "{{schema}}")},
				{title: "Age of the last backup", unit: "s", kind: "stat", description: "The alert fires after 26 hours.",
					runbook: "backup-old.md", threshold: 93600,
					queries: oneQuery(`max(doorward_backup_age_seconds)`, "age")},
				{title: "Age of the last archived segment", unit: "s",
					description: "Of the write-ahead log: what a restore would lack. Only where PostgreSQL archives.",
					runbook:     "archiving-fails.md", threshold: 900,
					queries: oneQuery(`max(doorward_database_archive_age_seconds)`, "age")},
				{title: "Connections by schema and state", unit: "short",
					description: "Of all processes together; max is what they may open.",
					queries:     oneQuery(`sum by (schema, state) (doorward_db_connections)`, "{{schema}} {{state}}")},
				{title: "Time that queries wait for a connection", unit: "s",
					description: "The number of queries that wait, on average.",
					runbook:     "database-pool-used-up.md", threshold: 1,
					queries: oneQuery(`sum by (schema) (rate(doorward_db_wait_seconds_total[$__rate_interval]))`, "{{schema}}")},
				{title: "Size of the largest tables", unit: "bytes",
					description: "With their indexes.",
					queries:     oneQuery(`topk(15, max by (schema, table) (doorward_db_table_bytes))`, "{{schema}}.{{table}}")},
				{title: "Growth of tables in a day", unit: "bytes",
					description: "What PostgreSQL's disk needs.",
					queries:     oneQuery(`topk(15, max by (schema, table) (delta(doorward_db_table_bytes[1d])))`, "{{schema}}.{{table}}")},
				{title: "Rows of the largest tables", unit: "short",
					description: "As PostgreSQL estimates them.",
					queries:     oneQuery(`topk(15, max by (schema, table) (doorward_db_table_rows))`, "{{schema}}.{{table}}")},
				{title: "Time since the last purge", unit: "s",
					description: "What is old is deleted in batches.",
					runbook:     "purge-late.md", threshold: 21600,
					queries: oneQuery(`max(doorward_purge_age_seconds)`, "age")},
			}},
			{"Redis and caches", []panel{
				{title: "Gateways that share their limits", unit: "short", description: "Fewer than there are gateways: Redis is unavailable for some.",
					runbook: "limits-not-shared.md", threshold: 1, fallsBelow: true,
					queries: oneQuery(`sum(doorward_gateway_limits_shared)`, "shared")},
				{title: "Cache hits", unit: "percentunit",
					description: "A restart and a change of many rows empty a cache.",
					queries: oneQuery(
						`sum by (cache) (rate(doorward_cache_requests_total{result="hit"}[$__rate_interval]))`+
							` / sum by (cache) (rate(doorward_cache_requests_total[$__rate_interval]))`,
						"{{cache}}")},
				{title: "Values in caches", unit: "short",
					description: "Entries that the processes hold, all together.",
					queries:     oneQuery(`sum by (cache) (doorward_cache_entries)`, "{{cache}}")},
				{title: "Time since PostgreSQL had nothing left to report to caches", unit: "s",
					description: "While such a cache is used 0.02 s; from 0.05 s on tokens and access are read again for each request.",
					queries:     oneQuery(`max by (schema) (doorward_db_report_age_seconds)`, "{{schema}}")},
				{title: "Time since the OAuth service knew all changes of accounts", unit: "s",
					description: "While tokens are validated 0.05 s at most; beyond that the other services are asked about each account.",
					queries:     oneQuery(`max by (follower) (doorward_changefeed_age_seconds)`, "{{follower}}")},
			}},
			{"Directories and SAML", []panel{
				{title: "Certificates of SAML that end or have ended", unit: "short",
					description: "Within 30 days, or already, or that have not begun.",
					runbook:     "saml-certificate-ends.md", threshold: 1,
					queries: []query{
						{`max by (state) (doorward_directory_saml_certificates)`, "of identity providers, {{state}}"},
						{`max by (state) (doorward_application_saml_certificates)`, "of service providers, {{state}}"},
					}},
				{title: "Syncs of LDAP directories that are held, in an hour", unit: "short",
					description: "They would make too many accounts absent.",
					runbook:     "sync-held.md", threshold: 1,
					queries: oneQuery(`sum(increase(doorward_directory_syncs_held_total[1h]))`, "held")},
			}},
			{"Kafka", []panel{
				{title: "Events sent", unit: "short",
					description: "From the outboxes to Kafka.",
					queries:     oneQuery(`sum by (topic) (rate(doorward_events_relayed_total[$__rate_interval]))`, "{{topic}}")},
				{title: "Events handled", unit: "short",
					description: "By the service and the kind of event.",
					queries:     oneQuery(`sum by (group, event) (rate(doorward_events_consumed_total[$__rate_interval]))`, "{{group}} {{event}}")},
				{title: "Events that wait in outboxes", unit: "short",
					description: "Changes whose effects in other services are still to come.",
					queries:     oneQuery(`max by (topic) (doorward_events_outbox_waiting)`, "{{topic}}")},
				{title: "Lag by partition", unit: "short",
					description: "One partition alone that grows is a consumer that hangs.",
					queries:     oneQuery(`doorward_events_lag`, "{{group}} {{topic}}/{{partition}}")},
				{title: "Dead letters in an hour", unit: "short",
					description: "Events that could not be handled; their effects are missing.",
					runbook:     "dead-letters.md", threshold: 1,
					queries: oneQuery(`sum by (group, reason) (increase(doorward_events_dead_total[1h]))`, "{{group}} {{reason}}")},
			}},
		},
	},
	{
		name: "tenant", title: "Doorward / Tenant", variables: []variable{{"tenant", "Id of the tenant"}},
		rows: []row{
			{"Logs of the tenant (no metric has the label of a tenant)", []panel{
				{title: "Log lines", kind: "logs",
					description: "Those that name the tenant, of all processes.",
					queries:     oneQuery(`{process=~".+"} | json | tenant = "$tenant"`, "")},
				{title: "Errors", kind: "logs",
					description: "Those with the level ERROR.",
					queries:     oneQuery(`{process=~".+"} | json | tenant = "$tenant" | level = "ERROR"`, "")},
				{title: "Latency with exemplars, 99th percentile", unit: "s",
					description: "A point leads to the trace of a request, whose span names its tenant.",

					queries: oneQuery(`histogram_quantile(0.99, sum by (le) (`+
						`rate(doorward_gateway_request_duration_seconds_bucket`+withoutLongPolls+`[$__rate_interval])))`, "gateway")},
			}},
		},
	},
}
