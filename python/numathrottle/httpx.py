"""Transports for httpx: each request draws a permit, and its answer settles it.

They work under an httpx client, and under any library that takes one::

    client = httpx.Client(transport=Transport(Limiter(), tokens=1200, used=total_tokens))
    OpenAI(http_client=client, max_retries=0)

It needs httpx: ``pip install numathrottle[httpx]``.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import math
from typing import Any, AsyncIterator, Callable, Dict, Generic, Iterator, List, Optional, Type, TypeVar, Union

import httpx

from ._aio import AsyncLimiter, AsyncPermit
from ._errors import NumathrottleError
from ._protocol import Outcome, PermitState, log
from ._sync import Limiter, Permit

__all__ = ["AsyncTransport", "Transport", "total_tokens"]

LONGEST_ANSWER = 16 << 20
"""Of a longer answer, in bytes, the usage is not read: it counts as drawn."""

LONGEST_PAUSE = 300.0
"""The longest time, in seconds, for which the limit is told that a service wants to be left alone."""

# Of these errors the request surely never left.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)


_L = TypeVar("_L", bound=Union[Limiter, AsyncLimiter])
_T = TypeVar("_T", bound=Union[httpx.BaseTransport, httpx.AsyncBaseTransport])


class _Throttling(Generic[_L, _T]):
    """What both transports have."""

    _limiters: Type[_L]
    _new: Type[_T]

    def __init__(
        self,
        limiter: _L,
        transport: Optional[_T] = None,
        *,
        tokens: Union[int, Callable[[httpx.Request], int]] = 1,
        tag: Union[str, Callable[[httpx.Request], str]] = "",
        used: Optional[Callable[[httpx.Response], Optional[int]]] = None,
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
    ) -> None:
        if not isinstance(limiter, self._limiters):
            raise TypeError(f"limiter is of type {type(limiter).__name__}, allowed: {self._limiters.__name__}")
        if used is not None and not callable(used):
            raise TypeError(f"used is {used!r}, allowed: a function of the response, or None")
        self._limiter = limiter
        self._transport = self._new() if transport is None else transport
        self._tokens = tokens
        self._tag = tag
        self._used = used
        self._timeout = timeout
        self._lease = lease

    def _draw(self, request: httpx.Request) -> Dict[str, Any]:
        """Return the arguments of acquire."""
        return {
            "tokens": self._tokens(request) if callable(self._tokens) else self._tokens,
            "tag": self._tag(request) if callable(self._tag) else self._tag,
            "timeout": self._timeout,
            "lease": self._lease,
        }


class _Answer:
    """The answer to one call, as its body is read."""

    def __init__(
        self, used: Optional[Callable[[httpx.Response], Optional[int]]], response: httpx.Response, permit: PermitState
    ) -> None:
        self._used = used if response.status_code < 400 else None
        self._response = response
        self._permit = permit
        self._parts: List[bytes] = []
        self._size = 0
        self.complete = False
        self.ended = False
        permit.outcome = _outcome(response.status_code)

    def saw(self, part: bytes) -> None:
        """Take a part of the body."""
        if self._used is None:
            return
        self._size += len(part)
        if self._size > LONGEST_ANSWER:
            self._used, self._parts = None, []
            return
        self._parts.append(part)

    def end(self) -> bool:
        """Set what the permit is settled with. Return False if that was done before."""
        if self.ended:
            return False
        self.ended = True
        if self._used is None:
            return True
        try:
            whole = httpx.Response(
                self._response.status_code, headers=self._response.headers, content=b"".join(self._parts)
            )
            used = self._used(whole)
        except Exception as err:  # whatever it is, the call has been made
            log.warning("the usage of an answer could not be read, and the call counts as drawn: %s", type(err).__name__)
            used = None
        if used is not None and (isinstance(used, bool) or not isinstance(used, int) or used < 0):
            log.warning("the usage of an answer is %.40r, allowed: a whole number, 0 or more; the call counts as drawn", used)
            used = None
        if used is not None and not self.complete:
            used = max(used, self._permit.tokens)  # an answer that broke off costs no less than was drawn
        self._permit.used = used
        return True


class Transport(_Throttling[Limiter, httpx.BaseTransport], httpx.BaseTransport):
    """A transport that draws a permit for each request, and settles it at the end of the answer.

    limiter is asked for the permits; transport sends the requests, by default an httpx.HTTPTransport.
    An httpx.Client with a transport ignores its own verify, cert, http2 and limits: give them to
    that one. tokens and tag are what a request draws, or functions of it. used is a function of the
    whole answer that returns what the call really cost, such as total_tokens; None, its result or
    the argument, is what was drawn. timeout and lease are those of Limiter.acquire; a permit
    whose lease ends before its answer counts as drawn, so give long answers a longer one.

    An attempt that failed or was refused counts as drawn; if there was no connection, all tokens come
    back. The limit is told of refusals, and of Retry-After with status 429. It may be used from any
    number of threads. Closing it closes transport, and not limiter.

    Requests raise Throttled, BadRequest and Unavailable, besides what transport raises. None of them is
    an httpx.HTTPError. Once a request was sent, a limiter that cannot be reached only logs a warning.
    """

    _limiters = Limiter
    _new = httpx.HTTPTransport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        draw = self._draw(request)
        permit = self._limiter.acquire(**draw)
        try:
            response = self._transport.handle_request(request)
        except _UNSENT:
            self._limiter._give_back(permit)
            raise
        except BaseException:
            self._limiter._end(permit)
            raise
        answer = _Answer(self._used, response, permit)
        seconds = _retry_after(response)
        if seconds is not None:
            try:
                self._limiter.retry_after(seconds, reason="the service answered with status 429", tag=draw["tag"])
            except NumathrottleError as err:
                log.warning("the limit was not told of a Retry-After: %s", err)
        return _with_stream(response, _Stream(response.stream, answer, self._limiter, permit))

    def close(self) -> None:
        self._transport.close()


class AsyncTransport(_Throttling[AsyncLimiter, httpx.AsyncBaseTransport], httpx.AsyncBaseTransport):
    """Transport for an httpx.AsyncClient, with an AsyncLimiter, for asyncio. The arguments are those of Transport."""

    _limiters = AsyncLimiter
    _new = httpx.AsyncHTTPTransport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        draw = self._draw(request)
        permit = await self._limiter.acquire(**draw)
        try:
            response = await self._transport.handle_async_request(request)
        except _UNSENT:
            await asyncio.shield(self._limiter._give_back(permit))
            raise
        except BaseException:
            await asyncio.shield(self._limiter._end(permit))
            raise
        answer = _Answer(self._used, response, permit)
        stream = _AsyncStream(response.stream, answer, self._limiter, permit)
        seconds = _retry_after(response)
        if seconds is not None:
            try:
                await self._limiter.retry_after(seconds, reason="the service answered with status 429", tag=draw["tag"])
            except NumathrottleError as err:
                log.warning("the limit was not told of a Retry-After: %s", err)
            except BaseException:
                await stream.aclose()  # a task that was cancelled
                raise
        return _with_stream(response, stream)

    async def aclose(self) -> None:
        await self._transport.aclose()


class _Stream(httpx.SyncByteStream):
    """The body of an answer, at whose end the permit is settled."""

    def __init__(self, stream: Any, answer: _Answer, limiter: Limiter, permit: Permit) -> None:
        self._stream = stream
        self._answer = answer
        self._limiter = limiter
        self._permit = permit

    def __iter__(self) -> Iterator[bytes]:
        for part in self._stream:
            self._answer.saw(part)
            yield part
        self._answer.complete = True

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            if self._answer.end():
                self._limiter._end(self._permit)


class _AsyncStream(httpx.AsyncByteStream):
    """The same with asyncio."""

    def __init__(self, stream: Any, answer: _Answer, limiter: AsyncLimiter, permit: AsyncPermit) -> None:
        self._stream = stream
        self._answer = answer
        self._limiter = limiter
        self._permit = permit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            self._answer.saw(part)
            yield part
        self._answer.complete = True

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            if self._answer.end():
                await asyncio.shield(self._limiter._end(self._permit))


def _with_stream(response: httpx.Response, stream: Any) -> httpx.Response:
    """Return the response with another body: a response that was read before would never read it."""
    return httpx.Response(
        response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
    )


def _outcome(status: int) -> Optional[Outcome]:
    if status == 429:
        return "refused"
    if status in (503, 529):
        return "overloaded"
    return "accepted" if status < 500 else None


def _retry_after(response: httpx.Response) -> Optional[float]:
    """Return how many seconds a service wants to be left alone, if it says so with status 429."""
    if response.status_code != 429:
        return None
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = response.headers.get(name, "")
        try:
            seconds = float(text) * unit
        except ValueError:
            now = response.headers.get("date") or email.utils.formatdate(usegmt=True)
            seconds = _until(text, now) if unit == 1.0 else 0.0
        if math.isfinite(seconds) and seconds > 0:
            return min(seconds, LONGEST_PAUSE)
    return None


def _until(end: str, now: str) -> float:
    """Return the seconds between two HTTP dates; 0 if one of them is none."""
    try:
        return (email.utils.parsedate_to_datetime(end) - email.utils.parsedate_to_datetime(now)).total_seconds()
    except (TypeError, ValueError, IndexError):
        return 0.0


def total_tokens(response: httpx.Response) -> Optional[int]:
    """Return how many tokens an LLM's answer reports, of prompt and output together; None if it reports none.

    It reads the usage of OpenAI, Anthropic, Gemini and services like them, in JSON or in a stream of
    events. OpenAI's streams report usage only with stream_options.include_usage.
    """
    fields: Dict[str, int] = {}
    text = response.text
    if text.lstrip().startswith(("{", "[")):
        events = [text]
    else:
        events = [line[len("data:") :] for line in text.splitlines() if line.startswith("data:")]
    for event in events:
        try:
            value = json.loads(event)
        except ValueError:
            continue  # such as [DONE]
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                _merge(fields, item)
    for total in ("total_tokens", "totalTokenCount"):
        if total in fields:
            return fields[total]
    parts = [fields[name] for name in _PARTS if name in fields]
    return sum(parts) if parts else None


_PARTS = (
    "prompt_tokens", "completion_tokens", "input_tokens", "output_tokens",
    "cache_creation_input_tokens", "cache_read_input_tokens",
)  # fmt: skip


def _merge(fields: Dict[str, int], event: Dict[str, Any]) -> None:
    """Note the usage in one event; of two figures the later counts."""
    for holder in (event, event.get("message"), event.get("response")):
        if not isinstance(holder, dict):
            continue
        for name in ("usage", "usageMetadata"):
            usage = holder.get(name)
            if isinstance(usage, dict):
                fields.update({k: v for k, v in usage.items() if isinstance(v, int) and not isinstance(v, bool) and v >= 0})
