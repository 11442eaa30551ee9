import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class TestPages(unittest.TestCase):
    def test_code_in_pages_is_python(self) -> None:
        blocks = 0
        for page in [ROOT / "python" / "README.md", *sorted((ROOT / "docs").glob("any-language*.md"))]:
            for block in re.findall(r"(?sm)^```python\n(.*?)^```", page.read_text(encoding="utf-8")):
                with self.subTest(page=page.name, block=block):
                    compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                    blocks += 1
        self.assertGreaterEqual(blocks, 2)


if __name__ == "__main__":
    unittest.main()
