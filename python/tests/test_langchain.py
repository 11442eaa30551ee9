import asyncio
import time
import unittest
from typing import Any

from numathrottle import BadRequest, Throttled, Unavailable

from .extra import need
from .proxy import TOKEN, Case

need("langchain_core")

from langchain_core.language_models import FakeListChatModel  # noqa: E402

from numathrottle.langchain import RateLimiter  # noqa: E402


class TestRateLimiter(Case):
    def limiter(self, address: str, **options: Any) -> RateLimiter:
        limiter = RateLimiter(address, **options)
        self.addCleanup(limiter.close)
        return limiter

    def test_a_model_draws_before_each_call(self) -> None:
        limiter = self.limiter(self.proxy("--max=20", "--burst=1").unix, timeout=20)
        model = FakeListChatModel(responses=["hello"], rate_limiter=limiter)
        model.invoke("hi")
        began = time.monotonic()
        for _ in range(5):
            self.assertEqual(model.invoke("hi").content, "hello")
        self.assertEqual("".join(str(part.content) for part in model.stream("hi")), "hello")

        async def main() -> None:
            answers = await asyncio.gather(*(model.ainvoke("hi") for _ in range(4)))
            self.assertEqual({a.content for a in answers}, {"hello"})

        asyncio.run(main())
        asyncio.run(main())  # another event loop
        self.assertGreater(time.monotonic() - began, 0.5, "14 tokens")

    def test_a_call_that_gets_no_token_is_not_made(self) -> None:
        limiter = self.limiter(self.proxy("--max=1000").unix, timeout=1)
        limiter._limiter.acquire(timeout=20).settle()  # the pool is there
        limiter._limiter.pause(60)
        model = FakeListChatModel(responses=["hello"], rate_limiter=limiter)
        with self.assertRaises(Throttled):
            model.invoke("hi")
        with self.assertRaises(Throttled):
            asyncio.run(model.ainvoke("hi"))
        self.assertEqual(model.i, 0)

    def test_without_blocking(self) -> None:
        limiter = self.limiter(self.proxy("--max=1000").unix, timeout=20)
        self.assertTrue(limiter.acquire())
        limiter._limiter.pause(60)
        self.assertFalse(limiter.acquire(blocking=False))
        self.assertFalse(asyncio.run(limiter.aacquire(blocking=False)))
        limiter._limiter.resume()
        self.assertTrue(limiter.acquire())
        self.assertTrue(asyncio.run(limiter.aacquire()))

    def test_bad_arguments(self) -> None:
        with self.assertRaises(ValueError):
            RateLimiter("https://h:1")
        with self.assertRaises(ValueError) as wrong:
            RateLimiter(token=TOKEN + "\n")
        self.assertNotIn(TOKEN, str(wrong.exception))
        proxy = self.proxy("--max=1000", token=TOKEN)
        self.assertTrue(self.limiter(proxy.http, token=TOKEN, timeout=20).acquire())
        limiter = self.limiter(proxy.http)
        with self.assertRaises(BadRequest):
            limiter.acquire(blocking=False)
        self.assertNotIn(TOKEN, repr(self.limiter(proxy.http, token=TOKEN)))
        with self.assertRaises(BadRequest) as caught:
            self.limiter(self.proxy("--max=1000").http, timeout=-1).acquire()
        self.assertEqual(caught.exception.field, "timeout_seconds")

    def test_without_a_proxy_no_call_is_made(self) -> None:
        proxy = self.proxy("--max=1000")
        limiter = self.limiter(proxy.http, timeout=20)
        model = FakeListChatModel(responses=["hello"] * 9, rate_limiter=limiter)
        model.invoke("hi")
        proxy.kill()
        for blocking in (True, False):
            with self.assertRaises(Unavailable) as caught:
                limiter.acquire(blocking=blocking)
            self.assertIn(proxy.http, str(caught.exception))
            with self.assertRaises(Unavailable) as caught:
                asyncio.run(limiter.aacquire(blocking=blocking))
            self.assertIn(proxy.http, str(caught.exception))
        before = model.i
        with self.assertRaises(Unavailable):
            model.invoke("hi")
        self.assertEqual(model.i, before)


if __name__ == "__main__":
    unittest.main()
