"""Permits of one rate limit over many processes.

A :class:`Limiter`, or an :class:`AsyncLimiter` with asyncio, asks ``numathrottle proxy permits``,
which runs beside the program::

    limiter = Limiter()
    with limiter.permit(tokens=1200) as p:
        answer = ask(prompt)
        p.used = answer.usage.total_tokens
"""

from ._aio import AsyncLimiter, AsyncPermit
from ._errors import BadRequest, NumathrottleError, PermitEnded, Throttled, Unavailable
from ._protocol import DEFAULT_ADDRESS, Outcome
from ._sync import Limiter, Permit

__all__ = [
    "DEFAULT_ADDRESS",
    "AsyncLimiter",
    "AsyncPermit",
    "BadRequest",
    "Limiter",
    "NumathrottleError",
    "Outcome",
    "Permit",
    "PermitEnded",
    "Throttled",
    "Unavailable",
]
