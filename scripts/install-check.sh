#!/usr/bin/env bash
# Installs each program with `go install`, as a user does. A module with a replace directive cannot be installed so, and nobody
# notices in a checkout.
#
#   scripts/install-check.sh           from the checkout
#   scripts/install-check.sh v1.2.3    of a tag that is pushed, with the Go proxy
set -euo pipefail

version="${1:-}"
[[ -z $version || $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || {
	printf 'install-check: the version is "%s", allowed: v1.2.3 or v1.2.3-rc.1\n' "$version" >&2
	exit 1
}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
module="$(go list -m)"
if go mod edit -json | grep -qE '"(Replace|Exclude)": \[$'; then
	printf 'install-check: go.mod has replace or exclude directives, with which "go install" refuses the module\n' >&2
	exit 1
fi
bin="$(mktemp -d)"
trap 'rm -rf "$bin"' EXIT
for program in cmd/numathrottle examples/llm-map examples/http-sink; do
	if [[ -n $version ]]; then
		(cd "$bin" && GOBIN="$bin" go install "$module/$program@$version")
	else
		GOBIN="$bin" go install "./$program"
	fi
	"$bin/$(basename "$program")" --version
done
