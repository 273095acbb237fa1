#!/usr/bin/env bash
# backup.sh holds the commands of docs/backup.md: a base backup of PostgreSQL, and a
# data directory as it was at a time. make backup-drill tests them.
#
#   backup.sh settings WAL              print what postgresql.conf needs to archive into WAL
#   backup.sh base URL BASE             make a base backup
#   backup.sh prune BASE WAL            delete of WAL what BASE, the oldest one kept, does not need
#   backup.sh restore BASE WAL TIME DATA
#   backup.sh standby URL DATA          make the data directory of an asynchronous standby
#   backup.sh promote DATA              make the standby on DATA, which runs, the primary
#
# Run it as the user of PostgreSQL. PGBIN is the folder of its programs, where they
# are not on the PATH.
set -euo pipefail
PATH=${PGBIN:+$PGBIN:}$PATH

settings() {
	local wal=$1
	cat <<END
wal_level = replica
archive_mode = on
archive_timeout = 60
archive_command = 'test ! -f $wal/%f && cp %p $wal/%f.part && sync $wal/%f.part && mv $wal/%f.part $wal/%f'
END
}

base() {
	local url=$1 base=$2
	pg_basebackup --dbname "$url" --pgdata "$base" --checkpoint fast --wal-method stream
	pg_verifybackup "$base"
}

prune() {
	local base=$1 wal=$2 first
	first=$(sed -nE 's/^START WAL LOCATION: .* \(file ([0-9A-F]{24})\)$/\1/p' "$base/backup_label")
	pg_archivecleanup "$wal" "$first"
}

restore() {
	local base=$1 wal=$2 time=${3/%Z/+00} data=$4 # PostgreSQL knows no Z here
	cp --archive "$base" "$data"
	chmod 700 "$data"
	cat >>"$data/postgresql.auto.conf" <<END
restore_command = 'cp $wal/%f %p'
recovery_target_time = '$time'
recovery_target_action = promote
END
	touch "$data/recovery.signal"
}

standby() {
	local url=$1 data=$2
	pg_basebackup --dbname "$url" --pgdata "$data" --checkpoint fast --wal-method stream --write-recovery-conf
}

promote() {
	local data=$1
	pg_ctl promote --wait --pgdata "$data"
}

case "${1:-} $#" in
'settings 2' | 'base 3' | 'prune 3' | 'restore 5' | 'standby 3' | 'promote 2') "$@" ;;
*)
	sed -nE '2,/^set/s/^# ?//p' "$0" >&2
	exit 2
	;;
esac
