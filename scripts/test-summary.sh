#!/usr/bin/env bash
# Prints the closing line of a test run. gotestsum calls it with the counts, subtests included, in the environment.
set -euo pipefail

total="${TESTS_TOTAL:-0}" failed="${TESTS_FAILED:-0}" skipped="${TESTS_SKIPPED:-0}" errors="${TESTS_ERRORS:-0}"
line="$((total - failed - skipped)) passed, $failed failed, $skipped skipped"
# An error is a package that did not build, or a test binary that died outside a test.
[[ $errors -eq 0 ]] || line+=", $errors errors"
printf '\n%s\n' "$line"
