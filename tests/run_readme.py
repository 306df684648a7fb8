"""Run the Python blocks of a README, in order and in one namespace, in a temporary folder.

Usage: python tests/run_readme.py README.md

Expected outputs written as comments are for the reader; they are not compared.
"""

import os
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

_BLOCK = re.compile(
    r"^[ \t]*```python[^\n]*\n(?P<code>.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE
)


def compiled_blocks(readme: Path) -> Iterator[tuple[int, CodeType]]:
    """Yield the number of the first line and the code of each block fenced as ``python``."""
    text = readme.read_text(encoding="utf-8")
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start("code"))
        # Empty lines before the code make tracebacks name the line of the README.
        code = "\n" * line + textwrap.dedent(block["code"])
        yield line + 1, compile(code, str(readme), "exec", dont_inherit=True)


def main(arguments: list[str]) -> int:
    """Run all blocks; return 0 if there was one and none raised."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    blocks = list(compiled_blocks(Path(arguments[0]).resolve()))
    namespace: dict[str, object] = {"__name__": "__main__"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for line, code in blocks:
                start = time.perf_counter()
                exec(code, namespace)
                seconds = time.perf_counter() - start
                print(f"block at line {line}: {seconds:.1f} s", flush=True)
        finally:
            os.chdir(before)
    if not blocks:
        print(f"no block fenced as python in {arguments[0]}", file=sys.stderr)
    return 0 if blocks else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
