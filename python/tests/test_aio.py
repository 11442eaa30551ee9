import asyncio
import logging
import unittest
from typing import Any

from numathrottle import AsyncLimiter, BadRequest, PermitEnded, Throttled, Unavailable

from .proxy import TOKEN, Case


class TestAsyncLimiter(Case):
    def run_with(self, test: Any, *flags: str, http: bool = False) -> None:
        proxy = self.proxy(*flags)

        async def main() -> None:
            async with AsyncLimiter(proxy.http if http else proxy.unix) as limiter:
                await test(limiter)

        asyncio.run(asyncio.wait_for(main(), 60))

    def test_a_permit_holds_a_slot_until_its_block_ends(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            async with limiter.permit():
                with self.assertRaises(Throttled) as caught:
                    await limiter.acquire(timeout=0, tag="acme")
                self.assertEqual((caught.exception.reason, caught.exception.tag), ("in_flight", "acme"))
            with self.assertRaises(ZeroDivisionError):
                async with limiter.permit(timeout=5):
                    raise ZeroDivisionError
            p = await limiter.acquire(timeout=5)
            await p.cancel()
            await p.cancel()

        self.run_with(test, "--in-flight=1")
        self.run_with(test, "--in-flight=1", http=True)

    def test_what_was_used_counts(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            async with limiter.permit(1, timeout=20) as p:
                p.used = 51
            with self.assertRaises(Throttled) as caught:
                await limiter.acquire(1, timeout=1)
            self.assertGreater(caught.exception.retry_after or 0, 40)

        self.run_with(test, "--max=100", "--per=100s", "--burst=100")

    def test_many_tasks(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            inside = most = calls = 0

            @limiter.limited(timeout=60)
            async def call() -> None:
                nonlocal inside, most, calls
                inside += 1
                calls += 1
                most = max(most, inside)
                await asyncio.sleep(0.005)
                inside -= 1

            await asyncio.gather(*(call() for _ in range(200)))
            self.assertEqual((calls, most), (200, 3))

        self.run_with(test, "--in-flight=3")

    def test_a_cancelled_task(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            begun = asyncio.Event()

            async def work() -> None:
                async with limiter.permit():
                    begun.set()
                    await asyncio.sleep(60)

            task = asyncio.ensure_future(work())
            await begun.wait()
            waiting: Any = asyncio.ensure_future(limiter.acquire(timeout=60))
            await asyncio.sleep(0.05)
            for t in (waiting, task):
                t.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await t
                await asyncio.sleep(0.2)  # the proxy sees that the connection has ended
            await (await limiter.acquire(timeout=20)).settle()

        self.run_with(test, "--in-flight=1")

    def test_a_lease_that_is_over(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            p = await limiter.acquire(lease=1)
            await (await limiter.acquire(timeout=20)).settle()
            with self.assertRaises(PermitEnded):
                await p.settle()
            with self.assertLogs("numathrottle", logging.WARNING):
                async with limiter.permit(lease=1, timeout=20):
                    await (await limiter.acquire(timeout=20)).settle()

        self.run_with(test, "--in-flight=1")

    def test_pauses(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            await limiter.pause(60, reason="night")
            with self.assertRaises(Throttled):
                await limiter.acquire(timeout=1)
            await limiter.resume()
            await (await limiter.acquire(timeout=20)).settle(outcome="refused")
            await limiter.retry_after(30, reason="busy")
            with self.assertRaises(Throttled):
                await limiter.acquire(timeout=1)

        self.run_with(test, "--max=1000")

    def test_errors(self) -> None:
        async def test(limiter: AsyncLimiter) -> None:
            with self.assertRaises(BadRequest) as caught:
                await limiter.acquire(-1)
            self.assertEqual(caught.exception.field, "tokens")

        self.run_with(test, "--max=1000")

        async def nobody() -> None:
            for address in ("unix:/no/such/socket", "http://127.0.0.1:1"):
                with self.assertRaises(Unavailable):
                    await AsyncLimiter(address).acquire()

        asyncio.run(nobody())

    def test_token(self) -> None:
        proxy = self.proxy("--max=1000", token=TOKEN)

        async def main() -> None:
            async with AsyncLimiter(proxy.http, token=TOKEN) as limiter:
                await (await limiter.acquire(timeout=20)).settle()
            async with AsyncLimiter(proxy.http) as limiter:
                with self.assertRaises(BadRequest):
                    await limiter.acquire()

        asyncio.run(main())

    def test_a_proxy_that_talks_nonsense(self) -> None:
        answers = [b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b""]

        async def main() -> None:
            async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answers.pop())
                writer.close()

            server = await asyncio.start_server(nonsense, "127.0.0.1", 0)
            address = "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
            while answers:
                with self.assertRaises(Unavailable):
                    async with AsyncLimiter(address) as limiter:
                        await limiter.acquire()
            server.close()

        asyncio.run(main())


if __name__ == "__main__":
    unittest.main()
