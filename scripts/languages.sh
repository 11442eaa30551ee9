#!/usr/bin/env bash
# Fetches the SDKs of other languages, and builds the handlers that the tests of internal/languages start. What is there
# and up to date is left alone.
#
#	scripts/languages.sh python clients    what make test needs
#	scripts/languages.sh python rust java  what make languages needs
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly BIN="$PWD/.bin" SOURCES="$PWD/internal/languages"

say() { printf 'languages: %s\n' "$*"; }
fail() {
	printf 'languages: %s\n' "$*" >&2
	exit 1
}

# need PROGRAM PACKAGE fails unless the program is there.
need() {
	command -v "$1" >/dev/null 2>&1 || fail "$1 is not installed: install $2, then run this again"
}

# python makes a virtual environment with the pinned pynumaflow, for handlers.
python() { environment pynumaflow "$SOURCES/python/requirements.txt"; }

# clients makes one with the pinned libraries under which python/ works.
clients() { environment pyclients "$PWD/python/tests/requirements.txt"; }

# environment NAME PINS makes a virtual environment with the packages in a file.
environment() {
	local env="$BIN/$1" pins="$2"
	cmp -s "$pins" "$env/requirements.txt" && return
	need python3 "Python 3.10 or later with its venv module (Debian: python3 python3-venv)"
	say "$1: $(tr '\n' ' ' <"$pins")"
	rm -rf "$env"
	python3 -m venv "$env" || fail "python3 -m venv failed: install the venv module of Python (Debian: python3-venv), then run this again"
	"$env/bin/python" -m pip install --quiet --disable-pip-version-check --retries 3 -r "$pins"
	cp "$pins" "$env/requirements.txt"
}

# rust compiles the handler with the pinned numaflow crate.
rust() {
	need cargo "Rust 1.85 or later with cargo"
	say "numaflow-rs"
	CARGO_TARGET_DIR="$BIN/rust" cargo build --quiet --release --locked --manifest-path "$SOURCES/rust/Cargo.toml"
}

# java compiles the handler with the pinned numaflow-java, and puts what it needs beside it.
java() {
	need javac "a JDK 17 or later"
	need mvn "Maven 3"
	say "numaflow-java"
	mvn -q -B -f "$SOURCES/java/pom.xml" package dependency:copy-dependencies
}

for language in "$@"; do
	case "$language" in
	python | clients | rust | java) "$language" ;;
	*) fail "\"$language\" is no language, allowed: python, clients, rust, java" ;;
	esac
done
