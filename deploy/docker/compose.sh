#!/usr/bin/env bash
# compose.sh up | down is what make up and make down run.
set -euo pipefail
cd "$(dirname "$0")/../.."

docker info >/dev/null 2>&1 || {
	echo 'No container engine answers here. Install Docker and start it, or run as a user who may use it.' >&2
	echo 'Without containers: make run, or the distributed shape with: go run ./deploy/e2e/cmd/shape distributed' >&2
	exit 1
}
docker compose version >/dev/null 2>&1 || {
	echo 'docker compose is missing; install docker-compose from Debian 13 on, docker-compose-v2 on Ubuntu, or docker-compose-plugin from Docker' >&2
	exit 1
}

case ${1:-} in
up)
	deploy/docker/secrets.sh "${DOORWARD_SECRETS:-.work/secrets}"
	VERSION=${VERSION:-$(git describe --tags --always --dirty 2>/dev/null || true)}
	export VERSION
	docker compose up --detach --build --wait
	cat <<-EOF

		Doorward answers at https://localhost:8443/v1
		  API key   .work/secrets/apikey.json
		  mails     https://localhost:8443/_mailbox
		  curl --config .work/secrets/curl.conf --location https://localhost:8443/v1/tenants/current
	EOF
	;;
down)
	docker compose --profile '*' down
	echo 'The data stays in volumes; docker compose down --volumes forgets it, then remove .work/secrets too.'
	;;
*)
	echo 'usage: compose.sh up | down' >&2
	exit 2
	;;
esac
