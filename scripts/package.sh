#!/usr/bin/env bash
# Packs what a release has beside programs and images: the Helm chart, and the Python package. Both get the version of the tag.
#
#   scripts/package.sh v1.2.3 DIST    needs helm, and python3 with the module build
set -euo pipefail

fail() {
	printf 'package: %s\n' "$*" >&2
	exit 1
}

version="${1:-}" dist="${2:-}"
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "the version is \"$version\", allowed: v1.2.3 or v1.2.3-rc.1"
[[ -d $dist ]] || fail "the folder is \"$dist\", which is not there"
dist="$(cd "$dist" && pwd)"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
for tool in helm python3; do
	command -v "$tool" >/dev/null || fail "$tool is not installed"
done
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

helm lint --quiet "$root/charts/numathrottle"
helm package --version "${version#v}" --app-version "$version" --destination "$dist" "$root/charts/numathrottle"

cp -r "$root/python" "$work/python"
rm -rf "$work/python/build" "$work/python/dist"
# As PEP 440 has it: 1.2.3rc1 of 1.2.3-rc.1.
pep440="$(sed -E 's/^v//; s/-(a|b|rc)\.?([0-9]+)$/\1\2/; s/-(.*)$/.dev0+\1/; s/\+(.*)-/+\1./g' <<<"$version")"
sed -i -E "s/^version = \".*\"/version = \"$pep440\"/" "$work/python/pyproject.toml"
grep -qF "version = \"$pep440\"" "$work/python/pyproject.toml" || fail "python/pyproject.toml has no version"
python3 -m build --outdir "$dist" "$work/python"
