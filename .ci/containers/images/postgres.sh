#!/usr/bin/env bash
# Starts as root, owns its data, becomes postgres, and at the first start makes the user and the database.
set -euo pipefail
export PATH=$PATH:/usr/lib/postgresql/17/bin PGDATA=/var/lib/postgresql/data
if ((EUID == 0)); then
	install --directory --owner postgres --group postgres --mode 700 "$PGDATA"
	install --directory --owner postgres --group postgres /run/postgresql
	exec setpriv --reuid postgres --regid postgres --clear-groups "$0"
fi
if [[ ! -s $PGDATA/PG_VERSION ]]; then
	initdb --encoding UTF8 --locale C.UTF-8 --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" \
		--auth-local trust --auth-host scram-sha-256
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
	pg_ctl start --wait --options "-c listen_addresses=''"
	[[ $POSTGRES_DB == "$POSTGRES_USER" ]] || exit 1
	createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
	pg_ctl stop --wait
fi
exec postgres -c listen_addresses='*'
