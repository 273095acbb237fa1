#!/usr/bin/env bash
# KAFKA_LOG_DIRS is the property log.dirs, and so on; the storage is formatted once.
set -euo pipefail
settings=/tmp/server.properties
env | sed -n 's/^KAFKA_//p' | grep -v '^HEAP_OPTS=' | while IFS='=' read -r name value; do
	name=${name,,}
	printf '%s=%s\n' "${name//_/.}" "$value"
done >"$settings"
read -ra heap <<<"${KAFKA_HEAP_OPTS:-}"
kafka=(java "${heap[@]}" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn
	-cp '/opt/kafka/libs/*')
"${kafka[@]}" kafka.tools.StorageTool format --ignore-formatted --config "$settings" --cluster-id "$CLUSTER_ID"
exec "${kafka[@]}" kafka.Kafka "$settings"
