#!/usr/bin/env bash
# Puts the programs of a release into an archive for each platform, with checksums.txt beside them. The archives are the same bytes
# whenever and wherever they are made.
#
#   scripts/archive.sh v1.2.3 DIST    of the folders DIST/linux_amd64 and DIST/linux_arm64, which hold the programs
set -euo pipefail

fail() {
	printf 'archive: %s\n' "$*" >&2
	exit 1
}

version="${1:-}" dist="${2:-}"
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the version is \"$version\", allowed: v1.2.3 or v1.2.3-rc.1"
[[ -d $dist ]] || fail "the folder is \"$dist\", which is not there"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
moment="$(git -C "$root" log -1 --format=%ct)"

cd "$dist"
rm -f -- *.tar.gz checksums.txt
for platform in linux_amd64 linux_arm64; do
	for program in llm-map http-sink numathrottle; do
		[[ -f $platform/$program ]] || fail "$dist/$platform/$program is not there"
	done
	cp "$root/LICENSE" "$root/README.md" "$root/CHANGELOG.md" "$platform/"
	tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@$moment" --format=posix \
		--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime -C "$platform" \
		-cf - llm-map http-sink numathrottle LICENSE README.md CHANGELOG.md |
		gzip -n -9 >"numathrottle_${version#v}_$platform.tar.gz"
done
sha256sum -- *.tar.gz >checksums.txt
