"""The client for threads."""

from __future__ import annotations

import functools
import http.client
import socket
import threading
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Type, TypeVar, Union

from ._errors import NumathrottleError, PermitEnded, Unavailable
from ._protocol import (
    CONNECT_TIMEOUT,
    DEFAULT_ADDRESS,
    MAX_ANSWER,
    SLACK,
    Address,
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

F = TypeVar("F", bound=Callable[..., Any])

# How many connections are kept for the next call.
IDLE = 64


class _Connection(http.client.HTTPConnection):
    """A connection to a unix socket, or to a host and port."""

    def __init__(self, address: Address) -> None:
        super().__init__(address.host or "localhost", address.port or 80, timeout=CONNECT_TIMEOUT)
        self._address = address

    def connect(self) -> None:
        if not self._address.path:
            super().connect()
            return
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(CONNECT_TIMEOUT)
        try:
            sock.connect(self._address.path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class Permit(PermitState):
    """The right to use some tokens. Methods may be called from any thread, one at a time."""

    def __init__(self, limiter: "Limiter", name: str, tokens: int, lease: float) -> None:
        super().__init__(name, tokens, lease)
        self._limiter = limiter

    def settle(self, used: Optional[int] = None, outcome: Optional[Outcome] = None) -> None:
        """End the permit with what the call really cost; by default self.used, or what was drawn.

        Raises PermitEnded when its lease was over, BadRequest and Unavailable. Once it has ended it
        does nothing.
        """
        if self.ended:
            return
        if used is not None:
            self.used = used
        if outcome is not None:
            self.outcome = outcome
        self._limiter._call("/v1/settle", self.settle_fields())
        self.ended = True

    def cancel(self) -> None:
        """Give all tokens back, because nothing was called. Errors are those of settle."""
        if self.ended:
            return
        self._limiter._call("/v1/cancel", {"permit": self.name})
        self.ended = True


class Limiter:
    """A limit, as the proxy hands it out. It may be used from any number of threads.

    address is "http://HOST:PORT" or "unix:/PATH". token is what the proxy asks for, if it does.
    tag names a tenant, model or destination, for calls that name none. Raises ValueError for an
    address or a token that is none.
    """

    def __init__(self, address: str = DEFAULT_ADDRESS, *, token: Optional[str] = None, tag: str = "") -> None:
        self._address = parse_address(address)
        self._headers = headers(self._address, token)
        self._tag = tag
        self._lock = threading.Lock()
        self._idle: List[_Connection] = []
        self._closed = False

    def acquire(
        self,
        tokens: int = 1,
        *,
        tag: str = "",
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
        up_to: bool = False,
    ) -> Permit:
        """Wait for tokens and return a permit, which the caller settles or cancels.

        timeout is how long to wait, in seconds: 0 is not at all, None what the proxy is configured
        with. lease is how long the permit is good for. With up_to the permit has as many tokens as
        there are, at least one. Raises Throttled, BadRequest and Unavailable.
        """
        fields = acquire_fields(tokens, up_to, tag or self._tag, timeout, lease)
        out = self._call("/v1/acquire", fields, wait=3600.0 if timeout is None else timeout)
        return Permit(self, *granted(out))

    @contextmanager
    def permit(
        self,
        tokens: int = 1,
        *,
        tag: str = "",
        timeout: Optional[float] = None,
        lease: Optional[float] = None,
        up_to: bool = False,
    ) -> Iterator[Permit]:
        """Return a context manager that acquires a permit, and settles it at the end of the block.

        A block that raises is settled, too: its call counts. Set used and outcome of the permit, or
        cancel it. Raises what acquire raises; what fails at the end is logged.
        """
        p = self.acquire(tokens, tag=tag, timeout=timeout, lease=lease, up_to=up_to)
        try:
            yield p
        finally:
            self._end(p)

    def _end(self, p: Permit) -> None:
        try:
            p.settle()
        except PermitEnded as err:
            log.warning("a permit of %d tokens counts as drawn: %s", p.tokens, err)
        except NumathrottleError as err:
            log.warning("a permit of %d tokens could not be settled, and counts as drawn: %s", p.tokens, err)

    def _give_back(self, p: Permit) -> None:
        try:
            p.cancel()
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
        """Return a decorator: each call of the function draws a permit first.

        tokens and tag may be functions of the arguments of the call.
        """

        def decorate(function: F) -> F:
            @functools.wraps(function)
            def wrapped(*args: Any, **kwargs: Any) -> Any:
                n = tokens(*args, **kwargs) if callable(tokens) else tokens
                of = tag(*args, **kwargs) if callable(tag) else tag
                with self.permit(n, tag=of, timeout=timeout, lease=lease):
                    return function(*args, **kwargs)

            return wrapped  # type: ignore[return-value]

        return decorate

    def retry_after(self, seconds: float, *, reason: str = "", tag: str = "") -> None:
        """Tell the limit that the service wants to be left alone for so long."""
        fields = {"retry_after_seconds": seconds, "reason": reason or None, "tag": tag or self._tag or None}
        self._call("/v1/report", fields)

    def pause(self, seconds: Optional[float] = None, *, reason: str = "", tag: str = "") -> Dict[str, Any]:
        """Pause all processes of the pool, until somebody resumes if seconds is None.

        Returns what the proxy says: until, answered and missing.
        """
        return self._call("/v1/pause", pause_fields(seconds, reason, tag, False))

    def resume(self, *, tag: str = "") -> None:
        """End a pause."""
        self._call("/v1/pause", pause_fields(None, "", tag, True))

    def close(self) -> None:
        """Close the connections that no call uses."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> "Limiter":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    def _take(self) -> Optional[_Connection]:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _keep(self, connection: _Connection) -> None:
        with self._lock:
            if not self._closed and len(self._idle) < IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def _call(self, path: str, fields: Dict[str, Any], wait: float = 0.0) -> Dict[str, Any]:
        """Make one call, on a connection that was kept or else on a new one."""
        body = encode(fields)
        kept = self._take()
        while kept is not None:
            try:
                return self._send(kept, path, body, wait)
            except (ConnectionError, http.client.BadStatusLine):
                # The proxy has closed it meanwhile. An acquire that was granted in spite of that
                # counts as drawn after its lease; the other calls can be repeated.
                kept = self._take()
            except (OSError, http.client.HTTPException) as err:
                raise Unavailable(f"the proxy at {self._address.text} did not answer: {why(err)}") from err
        try:
            return self._send(_Connection(self._address), path, body, wait)
        except (OSError, http.client.HTTPException) as err:
            raise Unavailable(f"the proxy at {self._address.text} cannot be reached: {why(err)}") from err

    def _send(self, connection: _Connection, path: str, body: bytes, wait: float) -> Dict[str, Any]:
        keep = False
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(wait + SLACK)
            connection.request("POST", path, body=body, headers=self._headers)
            answer = connection.getresponse()
            content = answer.read(MAX_ANSWER + 1)
            if len(content) > MAX_ANSWER:
                raise Unavailable(f"the proxy's answer is longer than {MAX_ANSWER} bytes")
            keep = not answer.will_close
            return decode(answer.status, content)
        finally:
            if keep:
                self._keep(connection)
            else:
                connection.close()
