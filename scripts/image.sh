#!/usr/bin/env bash
# Builds the images of the programs with docker, podman or buildah, whichever is there, for this machine's platform or that in
# PLATFORM (linux/amd64, linux/arm64).
#
#   scripts/image.sh [PROGRAM ...]    llm-map, http-sink, numathrottle; without a PROGRAM all three
#
# The images are called PREFIXnumathrottle-llm-map, PREFIXnumathrottle-http-sink and PREFIXnumathrottle, with the version and "latest"
# as tags. BUILDER chooses the tool: docker, podman or buildah.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly PREFIX="${PREFIX:-}" PLATFORM="${PLATFORM:-}"

fail() {
	printf 'image: %s\n' "$*" >&2
	exit 1
}

# works tells whether a tool can build here, and puts why not into why.
why=""
works() {
	command -v "$1" >/dev/null 2>&1 || {
		why+=$'\n'"  $1: not installed"
		return 1
	}
	if ! "$1" info >/dev/null 2>&1; then
		why+=$'\n'"  $1: \"$1 info\" fails; is its daemon running, and may this user use it?"
		return 1
	fi
	if [[ $1 == docker ]] && ! docker buildx version >/dev/null 2>&1; then
		why+=$'\n'"  docker: no buildx, which brings BuildKit"
		return 1
	fi
}

builder=""
for tool in ${BUILDER:-docker podman buildah}; do
	[[ $tool == docker || $tool == podman || $tool == buildah ]] || fail "BUILDER is $tool, allowed: docker, podman, buildah"
	if works "$tool"; then
		builder="$tool"
		break
	fi
done
[[ -n $builder ]] || fail "nothing here builds images:$why
Install one of: docker with its buildx plugin (Debian: docker.io docker-buildx), podman 4.3 or later, buildah 1.28 or later."

here="$(uname -m)"
case "$here" in
x86_64) here=amd64 ;;
aarch64) here=arm64 ;;
esac

programs=("$@")
[[ ${#programs[@]} -gt 0 ]] || programs=(llm-map http-sink numathrottle)

version="$(git describe --tags --always --dirty 2>/dev/null)" || version=unknown
revision="$(git rev-parse HEAD 2>/dev/null)" || revision=unknown
for program in "${programs[@]}"; do
	case "$program" in
	numathrottle) image="${PREFIX}numathrottle" ;;
	llm-map | http-sink) image="${PREFIX}numathrottle-$program" ;;
	*) fail "$program is no program, allowed: llm-map, http-sink, numathrottle" ;;
	esac
	args=(--target "$program" --tag "$image:$version" --tag "$image:latest" --build-arg "VERSION=$version" --build-arg "REVISION=$revision")
	[[ -z $PLATFORM ]] || args+=(--platform "$PLATFORM")
	# buildah before 1.29, which podman 4.3 has in it, does not know the platform on which it builds.
	[[ $builder == docker ]] || args+=(--build-arg "BUILDPLATFORM=linux/$here")
	case "$builder" in
	docker) docker buildx build --load "${args[@]}" . ;;
	podman) podman build "${args[@]}" . ;;
	# It knows no "build" before 1.23.
	buildah) buildah bud "${args[@]}" . ;;
	esac
	printf 'image: %s:%s\n' "$image" "$version"
done
