"""The code on the page on certificates runs and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"


@pytest.mark.slow
def test_the_code_of_the_page_prints_what_it_says() -> None:
    pytest.importorskip("flint")
    blocks = re.findall(
        r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert [kind for kind, _ in blocks].count("python") >= 2
    names: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert printed == text
            continue
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(text, str(PAGE), "exec"), names)
        printed = stream.getvalue()
        assert printed
