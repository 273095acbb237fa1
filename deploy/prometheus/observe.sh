#!/usr/bin/env bash
# observe.sh runs Prometheus, and Grafana where it is installed, for a standalone
# whose private port is localhost:9090. What cannot be started it says how to get.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD

command -v prometheus >/dev/null || { echo 'observe: Prometheus is missing; run: deploy/setup/setup.sh prometheus' >&2; exit 1; }
promtool check rules deploy/helm/doorward/alerts.yml >/dev/null
mkdir -p .work/observe/datasources .work/observe/dashboards

cat >.work/observe/datasources/doorward.yaml <<END
apiVersion: 1
datasources:
  - { name: Prometheus, uid: prometheus, type: prometheus, url: "http://localhost:9091", isDefault: true }
END
cat >.work/observe/dashboards/doorward.yaml <<END
apiVersion: 1
providers:
  - { name: doorward, type: file, options: { path: $root/deploy/grafana } }
END

if command -v grafana >/dev/null; then
	GF_PATHS_DATA=$root/.work/observe/grafana GF_PATHS_PROVISIONING=$root/.work/observe GF_AUTH_ANONYMOUS_ENABLED=true \
		GF_SERVER_HTTP_ADDR=127.0.0.1 grafana server --homepath "${GRAFANA_HOME:-/usr/share/grafana}" >.work/observe/grafana.log 2>&1 &
	trap 'kill $!' EXIT
	echo 'Grafana     http://localhost:3000'
else
	cat <<END
Grafana is not installed. In a container:

  docker run --rm --network host --env GF_AUTH_ANONYMOUS_ENABLED=true \\
    --volume $root/.work/observe:/etc/grafana/provisioning:ro --volume $root/deploy/grafana:$root/deploy/grafana:ro grafana/grafana

END
fi
echo 'Prometheus  http://localhost:9091'
echo 'It scrapes  http://localhost:9090, the private port of: DOORWARD_OPS_LISTEN=localhost:9090 make run'
prometheus --config.file=deploy/prometheus/prometheus.yml --storage.tsdb.path=.work/observe/prometheus \
	--web.listen-address=localhost:9091 --enable-feature=exemplar-storage --log.level=warn
