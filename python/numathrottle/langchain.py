"""A rate limiter for LangChain's chat models::

    model = init_chat_model("openai:gpt-5", rate_limiter=RateLimiter(), max_retries=0)

LangChain tells a rate limiter nothing of the tokens of a call, and not when it ends. So this one limits
requests, and neither tokens nor calls in flight. For these give the model's client a Transport of
numathrottle.httpx, which does both.

It needs langchain-core: ``pip install numathrottle[langchain]``.
"""

from __future__ import annotations

from typing import Optional

from langchain_core.rate_limiters import BaseRateLimiter

from ._aio import AsyncLimiter
from ._errors import Throttled
from ._protocol import DEFAULT_ADDRESS
from ._sync import Limiter

__all__ = ["RateLimiter"]


class RateLimiter(BaseRateLimiter):
    """Draws one token before each call of a model.

    address, token and tag are those of Limiter. timeout is how long a call waits, in seconds; None is
    what the proxy is configured with. It may be used from any number of threads and event loops.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        *,
        token: Optional[str] = None,
        tag: str = "",
        timeout: Optional[float] = None,
    ) -> None:
        self._limiter = Limiter(address, token=token, tag=tag)
        self._for_a_loop = lambda: AsyncLimiter(address, token=token, tag=tag)
        self._timeout = timeout

    def acquire(self, *, blocking: bool = True) -> bool:
        """Wait for a token and return True; without blocking return at once whether there was one.

        Raises Throttled if none comes in time, since LangChain makes the call whatever is returned;
        BadRequest and Unavailable, also without blocking.
        """
        try:
            permit = self._limiter.acquire(1, timeout=self._timeout if blocking else 0)
        except Throttled:
            if blocking:
                raise
            return False
        self._limiter._end(permit)
        return True

    async def aacquire(self, *, blocking: bool = True) -> bool:
        """Do the same with asyncio. A task that is cancelled while it waits draws nothing."""
        async with self._for_a_loop() as limiter:
            try:
                permit = await limiter.acquire(1, timeout=self._timeout if blocking else 0)
            except Throttled:
                if blocking:
                    raise
                return False
            await limiter._end(permit)
        return True

    def close(self) -> None:
        """Close the connections that no call uses."""
        self._limiter.close()
