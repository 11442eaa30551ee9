"""A real proxy for the tests. PERMITS_PROGRAM names the binary numathrottle."""

import os
import re
import subprocess
import tempfile
import time
import unittest

TOKEN = "hunter2-canary"


class Proxy:
    """numathrottle proxy permits, at a unix socket and a free port."""

    def __init__(self, *flags: str, token: str = "") -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.unix = "unix:" + os.path.join(self.folder.name, "s")
        env = {"PATH": os.environ.get("PATH", "")}
        if token:
            env["NUMATHROTTLE_PROXY_TOKEN"] = token
        self.log = os.path.join(self.folder.name, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [
                    os.environ["PERMITS_PROGRAM"], "proxy", "permits", "--id=i", "--state-dir=none", "--grace=10ms",
                    "--listen=127.0.0.1:0," + self.unix, *flags,
                ],
                env=env, stderr=log, stdout=log,
            )
        deadline = time.monotonic() + 20
        while "addresses=" not in self.text():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.text())
            time.sleep(0.01)
        port = re.search(r"127\.0\.0\.1:(\d+)", self.text())
        assert port
        self.http = "http://127.0.0.1:" + port.group(1)

    def text(self) -> str:
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self.kill()
        text = self.text()
        self.folder.cleanup()
        if TOKEN in text:
            raise AssertionError("the token is in the log")


class Case(unittest.TestCase):
    """A test with proxies that end with it."""

    def proxy(self, *flags: str, token: str = "") -> Proxy:
        p = Proxy(*flags, token=token)
        self.addCleanup(p.close)
        return p
