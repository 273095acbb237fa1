#!/usr/bin/env bash
# setup.sh finds what Doorward's commands need on this machine, and installs
# what is missing on Debian and Ubuntu.
#
#   setup.sh postgresql chromium redis kafka pgbouncer prometheus axe-core | all
#                                                          find or install
#   setup.sh connectors                                    the servers of make e2e-connectors:
#                                                          keycloak slapd samba xmlsec1 pysaml2 oidc-provider,
#                                                          and the relying parties: openid-client authlib oauth2-proxy
#                                                          spring mcp kubernetes
#   setup.sh docker                                        a folder with Debian 13 and its docker.io, PostgreSQL, Redis,
#                                                          Java and Caddy (1.3 GB), for .ci/containers; needs root
#   setup.sh where kafka | axe-core | keycloak | …         print the folder that something fetched lies in
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
kubernetes=$here/../e2e/connectors/kubernetes
connectors=(keycloak slapd samba xmlsec1 jq pysaml2 oidc-provider openid-client authlib oauth2-proxy spring mcp kubernetes)
# What is not from this distribution.
fetched=(kafka axe-core keycloak pysaml2 oidc-provider openid-client authlib oauth2-proxy spring mcp kubernetes docker)
docker=(docker.io docker-cli docker-compose docker-buildx iptables iproute2 ca-certificates curl jq openssl git make procps
	postgresql-17 redis-server openjdk-21-jre-headless caddy) # the packages of the folder docker
known=(postgresql chromium redis pgbouncer prometheus jq java jdk maven python node debootstrap "${fetched[@]}" slapd samba xmlsec1)
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # Debian keeps slapd and samba there, off a user's PATH

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
found_pgbouncer() { have pgbouncer; }
found_prometheus() { have prometheus && have promtool; }
found_slapd() { have slapd && have ldapadd; }
found_samba() { have samba && have samba-tool && [[ -d /usr/share/samba/setup ]]; }
found_xmlsec1() { have xmlsec1; }
found_python() { have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null; }
found_jq() { have jq; }
found_maven() { have mvn; }
found_debootstrap() { have debootstrap; }

found_java() {
	local version
	have java || return 1
	version=$(java -version 2>&1 | sed -nE 's/.*version "([0-9]+).*/\1/p' | head -n1)
	((${version:-0} >= 17))
}

found_jdk() { found_java && have javac; }

found_node() {
	local version
	have node && have npm || return 1
	version=$(node --version)
	version=${version#v}
	((${version%%.*} >= 18))
}

# A folder gets its name in one step when all of it is there, so a folder that
# exists is complete.
found_kafka() { found_java && [[ -d $(folder kafka) ]]; }
found_axe-core() { [[ -d $(folder axe-core) ]]; }
found_keycloak() { found_java && [[ -d $(folder keycloak) ]]; }
found_pysaml2() { found_python && [[ -d $(folder pysaml2) ]]; }
found_oidc-provider() { found_node && [[ -d $(folder oidc-provider) ]]; }
found_openid-client() { found_node && [[ -d $(folder openid-client) ]]; }
found_mcp() { found_node && [[ -d $(folder mcp) ]]; }
found_spring() { found_jdk && [[ -d $(folder spring) ]]; }
found_kubernetes() { [[ -d $(folder kubernetes) ]]; }
found_docker() { [[ -d $(folder docker) ]]; }
found_oauth2-proxy() { [[ -d $(folder oauth2-proxy) ]]; }
found_authlib() { found_python && [[ -d $(folder authlib) ]]; }

# needs names what has to be there before something is fetched and run.
needs_kafka() { echo java maven; }
needs_axe-core() { echo node; }
needs_keycloak() { echo java maven; }
needs_pysaml2() { echo python; }
needs_oidc-provider() { echo node; }
needs_openid-client() { echo node; }
needs_authlib() { echo python; }
needs_mcp() { echo node; }
needs_spring() { echo jdk maven; }
needs_oauth2-proxy() { :; } # Go is there
needs_kubernetes() { :; }
needs_docker() { echo debootstrap; }

# The versions stand in the files that the package managers read.
version_kafka() { sed -nE 's:.*<kafka\.version>(.*)</kafka\.version>.*:\1:p' "$here/pom.xml"; }
version_axe-core() { sed -nE 's:.*"axe-core"\: "([0-9.]+)".*:\1:p' "$here/axe-core/package.json"; }
version_keycloak() { sed -nE 's:.*<keycloak\.version>(.*)</keycloak\.version>.*:\1:p' "$here/pom.xml"; }
version_pysaml2() { sed -nE 's:^pysaml2==::p' "$here/requirements.txt"; }
version_oidc-provider() { sed -nE 's:.*"oidc-provider"\: "([0-9.]+)".*:\1:p' "$here/package.json"; }
version_openid-client() { sed -nE 's:.*"openid-client"\: "([0-9.]+)".*:\1:p' "$here/openid-client/package.json"; }
version_authlib() { sed -nE 's:^Authlib==::p' "$here/authlib/requirements.txt"; }
version_oauth2-proxy() { sed -nE 's:^\tgithub.com/oauth2-proxy/oauth2-proxy/v7 v([0-9.]+).*:\1:p' "$here/oauth2-proxy/go.mod"; }
version_kubernetes() { sed -nE 's:.*k8s.io/apiserver v([0-9.]+)$:\1:p' "$kubernetes/go.mod"; }
version_spring() { sed -nE '/spring-boot-starter-parent/,$ s:.*<version>(.*)</version>.*:\1:p' "$here/spring/pom.xml" | head -n1; }
version_docker() { echo 13; }
version_mcp() { sed -nE 's:.*"@modelcontextprotocol/sdk"\: "([0-9.]+)".*:\1:p' "$here/mcp/package.json"; }

# folder is where something fetched lies.
folder() {
	local tools=${DOORWARD_TOOLS:-${HOME:?is not set, so set DOORWARD_TOOLS}/.cache/doorward} name
	name=$tools/$1-$("version_$1")
	[[ $1 != kafka ]] || name+=/libs
	printf '%s\n' "$name"
}

# --- what apt-get calls it --------------------------------------------------

packages_postgresql() { echo postgresql; }
packages_chromium() { echo chromium chromium-sandbox fonts-liberation; }
packages_redis() { echo redis-server; }
packages_pgbouncer() { echo pgbouncer; }
packages_prometheus() { echo prometheus; }
packages_slapd() { echo slapd ldap-utils; }
packages_xmlsec1() { echo xmlsec1; }
packages_python() { echo python3 python3-venv; }
packages_node() { echo nodejs npm; }
packages_jq() { echo jq; }
packages_maven() { echo maven; }
packages_debootstrap() { echo debootstrap debian-archive-keyring; }
packages_jdk() { packages_java | sed 's/-jre-/-jdk-/'; }

# A broker needs Java 17; the default of an older release may be 11.
packages_java() {
	if candidate openjdk-17-jre-headless; then
		echo openjdk-17-jre-headless
	else
		echo default-jre-headless
	fi
}

# The domain controller and the templates of a new domain are packages of their
# own in some releases.
packages_samba() {
	local name packages=(samba winbind attr)
	for name in samba-ad-dc samba-ad-provision; do
		! candidate "$name" || packages+=("$name")
	done
	echo "${packages[@]}"
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
	local name packages service
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
		pgbouncer) disable_service pgbouncer ;;
		slapd) disable_service slapd ;;
		samba) for service in samba-ad-dc smbd nmbd winbind; do disable_service "$service"; done ;;
		esac
		"found_$name" || fail "$name is still not found after apt-get installed ${packages[*]}; it may be too old here"
		say "ok: $name"
	done
}

# elsewhere names the command for a machine without apt-get.
elsewhere() {
	if have dnf; then
		echo "sudo dnf install $*" |
			sed 's/postgresql/postgresql-server postgresql-contrib/; s/slapd/openldap-servers openldap-clients/; s/samba/samba-dc/; s/java/java-21-openjdk-headless/; s/\<jdk\>/java-21-openjdk-devel/; s/\<node\>/nodejs npm/; s/python/python3/'
	elif have pacman; then
		echo "sudo pacman -S $*"
	elif have zypper; then
		echo "sudo zypper install $*" | sed 's/postgresql/postgresql-server postgresql-contrib/'
	elif have apk; then
		echo "apk add $*" | sed 's/postgresql/postgresql postgresql-contrib/'
	elif have brew; then
		echo "brew install $*" | sed 's/postgresql/postgresql@17/; s/slapd/openldap/; s/java/openjdk/; s/\<jdk\>/openjdk/; s/chromium/--cask chromium/'
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

# --- fetching from elsewhere ------------------------------------------------

# fetch fills a new folder by the function of the same name, and gives it its
# name when that has succeeded.
fetch() {
	local target part log
	target=$(folder "$1")
	say "fetching $1 $("version_$1") into $target (once)"
	mkdir -p "$(dirname "$target")"
	part=$(mktemp -d "$target.XXXXXX")
	log=$(mktemp)
	# In the background, because a condition would make it go on after a failure.
	("fill_$1" "$part") >"$log" 2>&1 </dev/null &
	if ! wait $!; then
		cat "$log" >&2
		rm -rf "$part" "$log"
		fail "fetching $1 failed; the reason is above"
	fi
	rm -f "$log"
	chmod 755 "$part"
	# Another setup.sh may have been faster: then its folder stays.
	mv -nT "$part" "$target" 2>/dev/null || true
	rm -rf "$part"
	say "ok: $1"
}

maven() { # FOLDER of pom.xml, arguments
	local folder=$1
	shift
	mvn -q -B -C -f "$folder/pom.xml" "$@"
}

# copy_jars fetches what a pom.xml names, from Maven Central.
copy_jars() {
	maven "$1" org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$2"
}

fill_kafka() { copy_jars "$here" "$1"; }         # 45 MB
fill_spring() { copy_jars "$here/spring" "$1"; } # 26 MB

# npm_ci fetches from the npm registry, by the checksums of the lock file.
npm_ci() {
	cp "$1/package.json" "$1/package-lock.json" "$2"
	npm ci --prefix "$2" --ignore-scripts --no-audit --no-fund --loglevel=error
}

fill_axe-core() { npm_ci "$here/axe-core" "$1"; }
fill_mcp() { npm_ci "$here/mcp" "$1"; }
fill_openid-client() { npm_ci "$here/openid-client" "$1"; }

# fill_keycloak unpacks the distribution (176 MB from Maven Central) and lets it
# compile its settings, which takes longer than its start.
fill_keycloak() {
	local version archive
	version=$(version_keycloak)
	archive=$1/keycloak-quarkus-dist-$version.tar.gz
	maven "$here" org.apache.maven.plugins:maven-dependency-plugin:copy \
		-Dartifact="org.keycloak:keycloak-quarkus-dist:$version:tar.gz" -DoutputDirectory="$1" -Dmdep.useBaseVersion=true
	echo "$(sed -nE 's:.*<keycloak\.sha256>(.*)</keycloak\.sha256>.*:\1:p' "$here/pom.xml")  $archive" | sha256sum --check --quiet
	tar -xzf "$archive" -C "$1" --strip-components=1 --no-same-owner
	rm "$archive"
	bash "$1/bin/kc.sh" build --db=dev-mem --health-enabled=true
}

# pip_install fetches what a file of requirements names, from PyPI.
pip_install() {
	python3 -m venv "$2"
	"$2/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --requirement "$1"
}

fill_pysaml2() { pip_install "$here/requirements.txt" "$1"; }
fill_authlib() { pip_install "$here/authlib/requirements.txt" "$1"; }

fill_oauth2-proxy() { # from the module proxy, by the checksums of go.sum; takes a minute
	(cd "$here/oauth2-proxy" && GOWORK=off go build -o "$1/oauth2-proxy" github.com/oauth2-proxy/oauth2-proxy/v7)
}

fill_kubernetes() { # likewise; takes minutes
	(cd "$kubernetes" && GOWORK=off go build -o "$1/kubernetes" .)
}

# fill_docker installs Debian 13 into a folder: an engine and the servers that compose.yaml names, of the same versions
# on every machine. docker-compose of Debian 12 cannot read compose.yaml.
fill_docker() {
	((EUID == 0)) || fail 'docker can be set up by root only'
	debootstrap --variant=minbase --include="$(IFS=,; echo "${docker[*]}")" trixie "$1" http://deb.debian.org/debian
	rm -f "$1"/var/cache/apt/archives/*.deb
}

fill_oidc-provider() { npm_ci "$here" "$1"; }

# ----------------------------------------------------------------------------

main() {
	local name need missing=() names=()
	(($# > 0)) || fail "say what to set up: ${known[*]}, connectors, or all"
	if [[ $1 == where ]]; then
		[[ -n ${2:-} && " ${fetched[*]} " == *" $2 "* ]] || fail "where knows only: ${fetched[*]}"
		folder "$2"
		return
	fi
	for name in "$@"; do
		case $name in
		all) names+=(postgresql chromium redis kafka pgbouncer prometheus axe-core "${connectors[@]}") ;;
		connectors) names+=("${connectors[@]}") ;;
		*) names+=("$name") ;;
		esac
	done

	for name in "${names[@]}"; do
		[[ " ${known[*]} " == *" $name "* ]] || fail "unknown name $name; known: ${known[*]}, connectors, all"
		"found_$name" && continue
		if [[ " ${fetched[*]} " != *" $name "* ]]; then
			missing+=("$name")
			continue
		fi
		for need in $("needs_$name"); do
			"found_$need" || [[ " ${missing[*]} " == *" $need "* ]] || missing+=("$need")
		done
	done
	if ((${#missing[@]} > 0)); then
		install "${missing[@]}"
	fi
	for name in "${names[@]}"; do
		"found_$name" || fetch "$name"
	done
}

main "$@"
