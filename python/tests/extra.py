"""Tests of what needs another package. They are skipped without it, unless NUMATHROTTLE_REQUIRE_STORES is set."""

import importlib.util
import os
import unittest


def need(*packages: str) -> None:
    missing = [p for p in packages if importlib.util.find_spec(p) is None]
    if not missing:
        return
    if os.environ.get("NUMATHROTTLE_REQUIRE_STORES"):
        raise ImportError(f"not installed: {', '.join(missing)}; run scripts/test-deps.sh")
    raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
