#!/usr/bin/env bash
# setup.sh finds what Doorward's commands need on this machine, and installs
# what is missing on Debian and Ubuntu.
#
#   setup.sh postgresql chromium redis kafka slapd | all   find or install
#   setup.sh where kafka                                   print the folder of the broker's jars
#
# What is found is passed over in silence. What is missing is announced, then
# installed by apt-get, as root or through a sudo that asks nothing. Where that
# cannot be done it prints the one command to run and ends with status 1.
# Nothing it installs is left running or enabled: Doorward starts its own.
#
# DOORWARD_TOOLS is the folder of what comes from elsewhere than the
# distribution (default ~/.cache/doorward).
set -euo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
script=$here/setup.sh
known=(postgresql chromium redis kafka slapd jq java maven)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # Debian keeps slapd there, off a user's PATH

say() { printf 'setup: %s\n' "$*"; }
fail() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# --- what counts as found ---------------------------------------------------

# The same places, in the same spirit, as Find in pkg/pg/private.
found_postgresql() {
	local bin version
	for bin in "${DOORWARD_POSTGRES_BIN:-}" "$(dirname "$(command -v initdb || echo /none/initdb)")" \
		/usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin \
		/usr/local/opt/postgresql*/bin; do
		[[ -n $bin && -x $bin/initdb && -x $bin/postgres ]] || continue
		version=$("$bin/postgres" --version 2>/dev/null | grep -oE '[0-9]+' | head -n1) || continue
		((version >= 13)) && return 0
	done
	return 1
}

found_chromium() {
	have chromium || have chromium-browser || have google-chrome || have google-chrome-stable || have headless-shell
}
found_redis() { have redis-server; }
found_slapd() { have slapd; }
found_jq() { have jq; }
found_maven() { have mvn; }

found_java() {
	local version
	have java || return 1
	version=$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n1)
	((${version:-0} >= 17))
}

# The folder gets its name in one step when the last jar is there, so a folder
# that exists is complete.
found_kafka() { found_java && [[ -d $(kafka_libs) ]]; }

kafka_version() { sed -nE 's:.*<kafka\.version>(.*)</kafka\.version>.*:\1:p' "$here/pom.xml"; }
kafka_libs() {
	printf '%s\n' "${DOORWARD_TOOLS:-${HOME:?is not set, so set DOORWARD_TOOLS}/.cache/doorward}/kafka-$(kafka_version)/libs"
}

# --- what apt-get calls it --------------------------------------------------

packages_postgresql() { echo postgresql; }
packages_chromium() { echo chromium chromium-sandbox fonts-liberation; }
packages_redis() { echo redis-server; }
packages_slapd() { echo slapd ldap-utils; }
packages_jq() { echo jq; }
packages_maven() { echo maven; }

# A broker needs Java 17; the default of an older release may be 11.
packages_java() {
	if candidate openjdk-17-jre-headless; then
		echo openjdk-17-jre-headless
	else
		echo default-jre-headless
	fi
}

candidate() {
	local policy
	policy=$(apt-cache policy "$1" 2>/dev/null)
	[[ $policy == *Candidate:* && $policy != *"Candidate: (none)"* ]]
}

# --- installing from the distribution ---------------------------------------

apt() { # what it says is shown only when it fails
	local log
	log=$(mktemp)
	if ! DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@" >"$log" 2>&1 </dev/null; then
		cat "$log" >&2
		rm -f "$log"
		return 1
	fi
	rm -f "$log"
}

updated=
update() {
	[[ -z $updated ]] || return 0
	updated=1
	say "apt-get update"
	apt update
}

install_packages() {
	say "installing with apt-get: $*"
	# Lists older than the archive name files that are gone: refresh once, and try again.
	apt install --no-install-recommends "$@" 2>/dev/null && return
	update
	apt install --no-install-recommends "$@"
}

# hold_services keeps packages from starting their services while we install.
# The policy ends with this script, even with one that was killed.
policy=/usr/sbin/policy-rc.d
hold_services() {
	[[ ! -e $policy ]] || return 0
	trap 'rm -f "$policy"' EXIT
	cat >"$policy" <<-EOF
		#!/bin/sh
		# Written by Doorward's setup.sh while it installs; may be deleted.
		kill -0 $$ 2>/dev/null && exit 101
		exit 0
	EOF
	chmod 755 "$policy"
}

# disable_service keeps a service that we brought from starting with the machine,
# whichever way that starts its services.
disable_service() {
	deb-systemd-helper disable "$1.service" >/dev/null 2>&1 || true
	update-rc.d "$1" disable >/dev/null 2>&1 || true
}

install_as_root() {
	local name packages
	for name in "$@"; do
		read -ra packages <<<"$("packages_$name")"
		candidate "${packages[0]}" || update
		read -ra packages <<<"$("packages_$name")"
		if [[ $name == chromium ]] && grep -qi '^ID=ubuntu' /etc/os-release; then
			fail "Ubuntu has Chromium only as a snap; run: snap install chromium"
		fi
		hold_services
		if [[ $name == postgresql ]]; then
			# The server package would create and start a cluster of its own.
			install_packages postgresql-common
			pg_conftool /etc/postgresql-common/createcluster.conf set create_main_cluster false
		fi
		install_packages "${packages[@]}"
		case $name in
		redis) disable_service redis-server ;;
		slapd) disable_service slapd ;;
		esac
		"found_$name" || fail "$name is still not found after apt-get installed ${packages[*]}; it may be too old here"
		say "ok: $name"
	done
}

# elsewhere names the command for a machine without apt-get.
elsewhere() {
	if have dnf; then
		echo "sudo dnf install $*" |
			sed 's/postgresql/postgresql-server postgresql-contrib/; s/slapd/openldap-servers/; s/java/java-21-openjdk-headless/'
	elif have pacman; then
		echo "sudo pacman -S $*"
	elif have zypper; then
		echo "sudo zypper install $*" | sed 's/postgresql/postgresql-server postgresql-contrib/'
	elif have apk; then
		echo "apk add $*" | sed 's/postgresql/postgresql postgresql-contrib/'
	elif have brew; then
		echo "brew install $*" | sed 's/postgresql/postgresql@17/; s/slapd/openldap/; s/java/openjdk/; s/chromium/--cask chromium/'
	elif [[ $(uname) == Darwin ]]; then
		echo "brew install $* (Homebrew is at https://brew.sh)" | sed 's/postgresql/postgresql@17/'
	else
		echo "the package manager of this system, for: $*; DOORWARD_POSTGRES_BIN names a PostgreSQL (13 or newer) that lies elsewhere"
	fi
}

install() {
	local how='run as root:'
	have apt-get || fail "missing: $*; run: $(elsewhere "$@")"
	if ((EUID == 0)); then
		install_as_root "$@"
		return
	fi
	if have sudo; then
		how='run: sudo'
		if sudo -n true 2>/dev/null; then
			say "using sudo to install: $*"
			sudo -n "$script" "$@"
			return
		fi
	fi
	fail "missing: $*; $how $script $*"
}

# --- the broker -------------------------------------------------------------

fetch_kafka() {
	local libs
	libs=$(kafka_libs)
	say "fetching the Kafka $(kafka_version) broker from Maven Central into $libs (45 MB, once)"
	mkdir -p "$(dirname "$libs")"
	local part
	part=$(mktemp -d "$libs.XXXXXX")
	if ! mvn -q -B -C -f "$here/pom.xml" org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies \
		-DincludeScope=runtime -DoutputDirectory="$part" </dev/null >"$part/log" 2>&1; then
		cat "$part/log" >&2
		rm -rf "$part"
		fail "fetching Kafka failed; the reason is above"
	fi
	rm -f "$part/log"
	chmod 755 "$part"
	# Another setup.sh may have been faster: then its folder stays.
	mv -nT "$part" "$libs" 2>/dev/null || true
	rm -rf "$part"
}

# ----------------------------------------------------------------------------

main() {
	local name missing=() names=("$@")
	(($# > 0)) || fail "say what to set up: ${known[*]}, or all"
	if [[ $1 == where ]]; then
		[[ ${2:-} == kafka ]] || fail "where knows only: kafka"
		kafka_libs
		return
	fi
	[[ $1 == all ]] && names=(postgresql chromium redis kafka slapd)

	for name in "${names[@]}"; do
		[[ " ${known[*]} " == *" $name "* ]] || fail "unknown name $name; known: ${known[*]}, all"
		if "found_$name"; then
			continue
		elif [[ $name == kafka ]]; then
			found_java || missing+=(java)
			[[ -d $(kafka_libs) ]] || found_maven || missing+=(maven)
		else
			missing+=("$name")
		fi
	done
	if ((${#missing[@]} > 0)); then
		install "${missing[@]}"
	fi
	for name in "${names[@]}"; do
		if [[ $name == kafka ]] && ! found_kafka; then
			fetch_kafka
			say "ok: kafka"
		fi
	done
}

main "$@"
