r"""Long equations of LaTeX broken to the width of a text: before terms, in brackets, in products.

Lines are broken between the rows of an ``aligned`` that stands for the equation. Where no sum at
the top can be broken, a bracket is opened (``\Bigl( … \Bigr)``), a long fraction becomes a factor,
and a root a power; then products are broken. Text, scripts, cases and tables stay in one piece.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

WIDTH = 64
"""Digits that stand in a line of a page of ten points."""

_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|\s+|[^\\]", re.DOTALL)
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname\*?|mathbf|mathit|mathsf|mathtt)$")
_SPACES = {
    r"\,": 0.3,
    r"\;": 0.5,
    r"\:": 0.4,
    r"\!": 0.0,
    r"\quad": 2.0,
    r"\qquad": 4.0,
    r"\ ": 0.6,
}
_WIDE = {"+": 2.6, "-": 2.6, "=": 2.8, "<": 2.8, ">": 2.8, r"\to": 3.2, r"\mapsto": 3.2,
         r"\simeq": 2.8, r"\le": 2.8, r"\ge": 2.8, r"\approx": 2.8, r"\cdot": 1.4, r"\times": 2.2,
         r"\xrightarrow": 3.0, r"\subset": 2.8}  # fmt: skip
_RELATION = re.compile(r"(?:&\s*)?(?:=|\\(?:to|simeq|le|ge|approx|lesssim|equiv)\b)")
_NAMES = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "erf", "min", "max", "lim")
_ROWS = re.compile(r"\s*\\begin\{(aligned|gathered)\}(.*)\\end\{\1\}\s*", re.DOTALL)


def broken(text: str, width: float = WIDTH) -> str:
    r"""Return LaTeX whose lines are not wider than a text, where they can be broken.

    Examples
    --------
    >>> print(broken("a = b + c", width=9))
    a = b + c
    >>> print(broken("a = b + c + d + e", width=12))
    \begin{aligned} a &= b + c \\ &\quad + d + e\end{aligned}
    """
    match = _ROWS.fullmatch(text)
    rows = _split(match[2], r"\\") if match and _is_one(match[2]) else [text]
    if all(extent(row) <= width for row in rows):
        return text
    kind = match[1] if match and _is_one(match[2]) else "aligned"
    lines = [line for row in rows for line in _lines(row, width, align=kind == "aligned")]
    if len(lines) == 1:
        return text
    joined = r" \\ ".join(lines)
    return rf"\begin{{{kind}}} {joined}\end{{{kind}}}"


def _is_one(inside: str) -> bool:
    """Whether what stands between begin and end of an environment belongs to that one."""
    depth = 0
    for token in re.findall(r"\\(?:begin|end)\{", inside):
        depth += 1 if "begin" in token else -1
        if depth < 0:
            return False
    return depth == 0


def _lines(row: str, width: float, *, align: bool) -> list[str]:
    row = row.strip()
    if extent(row) <= width:
        return [row]
    head, rest = "", row
    for position in _top(row):
        if match := _RELATION.match(row, position):
            head, rest = (
                row[:position] + ("&" if "&" not in match[0] and align else ""),
                row[position:],
            )
            break
    room = width - min(extent(head), width / 2)
    lines: list[str] = []
    line = ""
    for piece in _pieces(rest, room):
        if line and extent(line + piece) > (room if not lines else width - 4):
            lines.append(line)
            line = ""
        line += piece
    lines.append(line)
    indent = r"&\quad " if align else ""
    first = head + lines[0].strip() if head or not align else f"& {lines[0].strip()}"
    return [first, *(indent + line.strip() for line in lines[1:])]


def _pieces(text: str, width: float) -> list[str]:
    """Return parts between which a line may end."""
    result = []
    for term in _terms(text):
        result += [term] if extent(term) <= width else _opened(term, width)
    return result


def _opened(term: str, width: float) -> list[str]:
    """Return the parts of a term that is too long: its widest bracket, fraction or root opened."""
    widest: tuple[float, int, int, list[str]] | None = None
    for begin, end, parts in _groups(term):
        size = extent(term[begin:end])
        if size > width / 2 and (widest is None or size > widest[0]):
            widest = size, begin, end, parts
    if widest is None:
        return _factors(term, width)
    _, begin, end, (before, inside, after) = widest
    head, tail = term[:begin], term[end:]
    parts = _pieces(inside, width)
    lead = head + before
    *heads, lead = _factors(lead, width) if extent(lead) > width / 2 else [lead]
    if heads and extent(lead + parts[0]) > width:
        heads.append(lead)
    else:
        parts[0] = lead + parts[0]
    first, *others = _opened(tail, width) if extent(tail) > width / 2 else [tail]
    return [*heads, *parts[:-1], parts[-1] + after + first, *others]


def _factors(term: str, width: float) -> list[str]:
    """Break a product before a factor."""
    result, start = [], 0
    for position in _top(term):
        factor = re.match(r"\\(?:left|frac|mathbb|sqrt|Bigl)\b", term[position:])
        before = term[start:position].rstrip()
        if factor and extent(before) > width / 2 and re.search(r"[A-Za-z0-9})\]]$", before):
            result.append(term[start:position])
            start = position
    pieces = [*result, term[start:]]
    return [pieces[0], *(rf"\times {piece}" for piece in pieces[1:])]


def _terms(text: str) -> list[str]:
    """Split a sum at the top before its signs."""
    starts, last = [], ""
    for position in _top(text):
        token = text[position]
        if token in "+-" and last not in ("", "+", "-", "=", "(", "[", "&", "^", "_"):
            starts.append(position)
        if not token.isspace():
            last = token
    places = [0, *starts, len(text)]
    return [text[a:b] for a, b in itertools.pairwise(places) if a < b]


def _groups(term: str) -> Iterator[tuple[int, int, list[str]]]:
    """Yield brackets, fractions and roots at the top: where, and how they are opened."""
    for position in _top(term):
        rest = term[position:]
        if match := re.match(r"\\left\s*(\\[A-Za-z]+|\\.|.)", rest):
            end = _after_right(rest)
            close = re.search(r"\\right\s*(\\[A-Za-z]+|\\.|.)$", rest[:end])
            if close is not None and "." not in (match[1], close[1]):
                inside = rest[match.end() : close.start()]
                yield position, position + end, [rf"\Bigl{match[1]} ", inside, rf"\Bigr{close[1]}"]
        elif rest.startswith(r"\frac{"):
            above = _after_brace(rest, 5)
            end = _after_brace(rest, above)
            numerator, denominator = rest[6 : above - 1], rest[above + 1 : end - 1]
            if extent(numerator) >= extent(denominator):
                factor = rf"\frac{{1}}{{{denominator}}}\Bigl( "
                yield position, position + end, [factor, numerator, r"\Bigr)"]
            else:
                factor = rf"\left({numerator}\right)" if len(_terms(numerator)) > 1 else numerator
                yield position, position + end, [rf"{factor} \Bigl( ", denominator, r"\Bigr)^{-1}"]
        elif rest.startswith(r"\sqrt{"):
            end = _after_brace(rest, 5)
            yield position, position + end, [r"\Bigl( ", rest[6 : end - 1], r"\Bigr)^{1/2}"]


def _top(text: str) -> Iterator[int]:
    """Yield the places of tokens that stand in no brace, bracket or environment."""
    depth = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("}", r"\right", r"\end", r"\Bigr") or (token in ")]" and depth < 0):
            depth -= 1
        if depth == 0 and token != "}":
            yield match.start()
        if token in ("{", r"\left", r"\begin", r"\Bigl"):
            depth += 1


def _split(text: str, at: str) -> list[str]:
    places = [p for p in _top(text) if text.startswith(at, p)]
    starts = [0, *(p + len(at) for p in places)]
    return [text[a:b] for a, b in zip(starts, [*places, len(text)], strict=True)]


def _after_brace(text: str, start: int) -> int:
    """Return where the braces that begin at a place end."""
    depth = 0
    for match in _TOKEN.finditer(text, start):
        depth += (match[0] == "{") - (match[0] == "}")
        if depth == 0:
            return match.end()
    return len(text)


def _after_right(text: str) -> int:
    depth = 0
    for match in _TOKEN.finditer(text):
        depth += (match[0] == r"\left") - (match[0] == r"\right")
        if depth == 0 and match[0] == r"\right":
            delimiter = re.compile(r"\s*(?:\\[A-Za-z]+|\\.|.)").match(text, match.end())
            return len(text) if delimiter is None else delimiter.end()
    return len(text)


def extent(text: str) -> float:
    """Estimate the width of a line of LaTeX in digits; of several lines that of the widest."""
    return _extent(text, 0, None)[0]


def _extent(text: str, start: int, stop: str | None) -> tuple[float, int]:
    widest = total = 0.0
    position, script = start, 0.0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        token, position = match[0], match.end()
        if token == stop:
            break
        if token in ("^", "_"):
            size, position = _argument(text, position)
            # Scripts above each other take the room of the wider one.
            total, script = total - script + max(script, 0.7 * size), max(script, 0.7 * size)
            continue
        if token.isspace() or token in ("&", r"\left", r"\right", r"\displaystyle"):
            continue
        script = 0.0
        if token == r"\\":
            widest, total = max(widest, total), 0.0
        elif token == "{":
            size, position = _extent(text, position, "}")
            total += size
        elif token in (r"\frac", r"\tfrac", r"\dfrac"):
            above, position = _argument(text, position)
            below, position = _argument(text, position)
            total += max(above, below) + 0.5
        elif token in (r"\begin", r"\end"):
            _, position = _argument(text, position)
        elif _WORDS.match(token):
            end = _after_brace(text, position)
            total += 0.95 * max(end - position - 2, 0)
            position = end
        elif token in _SPACES:
            total += _SPACES[token]
        elif token[1:] in _NAMES:
            total += len(token) - 1 + 0.3
        elif token == r"\sqrt":
            size, position = _argument(text, position)
            total += 1.7 + size
        else:
            total += _WIDE.get(token, 0.6 if token in ",.;:|!'" else 1.1)
    return max(widest, total), position


def _argument(text: str, position: int) -> tuple[float, int]:
    match = _TOKEN.match(text, position)
    if match is None:
        return 0.0, position
    if match[0].isspace():
        return _argument(text, match.end())
    if match[0] == "{":
        return _extent(text, match.end(), "}")
    if match[0].startswith("\\") and match[0][1:].isalpha():
        return 1.1, match.end()
    return 1.0, match.end()
