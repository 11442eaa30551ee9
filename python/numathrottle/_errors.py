"""The errors of the package. None of them holds a token."""

from __future__ import annotations

from typing import Any, Mapping, Optional


class NumathrottleError(Exception):
    """The base of all errors of this package."""


class Throttled(NumathrottleError):
    """The tokens do not come in time.

    reason says why, in the words of the proxy, such as "limit" or "pause". limit and tag name what
    holds the call back, and are empty when that is not known. tokens is how many were asked for.
    retry_after is when to try again, in seconds, and None when that is not known.
    """

    def __init__(
        self,
        message: str,
        reason: str = "",
        limit: str = "",
        tag: str = "",
        tokens: int = 0,
        retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.limit = limit
        self.tag = tag
        self.tokens = tokens
        self.retry_after = retry_after


class BadRequest(NumathrottleError, ValueError):
    """An argument is not allowed, or the token is wrong. field names the argument, if it is one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class PermitEnded(NumathrottleError):
    """The permit had ended before, or the proxy does not know it. It counts as drawn."""


class Unavailable(NumathrottleError):
    """The proxy cannot be reached, or cannot do what it was asked.

    A permit that was granted all the same counts as drawn after its lease.
    """

    def __init__(self, message: str, retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


def from_answer(status: int, body: Any) -> NumathrottleError:
    """Return the error that an answer of the proxy stands for."""
    error: Mapping[str, Any] = {}
    if isinstance(body, dict) and isinstance(body.get("error"), dict):
        error = body["error"]
    reason = str(error.get("reason", ""))
    message = str(error.get("message", "")) or f"the proxy answered with status {status}"
    retry_after = error.get("retry_after_seconds")
    if not isinstance(retry_after, (int, float)):
        retry_after = None
    if reason == "not_open":
        return PermitEnded(message)
    if status in (422, 429):
        tokens = error.get("tokens", 0)
        return Throttled(
            message,
            reason=reason,
            limit=str(error.get("limit", "")),
            tag=str(error.get("tag", "")),
            tokens=tokens if isinstance(tokens, int) else 0,
            retry_after=retry_after,
        )
    if 400 <= status < 500:
        return BadRequest(message, field=str(error.get("field", "")))
    return Unavailable(message, retry_after)
