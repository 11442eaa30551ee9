import logging
import socket
import threading
import time
import unittest

from numathrottle import BadRequest, Limiter, PermitEnded, Throttled, Unavailable

from .proxy import TOKEN, Case


class TestLimiter(Case):
    def limiter(self, *flags: str) -> Limiter:
        limiter = Limiter(self.proxy(*flags).unix)
        self.addCleanup(limiter.close)
        return limiter

    def test_a_permit_holds_a_slot_until_its_block_ends(self) -> None:
        limiter = self.limiter("--in-flight=1")
        with limiter.permit() as p:
            self.assertEqual(p.tokens, 1)
            with self.assertRaises(Throttled) as caught:
                limiter.acquire(timeout=0, tag="acme")
            self.assertEqual((caught.exception.reason, caught.exception.tag, caught.exception.tokens), ("in_flight", "acme", 1))
        with limiter.permit(timeout=5):
            pass

    def test_a_block_that_raises_settles(self) -> None:
        limiter = self.limiter("--in-flight=1")
        with self.assertRaises(ZeroDivisionError):
            with limiter.permit():
                raise ZeroDivisionError
        limiter.acquire(timeout=0).cancel()

    def test_what_was_used_counts(self) -> None:
        limiter = self.limiter("--max=100", "--per=100s", "--burst=100")
        with limiter.permit(1, timeout=20) as p:
            p.used = 51
        with self.assertRaises(Throttled) as caught:
            limiter.acquire(1, timeout=1)
        self.assertGreater(caught.exception.retry_after or 0, 40)
        self.assertEqual(caught.exception.reason, "limit")

    def test_cancel_gives_back(self) -> None:
        limiter = self.limiter("--max=100", "--per=100s", "--burst=100")
        p = limiter.acquire(2, timeout=20)
        p.cancel()
        p.cancel()
        p.settle()
        limiter.acquire(2, timeout=0).settle()

    def test_up_to(self) -> None:
        limiter = self.limiter("--max=100000", "--burst=50")
        p = limiter.acquire(100_000, up_to=True, timeout=20)
        self.assertTrue(1 <= p.tokens <= 50, p.tokens)
        p.settle(used=3, outcome="accepted")

    def test_a_lease_that_is_over(self) -> None:
        limiter = self.limiter("--in-flight=1")
        p = limiter.acquire(lease=1)
        self.assertEqual(p.lease, 1)
        limiter.acquire(timeout=20).settle()
        with self.assertRaises(PermitEnded):
            p.settle()
        with self.assertLogs("numathrottle", logging.WARNING):
            with limiter.permit(lease=1, timeout=20):
                limiter.acquire(timeout=20).settle()

    def test_decorator(self) -> None:
        limiter = self.limiter("--in-flight=1")

        @limiter.limited(tokens=lambda n, **_: n, tag=lambda _, of="": of)
        def call(n: int, of: str = "") -> int:
            """Call."""
            with self.assertRaises(Throttled):
                limiter.acquire(timeout=0)
            return n

        self.assertEqual((call(7), call.__doc__), (7, "Call."))

        @limiter.limited(timeout=0)
        def other() -> None:
            self.fail("it has no permit")

        with limiter.permit():
            with self.assertRaises(Throttled):
                other()

    def test_pauses_and_retry_after(self) -> None:
        limiter = self.limiter("--max=1000")
        self.assertIn("until", limiter.pause(60, reason="night"))
        with self.assertRaises(Throttled) as caught:
            limiter.acquire(timeout=1)
        self.assertEqual(caught.exception.reason, "pause")
        limiter.resume()
        limiter.acquire(timeout=20).settle()
        limiter.retry_after(30, reason="busy")
        with self.assertRaises(Throttled) as caught:
            limiter.acquire(timeout=1)
        self.assertGreater(caught.exception.retry_after or 0, 20)

    def test_bad_arguments(self) -> None:
        limiter = self.limiter("--max=1000")
        with self.assertRaises(BadRequest) as caught:
            limiter.acquire(-1)
        self.assertEqual(caught.exception.field, "tokens")
        self.assertIn("allowed: a whole number, 0 to 1000000000", str(caught.exception))
        with self.assertRaises(ValueError):
            limiter.acquire(tag="a\x00")
        for address in ("", "unix:", "https://h:1", "http://h", "http://h:x", "http://u@h:1", "http://h:1/x", "h:1"):
            with self.assertRaises(ValueError, msg=address):
                Limiter(address)
        with self.assertRaises(ValueError) as wrong:
            Limiter(token=TOKEN + "\n")
        self.assertNotIn(TOKEN, str(wrong.exception))

    def test_token(self) -> None:
        proxy = self.proxy("--max=1000", token=TOKEN)
        with Limiter(proxy.http, token=TOKEN) as limiter:
            limiter.acquire(timeout=20).settle()
        with self.assertRaises(BadRequest) as caught:
            with Limiter(proxy.http, token="wrong") as limiter:
                limiter.acquire()
        self.assertIn("the token is missing or wrong", str(caught.exception))

    def test_nobody_there(self) -> None:
        with self.assertRaises(Unavailable):
            Limiter("unix:/no/such/socket").acquire()
        with self.assertRaises(Unavailable):
            Limiter("http://127.0.0.1:1").acquire()

    def test_a_proxy_that_talks_nonsense(self) -> None:
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def nonsense() -> None:
            for answer in (b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", b""):
                connection, _ = server.accept()
                connection.recv(65536)
                connection.sendall(answer)
                connection.close()

        thread = threading.Thread(target=nonsense)
        thread.start()
        for _ in range(4):
            with self.assertRaises(Unavailable):
                with Limiter(f"http://127.0.0.1:{server.getsockname()[1]}") as limiter:
                    limiter.acquire()
        thread.join()

    def test_a_proxy_that_is_killed_and_comes_again(self) -> None:
        proxy = self.proxy("--in-flight=5")
        limiter = Limiter(proxy.unix)
        with self.assertLogs("numathrottle", logging.WARNING):
            with limiter.permit():
                proxy.kill()
        with self.assertRaises(Unavailable):
            limiter.acquire()

    def test_threads_share_a_limiter(self) -> None:
        limiter = self.limiter("--in-flight=3")
        lock = threading.Lock()
        inside, most, calls = 0, 0, 0

        @limiter.limited(timeout=60)
        def call() -> None:
            nonlocal inside, most, calls
            with lock:
                inside += 1
                calls += 1
                most = max(most, inside)
            time.sleep(0.005)
            with lock:
                inside -= 1

        threads = [threading.Thread(target=lambda: [call() for _ in range(10)]) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((calls, most), (200, 3))

    def test_the_rate_is_kept(self) -> None:
        limiter = self.limiter("--max=50", "--burst=1")
        limiter.acquire(timeout=20).settle()
        began = time.monotonic()
        for _ in range(50):
            limiter.acquire(timeout=20).settle()
        took = time.monotonic() - began
        self.assertGreater(took, 0.95)
        self.assertLess(took, 3)


if __name__ == "__main__":
    unittest.main()
