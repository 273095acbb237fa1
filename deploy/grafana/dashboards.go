package main

import "strings"

// services have a histogram of their requests each.
var services = []string{"gateway", "directory", "application", "oauth", "mfa", "notification", "idsite"}

// perService is one query for each service, in which SERVICE stands for its name.
func perService(expression string) (queries []query) {
	for _, service := range services {
		queries = append(queries, query{strings.ReplaceAll(expression, "SERVICE", service), service})
	}
	return queries
}

// answered selects the requests that are answered at once. The long polls of directory
// agents wait for a login, so their latency says nothing.
const answered = `{route!="/v1/agents/:id/authentications"}`

func one(expression, legend string) []query { return []query{{expression, legend}} }

var dashboards = []dashboard{
	{
		name: "overview", title: "Doorward / Overview",
		rows: []row{
			{"Objectives", []panel{
				{title: "Requests that did not fail, 6 hours", unit: "percentunit", kind: "stat", about: "The objective is 99.9 %.",
					queries: one(`1 - doorward:gateway_errors:ratio_rate6h`, "answered")},
				{title: "Requests within a second, 6 hours", unit: "percentunit", kind: "stat", about: "The objective is 99 %.",
					queries: one(`1 - doorward:gateway_slow:ratio_rate6h`, "in time")},
				{title: "Rate at which error budgets burn", unit: "short",
					about: "1 uses up the budget of 30 days in 30 days. Alerts fire at 14.4 and at 6.",
					queries: []query{
						{`doorward:gateway_errors:ratio_rate1h / 0.001`, "errors, 1 hour"},
						{`doorward:gateway_slow:ratio_rate1h / 0.01`, "slow requests, 1 hour"},
					}},
			}},
			{"Processes", []panel{
				{title: "Processes by version", unit: "short", queries: one(`count by (version) (doorward_build_info)`, "{{version}}")},
				{title: "Time until a certificate ends", unit: "s", kind: "stat",
					queries: one(`min by (process) (doorward_certificate_not_after_timestamp_seconds) - time()`, "{{process}}")},
			}},
			{"Traffic", []panel{
				{title: "Requests by service", unit: "reqps",
					queries: perService(`sum(rate(doorward_SERVICE_request_duration_seconds_count[$__rate_interval]))`)},
				{title: "Answers with status 5xx by service", unit: "reqps",

					queries: perService(`sum(rate(doorward_SERVICE_request_duration_seconds_count{status=~"5.."}[$__rate_interval])) or vector(0)`)},
				{title: "Latency by service, 99th percentile", unit: "s",

					queries: perService(`histogram_quantile(0.99, sum by (le) (` +
						`rate(doorward_SERVICE_request_duration_seconds_bucket` + answered + `[$__rate_interval])))`)},
				{title: "Slowest routes, 99th percentile", unit: "s", queries: one(
					`topk(10, histogram_quantile(0.99, sum by (le, route) (`+
						`rate(doorward_gateway_request_duration_seconds_bucket`+answered+`[$__rate_interval]))))`,
					"{{route}}")},
				{title: "Answers by status", unit: "reqps",

					queries: one(`sum by (status) (rate(doorward_gateway_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
				{title: "Refused by the gateway", unit: "reqps",
					queries: one(`sum by (reason) (rate(doorward_gateway_refused_total[$__rate_interval]))`, "{{reason}}")},
			}},
			{"Saturation", []panel{
				{title: "Requests in flight", unit: "short", queries: perService(`sum(doorward_SERVICE_requests_in_flight)`)},
				{title: "Passwords that wait for a worker", unit: "short",
					queries: one(`max(doorward_directory_password_queue_length)`, "queue")},
				{title: "Database connections in use", unit: "percentunit", queries: one(
					`max by (schema) (doorward_db_connections{state="used"} / ignoring (state) doorward_db_connections{state="max"})`, "{{schema}}")},
				{title: "Consumer lag", unit: "short", queries: one(`sum by (group) (doorward_events_lag)`, "{{group}}")},
				{title: "Age of the oldest event in an outbox", unit: "s",
					queries: one(`max by (topic) (doorward_events_outbox_age_seconds)`, "{{topic}}")},
				{title: "Processor time", unit: "short",
					queries: one(`sum by (instance) (rate(process_cpu_seconds_total[$__rate_interval]))`, "{{instance}}")},
				{title: "Memory", unit: "bytes", queries: one(`process_resident_memory_bytes`, "{{instance}}")},
				{title: "Goroutines", unit: "short", queries: one(`go_goroutines`, "{{instance}}")},
			}},
		},
	},
	{
		name: "logins", title: "Doorward / Logins",
		rows: []row{
			{"Logins", []panel{
				{title: "Logins by result", unit: "reqps",
					queries: one(`sum by (result) (rate(doorward_application_logins_total[$__rate_interval]))`, "{{result}}")},
				{title: "Logins that succeed", unit: "percentunit", queries: one(
					`sum(rate(doorward_application_logins_total{result="success"}[$__rate_interval]))`+
						` / sum(rate(doorward_application_logins_total[$__rate_interval]))`,
					"success")},
				{title: "Logins that a limit refused", unit: "reqps", queries: one(
					`sum by (result) (rate(doorward_application_logins_total{result=~".*_limit"}[$__rate_interval])) or vector(0)`, "{{result}}")},
				{title: "Token requests by grant and result", unit: "reqps",
					queries: one(`sum by (grant, result) (rate(doorward_oauth_grants_total[$__rate_interval]))`, "{{grant}} {{result}}")},
				{title: "Time that a password waits and takes, 99th percentile", unit: "s", queries: []query{
					{`histogram_quantile(0.99, sum by (le) (rate(doorward_directory_password_wait_seconds_bucket[$__rate_interval])))`, "wait"},
					{`histogram_quantile(0.99, sum by (le) (rate(doorward_directory_password_hash_seconds_bucket[$__rate_interval])))`, "hash"},
				}},
				{title: "Hosted pages by status", unit: "reqps",
					queries: one(`sum by (status) (rate(doorward_idsite_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
			}},
			{"Second factors and messages", []panel{
				{title: "Requests for second factors by status", unit: "reqps",
					queries: one(`sum by (status) (rate(doorward_mfa_request_duration_seconds_count[$__rate_interval]))`, "{{status}}")},
				{title: "Mails by workflow and result", unit: "reqps",

					queries: one(`sum by (workflow, result) (rate(doorward_notification_mails_total[$__rate_interval]))`, "{{workflow}} {{result}}")},
				{title: "Text messages by result", unit: "reqps",
					queries: one(`sum by (result) (rate(doorward_notification_texts_total[$__rate_interval])) or vector(0)`, "{{result}}")},
				{title: "Attempts to send a mail that fail", unit: "percentunit", queries: one(
					`(sum(rate(doorward_notification_mails_total{result=~"failed|postponed"}[15m])) or vector(0))`+
						` / sum(rate(doorward_notification_mails_total[15m]))`,
					"failed or postponed")},
				{title: "Age of the oldest delivery that waits", unit: "s",
					queries: one(`max(doorward_notification_oldest_delivery_seconds)`, "age")},
				{title: "Deliveries that wait", unit: "short", queries: one(`max(doorward_notification_deliveries_waiting)`, "waiting")},
				{title: "Mail servers of tenants whose circuit breaker is open", unit: "short",
					queries: one(`max(doorward_notification_smtp_circuit_open)`, "open")},
			}},
		},
	},
	{
		name: "data", title: "Doorward / Data",
		rows: []row{
			{"PostgreSQL", []panel{
				{title: "Connections by schema and state", unit: "short",
					queries: one(`sum by (schema, state) (doorward_db_connections)`, "{{schema}} {{state}}")},
				{title: "Time that queries wait for a connection", unit: "s",
					queries: one(`sum by (schema) (rate(doorward_db_wait_seconds_total[$__rate_interval]))`, "{{schema}}")},
				{title: "Size of the largest tables", unit: "bytes",
					queries: one(`topk(15, max by (schema, table) (doorward_db_table_bytes))`, "{{schema}}.{{table}}")},
				{title: "Growth of tables in a day", unit: "bytes",
					queries: one(`topk(15, max by (schema, table) (delta(doorward_db_table_bytes[1d])))`, "{{schema}}.{{table}}")},
				{title: "Rows of the largest tables", unit: "short",
					queries: one(`topk(15, max by (schema, table) (doorward_db_table_rows))`, "{{schema}}.{{table}}")},
				{title: "Time since the last purge", unit: "s", queries: one(`max(doorward_purge_age_seconds)`, "age")},
			}},
			{"Redis and caches", []panel{
				{title: "Gateways that share their limits", unit: "short", about: "Fewer than there are gateways: Redis is unavailable for some.",
					queries: one(`sum(doorward_gateway_limits_shared)`, "shared")},
				{title: "Cache hits", unit: "percentunit", queries: one(
					`sum by (cache) (rate(doorward_cache_requests_total{result="hit"}[$__rate_interval]))`+
						` / sum by (cache) (rate(doorward_cache_requests_total[$__rate_interval]))`,
					"{{cache}}")},
				{title: "Values in caches", unit: "short", queries: one(`sum by (cache) (doorward_cache_entries)`, "{{cache}}")},
				{title: "Time since PostgreSQL had nothing left to report to caches", unit: "s",
					about:   "While such a cache is used 0.02 s; from 0.05 s on tokens and access are read again for each request.",
					queries: one(`max by (schema) (doorward_db_report_age_seconds)`, "{{schema}}")},
				{title: "Time since the OAuth service knew all changes of accounts", unit: "s",
					about:   "While tokens are validated 0.05 s at most; beyond that the other services are asked about each account.",
					queries: one(`max by (follower) (doorward_changefeed_age_seconds)`, "{{follower}}")},
			}},
			{"Kafka", []panel{
				{title: "Events sent", unit: "short",
					queries: one(`sum by (topic) (rate(doorward_events_relayed_total[$__rate_interval]))`, "{{topic}}")},
				{title: "Events handled", unit: "short",
					queries: one(`sum by (group, event) (rate(doorward_events_consumed_total[$__rate_interval]))`, "{{group}} {{event}}")},
				{title: "Events that wait in outboxes", unit: "short",
					queries: one(`max by (topic) (doorward_events_outbox_waiting)`, "{{topic}}")},
				{title: "Lag by partition", unit: "short", queries: one(`doorward_events_lag`, "{{group}} {{topic}}/{{partition}}")},
				{title: "Dead letters in an hour", unit: "short",
					queries: one(`sum by (group, reason) (increase(doorward_events_dead_total[1h]))`, "{{group}} {{reason}}")},
			}},
		},
	},
	{
		name: "tenant", title: "Doorward / Tenant", variables: []variable{{"tenant", "Id of the tenant"}},
		rows: []row{
			{"Logs of the tenant (no metric has the label of a tenant)", []panel{
				{title: "Log lines", kind: "logs", queries: one(`{process=~".+"} | json | tenant = "$tenant"`, "")},
				{title: "Errors", kind: "logs", queries: one(`{process=~".+"} | json | tenant = "$tenant" | level = "ERROR"`, "")},
				{title: "Latency with exemplars, 99th percentile", unit: "s",
					about: "A point leads to the trace of a request, whose span names its tenant.",

					queries: one(`histogram_quantile(0.99, sum by (le) (`+
						`rate(doorward_gateway_request_duration_seconds_bucket`+answered+`[$__rate_interval])))`, "gateway")},
			}},
		},
	},
}
