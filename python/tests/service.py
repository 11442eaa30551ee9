"""A service on loopback for the tests: each path has its answer."""

import http.server
import json
import threading
import unittest
from typing import Any, Dict, List, Optional, Tuple

Answer = Tuple[int, Dict[str, str], bytes]


def usage(n: int) -> Answer:
    return 200, {"Content-Type": "application/json"}, json.dumps({"usage": {"total_tokens": n}}).encode()


class Service:
    """Answers each request with answer, and counts them. Without an answer it closes the connection."""

    def __init__(self, case: unittest.TestCase, answer: Optional[Answer]) -> None:
        self.answer = answer
        self.seen: List[str] = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length", "0")))
                service.seen.append(self.path)
                if service.answer is None:
                    self.close_connection = True
                    return
                status, headers, body = service.answer
                self.send_response(status)
                length = {"Content-Length": str(len(body))}
                for name, value in {**length, **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def stop() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        case.addCleanup(stop)
        self.url = "http://127.0.0.1:%d" % server.server_address[1]
