#!/usr/bin/env bash
# secrets.sh folder makes what compose.yaml needs of secrets and certificates,
# and keeps what is there already: the data in the volumes depends on it.
#
# The files are readable, the folder is not: containers see single files,
# mounted with the modes they have here, under users of their own.
set -euo pipefail

folder=${1:?usage: secrets.sh folder}
command -v openssl >/dev/null || { echo 'secrets: openssl is missing; run: apt-get install openssl' >&2; exit 1; }
mkdir -p "$folder"
chmod 700 "$folder"
cd "$folder"

# write name command... writes the command's output into the file; keep does it
# only where there is none.
write() {
	local name=$1
	shift
	"$@" >"$name.part"
	chmod 444 "$name.part"
	mv -f "$name.part" "$name"
}
keep() { [[ -s $1 ]] || write "$@"; }

random() { openssl rand -hex 32; }
master_key() { printf 'k1:%s\n' "$(openssl rand -base64 32)"; }
key_id() { openssl rand -hex 13 | tr '[:lower:]' '[:upper:]'; }
database_url() { printf 'postgres://doorward:%s@postgres:5432/doorward?sslmode=disable\n' "$(<postgres_password)"; }
apikey() {
	printf '{"id": "%s", "secret": "%s", "baseUrl": "https://localhost:8443/v1", "caFile": "%s"}\n' \
		"$(<apikey_id)" "$(<apikey_secret)" "$PWD/ca.pem"
}
curl_conf() {
	printf 'user = "%s:%s"\ncacert = "%s"\n' "$(<apikey_id)" "$(<apikey_secret)" "$PWD/ca.pem"
}

keep postgres_password random
keep database_url database_url
keep internal_secret random
keep master_key master_key
keep apikey_id key_id
keep apikey_secret random

# A certificate authority of our own, and what it says of localhost.
names='DNS:localhost,DNS:*.id.localhost,DNS:*.apps.localhost,DNS:gateway,IP:127.0.0.1,IP:::1'
if [[ ! -s tls_cert.pem ]] || ! openssl x509 -in tls_cert.pem -noout -checkhost x.apps.localhost | grep -q 'does match'; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=Doorward development' \
		-addext 'basicConstraints=critical,CA:TRUE,pathlen:0' -addext 'keyUsage=critical,keyCertSign,cRLSign' \
		-keyout "$work/ca.key" -out "$work/ca.pem" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj '/CN=localhost' \
		-keyout "$work/key.pem" -out "$work/request.pem" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	cat >"$work/extensions" <<-EOF
		basicConstraints=critical,CA:FALSE
		keyUsage=critical,digitalSignature
		extendedKeyUsage=serverAuth
		subjectAltName=$names
	EOF
	openssl x509 -req -in "$work/request.pem" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 825 \
		-extfile "$work/extensions" -out "$work/cert.pem" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
	chmod 444 "$work"/*.pem
	mv "$work/ca.pem" ca.pem
	mv "$work/key.pem" tls_key.pem
	mv "$work/cert.pem" tls_cert.pem # last: it says that all is there
fi

# What clients read: the end-to-end scenarios, and curl --config.
write apikey.json apikey
write curl.conf curl_conf
