import asyncio
import gzip
import json
import logging
import unittest
from typing import Any, Awaitable, Callable, Iterator, List, Optional

from numathrottle import AsyncLimiter, BadRequest, Limiter, Throttled, Unavailable

from .extra import need
from .proxy import TOKEN, Case
from .service import Answer, Service, usage

need("httpx")

import httpx  # noqa: E402

from numathrottle.httpx import AsyncTransport, Transport, total_tokens  # noqa: E402



class Settling(Limiter):
    """A limiter that knows how its permits ended."""

    settled: List[Optional[int]] = []
    cancelled = 0
    outcome: Optional[str] = None

    def _end(self, p: Any) -> None:
        self.settled = [*self.settled, p.used]
        self.outcome = p.outcome
        super()._end(p)

    def _give_back(self, p: Any) -> None:
        self.cancelled += 1
        super()._give_back(p)


class TestTransport(Case):
    def limiter(self, *flags: str) -> Limiter:
        limiter = Limiter(self.proxy(*flags).unix)
        self.addCleanup(limiter.close)
        return limiter

    def settling(self) -> Settling:
        limiter = Settling(self.proxy("--max=10000").unix)
        self.addCleanup(limiter.close)
        return limiter

    def client(self, limiter: Limiter, inner: Optional[httpx.BaseTransport] = None, **options: Any) -> httpx.Client:
        client = httpx.Client(transport=Transport(limiter, inner, timeout=20, **options))
        self.addCleanup(client.close)
        return client

    def slot(self) -> Limiter:
        """Return a limiter of one call in flight."""
        return self.limiter("--in-flight=1")

    def test_a_request_holds_its_permit_until_its_answer_was_read(self) -> None:
        limiter = self.slot()
        service = Service(self, (200, {}, b"hello"))
        client = self.client(limiter)
        with client.stream("GET", service.url) as answer:
            with self.assertRaises(Throttled):
                limiter.acquire(timeout=0)
            self.assertEqual(b"".join(answer.iter_bytes()), b"hello")
            limiter.acquire(timeout=0).cancel()
        with client.stream("GET", service.url):
            pass  # it is closed before its end
        limiter.acquire(timeout=0).cancel()
        self.assertEqual(client.post(service.url, content=b"x").text, "hello")
        limiter.acquire(timeout=0).cancel()

    def test_tokens_and_tag_may_be_functions_of_the_request(self) -> None:
        service = Service(self, (200, {}, b""))
        client = self.client(
            self.limiter("--max=100"), tokens=lambda r: int(r.headers["n"]), tag=lambda r: r.headers["team"]
        )
        with self.assertRaises(Throttled) as caught:
            client.get(service.url, headers={"n": "1000", "team": "acme"})
        self.assertEqual((caught.exception.tokens, caught.exception.tag), (1000, "acme"))
        self.assertEqual(service.seen, [])

    def settled(self, answer: Optional[Answer], read: bool = True, **options: Any) -> Optional[int]:
        """Return what a permit of 10 tokens was settled with, None for what was drawn."""
        limiter = self.settling()
        client = self.client(limiter, tokens=10, **options)
        service = Service(self, answer)
        try:
            with client.stream("GET", service.url) as response:
                if read:
                    response.read()
        except httpx.RemoteProtocolError:
            self.assertIsNone(answer)
        self.assertEqual(len(limiter.settled), 1)
        return limiter.settled[0]

    def test_what_an_answer_says_was_used(self) -> None:
        status, headers, body = usage(7)
        self.assertEqual(self.settled(usage(7), used=total_tokens), 7)
        self.assertEqual(self.settled(usage(70), used=total_tokens), 70)
        self.assertEqual(self.settled((status, {"Content-Encoding": "gzip"}, gzip.compress(body)), used=total_tokens), 7)
        self.assertIsNone(self.settled(usage(7)), "no function")
        self.assertIsNone(self.settled((200, headers, b"{}"), used=total_tokens), "no usage")
        self.assertIsNone(self.settled((400, headers, body), used=total_tokens), "failed")
        self.assertIsNone(self.settled(None, used=total_tokens), "no answer")
        self.assertIn(self.settled(usage(7), read=False, used=total_tokens), (None, 10), "not read")

    def test_an_answer_that_broke_off_costs_no_less_than_was_drawn(self) -> None:
        class Broken(httpx.SyncByteStream):
            def __init__(self, n: int) -> None:
                self.n = n

            def __iter__(self) -> Iterator[bytes]:
                yield usage(self.n)[2]
                raise httpx.ReadError("broken")

        for n, want in ((3, 10), (30, 30)):
            limiter = self.settling()
            inner = httpx.MockTransport(lambda _: httpx.Response(200, stream=Broken(n)))
            with self.assertRaises(httpx.ReadError):
                self.client(limiter, inner, tokens=10, used=total_tokens).get("http://x")
            self.assertEqual(limiter.settled, [want])

    def test_usage_that_is_none(self) -> None:
        def fails(_: httpx.Response) -> int:
            raise KeyError(TOKEN)

        functions: Any = [fails, lambda _: -1, lambda _: True, lambda _: "7", lambda _: 7.5]
        for used in functions:
            with self.assertLogs("numathrottle", logging.WARNING) as logs:
                self.assertIsNone(self.settled(usage(7), used=used))
            self.assertNotIn(TOKEN, "".join(logs.output))

    def test_settlements_reach_the_limit(self) -> None:
        limiter = self.limiter("--max=100", "--per=100s", "--burst=100")
        client = self.client(limiter, used=total_tokens)
        client.get(Service(self, usage(51)).url)
        with self.assertRaises(Throttled) as caught:
            limiter.acquire(1, timeout=1)
        self.assertGreater(caught.exception.retry_after or 0, 40)

    def test_tokens_come_back_if_there_was_no_connection(self) -> None:
        limiter = self.limiter("--max=100", "--per=100s", "--burst=1", "--in-flight=1")

        def refuse(_: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("refused")

        limiter.acquire(timeout=60).cancel()
        with self.assertRaises(httpx.ConnectError):
            self.client(limiter, httpx.MockTransport(refuse)).get("http://x")
        with self.assertRaises(httpx.ConnectError):
            self.client(limiter).get("http://127.0.0.1:1")
        limiter.acquire(timeout=0).settle()

    def test_which_failures_count(self) -> None:
        for error, counts in (
            (httpx.ReadTimeout("x"), True), (httpx.RemoteProtocolError("x"), True), (httpx.WriteError("x"), True), (KeyError("x"), True),
            (httpx.ConnectError("x"), False), (httpx.ConnectTimeout("x"), False), (httpx.PoolTimeout("x"), False),
        ):  # fmt: skip
            limiter = Settling(self.proxy("--in-flight=1").unix)
            self.addCleanup(limiter.close)

            def fail(_: httpx.Request, error: Exception = error) -> httpx.Response:
                raise error

            with self.assertRaises(type(error)):
                self.client(limiter, httpx.MockTransport(fail)).get("http://x")
            self.assertEqual((limiter.settled, limiter.cancelled), ([None], 0) if counts else ([], 1), error)
            limiter.acquire(timeout=0).cancel()

    def test_refusals(self) -> None:
        limiter = self.limiter("--max=1000")
        client = self.client(limiter)
        self.assertEqual(client.get(Service(self, (429, {"Retry-After": "30"}, b"later")).url).status_code, 429)
        with self.assertRaises(Throttled) as caught:
            limiter.acquire(timeout=1)
        self.assertEqual(caught.exception.reason, "pause")
        self.assertGreater(caught.exception.retry_after or 0, 20)

    def test_retry_after(self) -> None:
        date = {"Date": "Sun, 06 Nov 1994 08:49:37 GMT"}
        for headers, want in (
            ({"Retry-After": "30"}, 30),
            ({"Retry-After": "1.5"}, 1.5),
            ({"Retry-After-Ms": "250", "Retry-After": "1"}, 0.25),
            ({"Retry-After": "1e9"}, 300),
            ({**date, "Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT"}, 60),
            ({**date, "Retry-After": "Sun, 06 Nov 1994 08:48:37 GMT"}, None),
            ({"Retry-After": "-1"}, None),
            ({"Retry-After": "inf"}, None),
            ({"Retry-After": "soon"}, None),
            ({}, None),
        ):
            told = []

            class Told(Limiter):
                def retry_after(self, seconds: float, **_: Any) -> None:
                    told.append(seconds)

            limiter = Told(self.proxy("--max=1000").unix)
            self.addCleanup(limiter.close)
            inner = httpx.MockTransport(lambda _: httpx.Response(429, headers=headers))
            self.client(limiter, inner).get("http://x")
            self.assertEqual(told, [] if want is None else [want], headers)

    def test_outcomes(self) -> None:
        limiter = self.settling()
        for status, want in ((200, "accepted"), (404, "accepted"), (429, "refused"), (503, "overloaded"), (529, "overloaded"), (500, None)):
            self.client(limiter, httpx.MockTransport(lambda _: httpx.Response(status))).get("http://x")
            self.assertEqual(limiter.outcome, want, status)

    def test_bad_arguments(self) -> None:
        limiter = self.limiter("--max=1000")
        wrong: Any = AsyncLimiter()
        with self.assertRaisesRegex(TypeError, "limiter is of type AsyncLimiter, allowed: Limiter"):
            Transport(wrong)
        with self.assertRaisesRegex(TypeError, "used is 7, allowed: a function"):
            Transport(limiter, used=7)  # type: ignore[arg-type]
        service = Service(self, (200, {}, b""))
        for options, field in (({"tokens": -1}, "tokens"), ({"tokens": "x"}, "tokens"), ({"tag": "a\x00"}, "tag"), ({"lease": 0}, "lease_seconds")):
            with self.assertRaises(BadRequest) as caught:
                self.client(limiter, **options).get(service.url)
            self.assertEqual(caught.exception.field, field)
        self.assertEqual(service.seen, [])

    def test_without_a_proxy_nothing_is_sent(self) -> None:
        service = Service(self, (200, {}, b""))
        for address in ("unix:/no/such/socket", "http://127.0.0.1:1"):
            with self.assertRaises(Unavailable) as caught:
                self.client(Limiter(address)).get(service.url)
            self.assertIn(address, str(caught.exception))
        self.assertEqual(service.seen, [])

    def test_a_proxy_that_ends_during_a_call(self) -> None:
        proxy = self.proxy("--max=1000")
        client = self.client(Limiter(proxy.http))
        service = Service(self, (429, {"Retry-After": "1"}, b"hello"))

        inner = httpx.HTTPTransport()
        self.addCleanup(inner.close)

        def answer(request: httpx.Request) -> httpx.Response:
            proxy.kill()
            return inner.handle_request(request)

        with self.assertLogs("numathrottle", logging.WARNING) as logs:
            got = self.client(Limiter(proxy.http), httpx.MockTransport(answer)).get(service.url)
        self.assertEqual((got.status_code, got.text), (429, "hello"))
        self.assertIn(proxy.http, "".join(logs.output))
        with self.assertRaises(Unavailable) as caught:
            client.get(service.url)
        self.assertIn(proxy.http, str(caught.exception))
        self.assertEqual(len(service.seen), 1)


class TestAsyncTransport(Case):
    def run_with(self, test: Callable[[AsyncLimiter], Awaitable[None]], *flags: str) -> None:
        proxy = self.proxy(*flags)

        async def main() -> None:
            async with AsyncLimiter(proxy.unix) as limiter:
                await test(limiter)

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_a_request_holds_its_permit_until_its_answer_was_read(self) -> None:
        service = Service(self, (200, {}, b"hello"))

        async def test(limiter: AsyncLimiter) -> None:
            async with httpx.AsyncClient(transport=AsyncTransport(limiter, timeout=20)) as client:
                async with client.stream("GET", service.url) as answer:
                    with self.assertRaises(Throttled):
                        await limiter.acquire(timeout=0)
                    self.assertEqual(await answer.aread(), b"hello")
                await (await limiter.acquire(timeout=0)).cancel()
                async with client.stream("GET", service.url):
                    pass
                await (await limiter.acquire(timeout=0)).cancel()
                answers = await asyncio.gather(*(client.get(service.url) for _ in range(20)))
                self.assertEqual({a.text for a in answers}, {"hello"})
                await (await limiter.acquire(timeout=0)).cancel()

        self.run_with(test, "--in-flight=1")

    def test_what_an_answer_says_was_used(self) -> None:
        service = Service(self, usage(51))

        async def test(limiter: AsyncLimiter) -> None:
            async with httpx.AsyncClient(transport=AsyncTransport(limiter, used=total_tokens, timeout=20)) as client:
                await client.get(service.url)
            with self.assertRaises(Throttled) as caught:
                await limiter.acquire(1, timeout=1)
            self.assertGreater(caught.exception.retry_after or 0, 40)

        self.run_with(test, "--max=100", "--per=100s", "--burst=100")

    def test_refusals(self) -> None:
        service = Service(self, (429, {"Retry-After": "30"}, b""))

        async def test(limiter: AsyncLimiter) -> None:
            async with httpx.AsyncClient(transport=AsyncTransport(limiter, timeout=20)) as client:
                self.assertEqual((await client.get(service.url)).status_code, 429)
            with self.assertRaises(Throttled) as caught:
                await limiter.acquire(timeout=1)
            self.assertEqual(caught.exception.reason, "pause")

        self.run_with(test, "--max=1000")

    def test_calls_that_fail_or_are_cancelled(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            begun = asyncio.Event()

            async def hang(_: httpx.Request) -> httpx.Response:
                begun.set()
                await asyncio.sleep(60)
                raise AssertionError

            async with httpx.AsyncClient(transport=AsyncTransport(limiter, timeout=20)) as client:
                with self.assertRaises(httpx.ConnectError):
                    await client.get("http://127.0.0.1:1")
                await (await limiter.acquire(timeout=0)).cancel()
            async with httpx.AsyncClient(transport=AsyncTransport(limiter, httpx.MockTransport(hang), timeout=20)) as client:
                task = asyncio.ensure_future(client.get("http://x"))
                await begun.wait()
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                await (await limiter.acquire(timeout=20)).cancel()

        self.run_with(test, "--in-flight=1")

    def test_bad_arguments(self) -> None:
        wrong: Any = Limiter()
        with self.assertRaisesRegex(TypeError, "limiter is of type Limiter, allowed: AsyncLimiter"):
            AsyncTransport(wrong)

    def test_without_a_proxy_nothing_is_sent(self) -> None:
        proxy = self.proxy("--max=1000")
        service = Service(self, (200, {}, b""))

        async def main() -> None:
            async with AsyncLimiter(proxy.http) as limiter:
                client = httpx.AsyncClient(transport=AsyncTransport(limiter, timeout=20))
                await client.get(service.url)
                proxy.kill()
                with self.assertRaises(Unavailable) as caught:
                    await client.get(service.url)
                self.assertIn(proxy.http, str(caught.exception))
                await client.aclose()

        asyncio.run(asyncio.wait_for(main(), 60))
        self.assertEqual(len(service.seen), 1)


class TestTotalTokens(unittest.TestCase):
    def total(self, body: str) -> Optional[int]:
        return total_tokens(httpx.Response(200, content=body.encode()))

    def test_answers(self) -> None:
        events = "\n\n".join(
            "data: " + text
            for text in (
                json.dumps({"type": "message_start", "message": {"usage": {"input_tokens": 20, "output_tokens": 1, "cache_read_input_tokens": 5}}}),
                json.dumps({"type": "message_delta", "usage": {"output_tokens": 7}}),
                "[DONE]",
            )
        )
        for body, want in (
            (json.dumps({"usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 9}}), 9),
            (json.dumps({"usage": {"prompt_tokens": 3, "completion_tokens": 4}}), 7),
            (json.dumps({"usage": {"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 2}}), 9),
            (json.dumps({"usageMetadata": {"totalTokenCount": 12}}), 12),
            (json.dumps([{"usageMetadata": {"totalTokenCount": 1}}, {"usageMetadata": {"totalTokenCount": 13}}]), 13),
            (json.dumps({"response": {"usage": {"total_tokens": 8}}}), 8),
            (events, 32),
            ('data: {"usage": null}\n\ndata: {"usage": {"total_tokens": 6}}\n\ndata: [DONE]\n', 6),
            (json.dumps({"usage": {"total_tokens": -1}}), None),
            (json.dumps({"usage": {"total_tokens": True}}), None),
            (json.dumps({"usage": 7}), None),
            ("[1, null]", None),
            ("{", None),
            ("", None),
            ("hello", None),
        ):
            self.assertEqual(self.total(body), want, body)


if __name__ == "__main__":
    unittest.main()
