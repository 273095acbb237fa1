#!/usr/bin/env bash
# Caddy with its own certificate authority in place of Let's Encrypt's, and otherwise with the Caddyfile as it is.
set -euo pipefail
sed 's/^\temail .*/&\n\tlocal_certs\n\tskip_install_trust/' /etc/caddy/Caddyfile >/config/Caddyfile
exec caddy run --config /config/Caddyfile --adapter caddyfile
