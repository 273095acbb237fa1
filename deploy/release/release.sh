#!/usr/bin/env bash
# release.sh VERSION makes dist/VERSION, everything that a release has (deploy/release/README.md), from the
# commit that is checked out: make release runs it. The same commit makes the same bytes.
#
#   KEY=cosign.key            signs the checksums; COSIGN_PASSWORD opens the key
#   PLATFORMS=linux/amd64     only these, for a try; a release has all four
#   OUT=folder                instead of dist/VERSION
set -euo pipefail
cd "$(dirname "$0")/../.."

fail() {
	echo "release: $*" >&2
	exit 1
}
version=${1:-}
number='(0|[1-9][0-9]*)'
[[ $version =~ ^$number\.$number\.$number(-[0-9A-Za-z.-]+)?$ ]] || fail "VERSION=$version is no version such as 1.0.0"
[[ $version == "$(<VERSION)" ]] || fail "the file VERSION has $(<VERSION), not $version"
grep -qE "^## ${version//./\\.}( |$)" CHANGELOG.md || fail "CHANGELOG.md has no section ## $version"
[[ -z $(git status --porcelain) ]] || fail 'the tree has changes: commit them, or check out the tag'

VERSION=$version
COMMIT=$(git rev-parse HEAD)
DATE=$(TZ=UTC git log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION COMMIT DATE SOURCE_DATE_EPOCH
out=${OUT:-dist/$version} work=.work/release
platforms=${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}

rm -rf "$out" "$work"
mkdir -p "$out" "$work"
(cd deploy/release && GOWORK=off go build -o "../../$work/release" .)
for platform in $platforms; do
	IFS=/ read -r TARGETOS TARGETARCH <<<"$platform"
	export TARGETOS TARGETARCH
	# A release for macOS has the program doorward alone, standalone and the commands.
	only=
	[[ $TARGETOS == linux ]] || only=./deploy/standalone/cmd/doorward
	deploy/docker/build.sh "$work/${TARGETOS}_$TARGETARCH" ${only:+"$only"}
done
"$work/release" make -version "$version" -commit "$COMMIT" -date "$DATE" -from "$work" -to "$out" ${KEY:+-key "$KEY"}
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
echo "made $out"
