"""What the clients with and without asyncio have in common."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Any, Dict, Literal, Optional, Tuple
from urllib.parse import urlsplit

from ._errors import Unavailable, from_answer

DEFAULT_ADDRESS = "http://127.0.0.1:7070"
"""Where ``numathrottle proxy permits`` listens by default."""

Outcome = Literal["accepted", "refused", "overloaded"]
"""What a service made of a call: refused is HTTP 429, overloaded 503, accepted all else below 500."""

MAX_ANSWER = 1 << 20
CONNECT_TIMEOUT = 5.0
# What a call may take beside the time that it waits in the proxy.
SLACK = 15.0

log = logging.getLogger("numathrottle")


@dataclass(frozen=True)
class Address:
    """Where the proxy listens: a path, or a host and a port."""

    path: str = ""
    host: str = ""
    port: int = 0

    @property
    def header(self) -> str:
        """The header Host."""
        if self.path:
            return "localhost"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def text(self) -> str:
        """The address as parse_address reads it."""
        return f"unix:{self.path}" if self.path else f"http://{self.header}"


def parse_address(text: str) -> Address:
    """Read "unix:/path" or "http://host:port". Raise ValueError for another text."""
    if text.startswith("unix:"):
        path = "/" + text[len("unix:") :].lstrip("/")
        if path == "/":
            raise ValueError(f"address is {text!r}, allowed: unix:/PATH or http://HOST:PORT")
        return Address(path=path)
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme != "http" or not parts.hostname or not port or parts.path not in ("", "/") or parts.query or parts.username:
        raise ValueError("address is not as it should be, allowed: unix:/PATH or http://HOST:PORT")
    return Address(host=parts.hostname, port=port)


def why(err: BaseException) -> str:
    """Return what an error says, or what it is: a timeout says nothing."""
    return str(err) or type(err).__name__


def headers(address: Address, token: Optional[str]) -> Dict[str, str]:
    """Return the headers of each call."""
    out = {"Host": address.header, "Content-Type": "application/json", "Accept": "application/json"}
    if token:
        if any(ord(c) <= 32 or ord(c) > 126 for c in token):
            raise ValueError("token has a character that a header cannot hold (not shown), allowed: visible ASCII")
        out["Authorization"] = "Bearer " + token
    return out


def encode(fields: Dict[str, Any]) -> bytes:
    """Return the body of a call. Fields that are None are left out."""
    return json.dumps({k: v for k, v in fields.items() if v is not None}).encode()


def decode(status: int, body: bytes) -> Dict[str, Any]:
    """Return what an answer says, or raise what it stands for."""
    try:
        out = json.loads(body)
    except ValueError:
        raise Unavailable(f"the proxy answered with status {status}, and not with JSON") from None
    if status != 200:
        raise from_answer(status, out)
    if not isinstance(out, dict):
        raise Unavailable("the proxy answered with something else than a JSON object")
    return out


def acquire_fields(
    tokens: int, up_to: bool, tag: str, timeout: Optional[float], lease: Optional[float]
) -> Dict[str, Any]:
    """Return the fields of an acquire."""
    return {
        "tokens": tokens,
        "up_to": up_to or None,
        "tag": tag or None,
        "timeout_seconds": timeout,
        "lease_seconds": lease,
    }


def pause_fields(seconds: Optional[float], reason: str, tag: str, resume: bool) -> Dict[str, Any]:
    """Return the fields of a pause."""
    return {"seconds": seconds, "reason": reason or None, "tag": tag or None, "resume": resume or None}


def granted(out: Dict[str, Any]) -> Tuple[str, int, float]:
    """Return the permit's name, its tokens and its lease."""
    permit, tokens, lease = out.get("permit"), out.get("tokens"), out.get("lease_seconds")
    if not isinstance(permit, str) or not isinstance(tokens, int) or not isinstance(lease, (int, float)):
        raise Unavailable("the proxy answered without a permit")
    return permit, tokens, float(lease)


class PermitState:
    """What a permit knows of itself."""

    def __init__(self, name: str, tokens: int, lease: float) -> None:
        self.name = name
        self.tokens = tokens
        """How many tokens the permit holds."""
        self.lease = lease
        """After so many seconds the permit counts as drawn, unless it has ended."""
        self.used: Optional[int] = None
        """What the call really cost; None is what was drawn."""
        self.outcome: Optional[Outcome] = None
        """What the service made of the call; None tells nobody."""
        self.ended = False
        """Whether the permit was settled or cancelled."""

    def settle_fields(self) -> Dict[str, Any]:
        return {"permit": self.name, "used": self.used, "outcome": self.outcome}
