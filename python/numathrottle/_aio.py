"""The client for asyncio."""

from __future__ import annotations

import asyncio
import functools
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Optional, Tuple, Type, TypeVar, Union

from ._errors import NumathrottleError, PermitEnded, Unavailable
from ._protocol import (
    CONNECT_TIMEOUT,
    DEFAULT_ADDRESS,
    MAX_ANSWER,
    SLACK,
    Outcome,
    PermitState,
    acquire_fields,
    decode,
    encode,
    granted,
    headers,
    log,
    parse_address,
    pause_fields,
    why,
)

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])
_Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]

# How many connections are kept for the next call.
IDLE = 256


class AsyncPermit(PermitState):
    """The right to use some tokens."""

    def __init__(self, limiter: "AsyncLimiter", name: str, tokens: int, lease: float) -> None:
        super().__init__(name, tokens, lease)
        self._limiter = limiter

    async def settle(self, used: Optional[int] = None, outcome: Optional[Outcome] = None) -> None:
        """End the permit with what the call really cost; see Permit.settle."""
        if self.ended:
            return
        if used is not None:
            self.used = used
        if outcome is not None:
            self.outcome = outcome
        await self._limiter._call("/v1/settle", self.settle_fields())
        self.ended = True

    async def cancel(self) -> None:
        """Give all tokens back, because nothing was called."""
        if self.ended:
            return
        await self._limiter._call("/v1/cancel", {"permit": self.name})
        self.ended = True


class AsyncLimiter:
    """A limit, as the proxy hands it out, for one event loop. The arguments are those of Limiter."""

    def __init__(self, address: str = DEFAULT_ADDRESS, *, token: Optional[str] = None, tag: str = "") -> None:
        self._address = parse_address(address)
        self._headers = headers(self._address, token)
        self._tag = tag
        self._idle: List[_Streams] = []
        self._closed = False

    async def acquire(
        self,
        tokens: int = 1,
        *,
        tag: str = "",
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
        up_to: bool = False,
    ) -> AsyncPermit:
        """Wait for tokens and return a permit; see Limiter.acquire.

        A task that is cancelled while it waits draws nothing.
        """
        fields = acquire_fields(tokens, up_to, tag or self._tag, timeout, lease)
        out = await self._call("/v1/acquire", fields, wait=3600.0 if timeout is None else timeout)
        return AsyncPermit(self, *granted(out))

    @asynccontextmanager
    async def permit(
        self,
        tokens: int = 1,
        *,
        tag: str = "",
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
        up_to: bool = False,
    ) -> AsyncIterator[AsyncPermit]:
        """Return a context manager that acquires a permit, and settles it at the end; see Limiter.permit."""
        p = await self.acquire(tokens, tag=tag, timeout=timeout, lease=lease, up_to=up_to)
        try:
            yield p
        finally:
            # A task that was cancelled tells the proxy all the same.
            await asyncio.shield(self._end(p))

    async def _end(self, p: AsyncPermit) -> None:
        try:
            await p.settle()
        except PermitEnded as err:
            log.warning("a permit of %d tokens counts as drawn: %s", p.tokens, err)
        except NumathrottleError as err:
            log.warning("a permit of %d tokens could not be settled, and counts as drawn: %s", p.tokens, err)

    async def _give_back(self, p: AsyncPermit) -> None:
        try:
            await p.cancel()
        except NumathrottleError as err:
            log.warning("a permit of %d tokens could not be cancelled, and counts as drawn: %s", p.tokens, err)

    def limited(
        self,
        tokens: Union[int, Callable[..., int]] = 1,
        *,
        tag: Union[str, Callable[..., str]] = "",
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
    ) -> Callable[[F], F]:
        """Return a decorator for functions with async def; see Limiter.limited."""

        def decorate(function: F) -> F:
            @functools.wraps(function)
            async def wrapped(*args: Any, **kwargs: Any) -> Any:
                n = tokens(*args, **kwargs) if callable(tokens) else tokens
                of = tag(*args, **kwargs) if callable(tag) else tag
                async with self.permit(n, tag=of, timeout=timeout, lease=lease):
                    return await function(*args, **kwargs)

            return wrapped  # type: ignore[return-value]

        return decorate

    async def retry_after(self, seconds: float, *, reason: str = "", tag: str = "") -> None:
        """Tell the limit that the service wants to be left alone for so long."""
        fields = {"retry_after_seconds": seconds, "reason": reason or None, "tag": tag or self._tag or None}
        await self._call("/v1/report", fields)

    async def pause(self, seconds: Optional[float] = None, *, reason: str = "", tag: str = "") -> Dict[str, Any]:
        """Pause all processes of the pool; see Limiter.pause."""
        return await self._call("/v1/pause", pause_fields(seconds, reason, tag, False))

    async def resume(self, *, tag: str = "") -> None:
        """End a pause."""
        await self._call("/v1/pause", pause_fields(None, "", tag, True))

    async def close(self) -> None:
        """Close the connections that no call uses."""
        self._closed = True
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()

    async def __aenter__(self) -> "AsyncLimiter":
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def _call(self, path: str, fields: Dict[str, Any], wait: float = 0.0) -> Dict[str, Any]:
        """Make one call, on a connection that was kept or else on a new one."""
        body = encode(fields)
        while self._idle:
            try:
                return await self._send(self._idle.pop(), path, body, wait)
            except (ConnectionError, asyncio.IncompleteReadError):
                continue  # the proxy has closed it meanwhile
            except (OSError, asyncio.TimeoutError) as err:
                raise Unavailable(f"the proxy at {self._address.text} did not answer: {why(err)}") from err
        try:
            streams = await asyncio.wait_for(self._connect(), CONNECT_TIMEOUT)
            return await self._send(streams, path, body, wait)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as err:
            raise Unavailable(f"the proxy at {self._address.text} cannot be reached: {why(err)}") from err

    async def _connect(self) -> _Streams:
        if self._address.path:
            return await asyncio.open_unix_connection(self._address.path)
        return await asyncio.open_connection(self._address.host, self._address.port)

    async def _send(self, streams: _Streams, path: str, body: bytes, wait: float) -> Dict[str, Any]:
        reader, writer = streams
        keep = False
        try:
            head = [f"POST {path} HTTP/1.1"]
            head += [f"{name}: {value}" for name, value in self._headers.items()]
            head += [f"Content-Length: {len(body)}", "", ""]
            writer.write("\r\n".join(head).encode("ascii") + body)
            await writer.drain()
            status, keep, content = await asyncio.wait_for(_read(reader), wait + SLACK)
            return decode(status, content)
        finally:
            if keep and not self._closed and len(self._idle) < IDLE:
                self._idle.append(streams)
            else:
                writer.close()


async def _read(reader: asyncio.StreamReader) -> Tuple[int, bool, bytes]:
    """Read an answer: its status, whether the connection stays open, and its body."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        fields = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            fields[name.strip().lower()] = value.strip()
        if fields.get("transfer-encoding", "").lower() == "chunked":
            body = await _read_chunks(reader)
        else:
            length = int(fields["content-length"])
            if not 0 <= length <= MAX_ANSWER:
                raise Unavailable(f"the proxy's answer is longer than {MAX_ANSWER} bytes")
            body = await reader.readexactly(length)
    except (ValueError, IndexError, KeyError, asyncio.LimitOverrunError):
        raise Unavailable("the proxy answered with something else than HTTP/1.1") from None
    return status, fields.get("connection", "").lower() != "close", body


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if size < 0 or len(body) + size > MAX_ANSWER:
            raise Unavailable(f"the proxy's answer is longer than {MAX_ANSWER} bytes")
        body += await reader.readexactly(size)
        if await reader.readexactly(2) != b"\r\n":
            raise ValueError("chunk")
        if size == 0:
            return body
