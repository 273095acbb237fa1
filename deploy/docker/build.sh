#!/usr/bin/env bash
# build.sh folder [package...] makes what the images hold: bin/ with every process, or with these only,
# sbom/ with a bill of materials for each, and root/ with the files of the system.
# The same sources and the same Go make the same bytes, wherever they lie.
# TARGETOS and TARGETARCH choose another system; VERSION, COMMIT and DATE are what the processes report.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=$1
shift
(($#)) || set -- ./gateway/cmd/* ./services/*/cmd/* ./deploy/mailbox/cmd/* ./deploy/standalone/cmd/*
mkdir -p "$out"/{bin,sbom} "$out"/root/etc/ssl/certs "$out"/home/nonroot

export GOFLAGS='-trimpath -buildvcs=false' CGO_ENABLED=${CGO_ENABLED:-0}
telemetry=github.com/doorward/doorward/pkg/telemetry
version="-X $telemetry.release=${VERSION:-} -X $telemetry.commit=${COMMIT:-} -X $telemetry.date=${DATE:-}"
GOOS=${TARGETOS:-} GOARCH=${TARGETARCH:-} go build -ldflags="-s -w $version" -o "$out/bin/" "$@"

go build -o "$out/write-sbom" deploy/docker/sbom/main.go
for program in "$out"/bin/*; do
	"$out/write-sbom" "$program" >"$out/sbom/${program##*/}.cdx.json"
done
rm "$out/write-sbom"
(cd deploy/docker/roots && GOWORK=off go run .) >"$out/root/etc/ssl/certs/ca-certificates.crt"
echo 'nonroot:x:65532:65532::/home/nonroot:/sbin/nologin' >"$out/root/etc/passwd"
echo 'nonroot:x:65532:' >"$out/root/etc/group"
find "$out" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
