r"""Targets with everything that is known of their leaps and staircases, for the tests.

All entries were derived by hand and by exact algebra with programs other than giantstep, norms and
residuals confirmed by quadrature of the definitions in orthonormal frames; those of the functions
that are no polynomials by closed-form symbols with 60 digits and by Monte Carlo.

Texts are as a table would print them: ⟨e1, (0,1,1)⟩ is a span, R3 all of the space, {0} nothing,
chains are joined by ⊂ and U_0 = {0} is left out, so that {0} alone means that nothing is learnt;
"4 ×2; 0" is the list 4, 4, 0, and an empty text means that a column does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from giantstep.symbolic.expressions.parser import parse_expression
from giantstep.symbolic.targets.subspaces import Subspace

SAME = "same"


@dataclass(frozen=True)
class Row:
    """A polynomial target and what is known of it.

    Attributes
    ----------
    name, target : str
        Identifier, and the text that the parser reads.
    dimension : int
        Number r of coordinates.
    leap_index : int
        Smallest k ≥ 1 with C_k ≠ 0.
    staircase : str
        U_1 ⊂ U_2 ⊂ … for orders ≤ 1.
    stops : bool
        Whether that ends before V*.
    second_order : str
        The same for orders ≤ 2, all of them in every step; SAME as `staircase`.
    isotropic_leap : int
        The rotation-invariant leap.
    greedy_orders : tuple of int
        Orders met on the way to it.
    coordinate_leap, generative_leap : int
    norm_squared : str
        E f².
    mean : str
        E f.
    residuals_at_zero, residuals_at_first, residuals_at_last : str
        ‖P_{U,>l} f‖² for l = 0, 1, …, with U = {0}, U_1 and the last U_t.
    relu, odd : str
        The staircase for degrees 1 and even, and for odd degrees; SAME as `staircase`.
    """

    name: str
    target: str
    dimension: int
    leap_index: int
    staircase: str
    stops: bool
    second_order: str
    isotropic_leap: int
    greedy_orders: tuple[int, ...]
    coordinate_leap: int
    generative_leap: int
    norm_squared: str
    residuals_at_zero: str
    residuals_at_first: str
    residuals_at_last: str
    relu: str
    odd: str
    mean: str = "0"


@dataclass(frozen=True)
class OpenRow:
    """A target that is no polynomial; attributes as in `Row`.

    Attributes
    ----------
    first_tensor : tuple of str
        C_1.
    nonlinear_norm_squared : str
        ‖P_{>1} f‖².
    """

    name: str
    target: str
    dimension: int
    leap_index: int
    first_tensor: tuple[str, ...]
    staircase: str
    stops: bool
    second_order: str
    isotropic_leap: int
    coordinate_leap: int
    generative_leap: int
    norm_squared: str
    mean: str
    nonlinear_norm_squared: str


_U, _V = "(x1 + x2)/sqrt(2)", "(x1 - x2)/sqrt(2)"
_P11 = f"{_U} + He(2, {_U})*{_V} + He(3, {_V})*x3"
_AT_120_DEGREES = ("x1", "(-x1/2 + sqrt(3)*x2/2)", "(-x1/2 - sqrt(3)*x2/2)")
_P12 = " + ".join(f"{w} + He(2, {w})" for w in _AT_120_DEGREES)
_P13 = " + ".join(f"{w} + He(3, {w})" for w in _AT_120_DEGREES)
_P16 = "x1 + x1*x2 + x1*x2*x3 + x1*x2*x3*x4 + x1*x2*x3*x4*x5"
_P17 = "x1 + He(2, x1)*x2 + He(3, x1)*x3 + He(4, x1)*x4 + He(5, x1)*x5"
_P18 = "x1 + He(2, x1) + 2*x2 + He(2, x2) + 3*x3 + He(2, x3)"
_P19 = "x1 + He(3, x1) + 2*x2 + He(3, x2) + 3*x3 + He(3, x3)"

CATALOGUE = (
    Row("P01", "x1 + He(2, x1) + x2 - He(2, x2)", 2, 1, "⟨(1,1)⟩ ⊂ R2", False, "R2", 1, (1, 1),
        1, 1, "6", "6; 4; 0", "4; 0", "0", SAME, "⟨(1,1)⟩"),
    Row("P02", "x1 + He(2, x1) + x2 + He(2, x2)", 2, 1, "⟨(1,1)⟩", True, "R2", 2, (1, 2),
        1, 2, "6", "6; 4; 0", "2 ×2; 0", "", SAME, SAME),
    Row("P03", "x1 + x1*x2 + x1*x3", 3, 1, "⟨e1⟩ ⊂ ⟨e1, (0,1,1)⟩", False, "⟨e1, (0,1,1)⟩",
        1, (1, 1), 1, 1, "3", "3; 2; 0", "2; 0", "0", SAME, "⟨e1⟩"),
    Row("P04", "x1 + x1*x2 + He(3, x1)*x3", 3, 1, "⟨e1⟩ ⊂ R3", False, "⟨e1, e2⟩ ⊂ R3",
        1, (1, 1), 1, 1, "8", "8; 7; 6 ×2; 0", "7; 0", "0", SAME, "⟨e1⟩"),
    Row("P05",
        "x1 + He(2, x2) + He(2, x1)*x2 + He(4, x1)*He(2, x2)*x3 + He(2, x2)*He(2, x3)", 3, 1,
        "⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R3", False, "⟨e1, e2⟩ ⊂ R3", 1, (1, 1, 1), 1, 1, "57",
        "57; 56; 54; 52; 48 ×3; 0", "56; 54; 52; 4; 0", "0", "⟨e1⟩", SAME),
    Row("P06", "x1 + x1*x2 + x1*x2*x3", 3, 1, "⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ R3", False, "⟨e1, e2⟩ ⊂ R3",
        1, (1, 1, 1), 1, 1, "3", "3; 2; 1; 0", "2; 1; 0", "0", "⟨e1⟩ ⊂ ⟨e1, e2⟩", "⟨e1⟩"),
    Row("P07", "x1*x2", 2, 2, "{0}", True, "R2", 2, (2,), 2, 2, "1", "1 ×2; 0", "", "",
        SAME, SAME),
    Row("P08", "x1*x2 + x3", 3, 1, "⟨e3⟩", True, "R3", 2, (1, 2), 2, 2, "2", "2; 1; 0",
        "1 ×2; 0", "", SAME, SAME),
    Row("P09", "x1*x2*x3", 3, 3, "{0}", True, SAME, 3, (3,), 3, 2, "1", "1 ×3; 0", "", "",
        SAME, SAME),
    Row("P10", "He(3, x1) + x1*x2", 2, 2, "{0}", True, "R2", 2, (2,), 2, 1, "7", "7 ×2; 6; 0",
        "", "", SAME, SAME),
    Row("P11", _P11, 3, 1, "⟨(1,1,0)⟩ ⊂ ⟨e1, e2⟩ ⊂ R3", False, SAME, 1, (1, 1, 1), 1, 1, "9",
        "9; 8 ×2; 6; 0", "8; 6 ×3; 0", "0", "⟨(1,1,0)⟩", "⟨(1,1,0)⟩ ⊂ ⟨e1, e2⟩"),
    Row("P12", _P12, 2, 2, "{0}", True, "R2", 2, (2,), 2, 2, "9", "9 ×2; 0", "", "", SAME, SAME),
    Row("P13", _P13, 2, 3, "{0}", True, SAME, 3, (3,), 3, 2, "27/2", "27/2 ×3; 0", "", "",
        SAME, SAME),
    Row("P14", "(sqrt(2) + sqrt(3) - sqrt(5 + 2*sqrt(6)))*x1 + He(2, x1) + x1*x2", 2, 2, "{0}",
        True, "R2", 2, (2,), 2, 2, "3", "3 ×2; 0", "", "", SAME, SAME),
    Row("P15", "x1 + x1*x2 + x2*x3 + x3*x4", 4, 1,
        "⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ ⟨e1, e2, e3⟩ ⊂ R4", False, "R4", 1, (1, 1, 1, 1), 1, 1, "4",
        "4; 3; 0", "3; 2; 0", "0", SAME, "⟨e1⟩"),
    Row("P16", _P16, 5, 1,
        "⟨e1⟩ ⊂ ⟨e1, e2⟩ ⊂ ⟨e1, e2, e3⟩ ⊂ ⟨e1, e2, e3, e4⟩ ⊂ R5", False,
        "⟨e1, e2⟩ ⊂ ⟨e1, e2, e3, e4⟩ ⊂ R5", 1, (1, 1, 1, 1, 1), 1, 1, "5",
        "5; 4; 3; 2; 1; 0", "4; 3; 2; 1; 0", "0", "⟨e1⟩ ⊂ ⟨e1, e2⟩", "⟨e1⟩"),
    Row("P17", _P17, 5, 1, "⟨e1⟩ ⊂ R5", False, SAME, 1, (1, 1), 1, 1, "153",
        "153; 152 ×2; 150; 144; 120; 0", "152; 0", "0", "⟨e1⟩ ⊂ ⟨e1, e3, e5⟩",
        "⟨e1⟩ ⊂ ⟨e1, e2, e4⟩"),
    Row("P18", _P18, 3, 1, "⟨(1,2,3)⟩", True, "R3", 2, (1, 2), 1, 2, "20", "20; 6; 0",
        "4 ×2; 0", "", SAME, SAME),
    Row("P19", _P19, 3, 1, "⟨(1,2,3)⟩ ⊂ ⟨(1,0,-3), (0,1,3)⟩ ⊂ R3", False, "⟨(1,2,3)⟩ ⊂ R3",
        1, (1, 1, 1), 1, 1, "32", "32; 18 ×2; 0", "5202/343; 5031/343; 2115/343; 0", "0",
        "⟨(1,2,3)⟩", SAME),
    # A comment in the companion code of Dandi et al. says that it stays on the spike; the gradient
    # (2 + 4s, 1/2) on ξ = s(4, 1) and a simulation of two steps say that it does not.
    Row("P20", "(4*x1 + x1**2 + x2)/2", 2, 1, "⟨(1,1/4)⟩ ⊂ R2", False, "R2", 1, (1, 1), 1, 1,
        "5", "19/4; 1/2; 0", "33/578; 1/578; 0", "0", SAME, "⟨(1,1/4)⟩", mean="1/2"),
    Row("P21", "He(2, x1) + He(2, x1)*He(2, x2) + x1*x2*x3", 3, 2, "{0}", True, "⟨e1⟩ ⊂ R3",
        2, (2, 2), 2, 2, "7", "7 ×2; 5; 4; 0", "", "", SAME, SAME),
    Row("P22", "He(2, x1) + He(2, x2) + He(2, x3) + He(3, x1)*He(8, x3)", 3, 2, "{0}", True,
        "R3", 2, (2,), 2, 2, "241926", "241926 ×2; 241920 ×9; 0", "", "", SAME, SAME),
    Row("P23", "x1 + x2 + x1*x2", 2, 1, "⟨(1,1)⟩", True, "R2", 2, (1, 2), 1, 2, "3", "3; 1; 0",
        "1/2 ×2; 0", "", SAME, SAME),
    Row("P24", "x1 + 2*x2 + He(2, x1)/2 + He(3, x3)", 3, 1, "⟨(1,2,0)⟩ ⊂ ⟨e1, e2⟩", True,
        "⟨e1, e2⟩", 3, (1, 1, 3), 3, 1, "23/2", "23/2; 13/2; 6; 0", "162/25; 158/25; 6; 0",
        "6 ×3; 0", SAME, "⟨(1,2,0)⟩"),
    Row("P25", "He(2, x1) - He(2, x2)", 2, 2, "{0}", True, "R2", 2, (2,), 2, 2, "4", "4 ×2; 0",
        "", "", SAME, SAME),
    Row("P26", "He(3, x1) + He(3, x1)*x2", 2, 3, "{0}", True, SAME, 3, (3, 1), 3, 1, "12",
        "12 ×3; 6; 0", "", "", SAME, SAME),
    Row("P27", "sqrt(2)*x1 + x1*(x2 + sqrt(3)*x3) + He(2, x1)*(sqrt(3)*x2 - x3)", 3, 1,
        "⟨e1⟩ ⊂ R3", False, "⟨e1, (0,1,√3)⟩ ⊂ R3", 1, (1, 1), 1, 1, "14", "14; 12; 8; 0",
        "12; 0", "0", "⟨e1⟩ ⊂ ⟨e1, (0,1,√3)⟩", "⟨e1⟩ ⊂ ⟨e1, (0,1,-√3/3)⟩"),
    Row("P28", "x1 + x1*x2 + (x1**2 - 1)*(x2 + x3*x4)", 4, 1, "⟨e1⟩ ⊂ ⟨e1, e2⟩", True,
        "⟨e1, e2⟩ ⊂ R4", 2, (1, 1, 2), 2, 2, "6", "6; 5; 4; 2; 0", "5; 2; 0", "2 ×2; 0",
        SAME, SAME),
)  # fmt: skip

_ERF_1 = "2/sqrt(3*pi)"

OPEN_CATALOGUE = (
    OpenRow("A01", "relu(x1) + abs(x2)", 2, 1, ("1/2", "0"), "⟨e1⟩", True, "R2", 2, 2, 2,
            "3/2 + 2/pi", "3/sqrt(2*pi)", "5/4 - 5/(2*pi)"),
    OpenRow("A02", "sign(x1) + abs(x1)*x2", 2, 1, ("sqrt(2/pi)", "sqrt(2/pi)"), "⟨(1,1)⟩", True,
            "⟨(1,1)⟩ ⊂ R2", 2, 1, 1, "2", "0", "2 - 4/pi"),
    OpenRow("A03", "x1 + sin(x1)*x2 + cos(x1)*x3", 3, 1, ("1", "0", "exp(-1/2)"),
            "⟨C_1⟩ ⊂ R3", False, "R3", 1, 1, 1, "2", "0", "1 - exp(-1)"),
    OpenRow("A04", "exp(x1)*x2", 2, 1, ("0", "exp(1/2)"), "⟨e2⟩ ⊂ R2", False, "R2", 1, 1, 1,
            "exp(2)", "0", "exp(2) - exp(1)"),
    OpenRow("A05", "sign(x1*x2*x3)", 3, 3, ("0", "0", "0"), "{0}", True, "{0}", 3, 3, 3, "1",
            "0", "1"),
    OpenRow("A06", "relu(x1)*relu(x2)", 2, 1, ("1/(2*sqrt(2*pi))", "1/(2*sqrt(2*pi))"),
            "⟨(1,1)⟩", True, "R2", 2, 1, 2, "1/4", "1/(2*pi)",
            "1/4 - 1/(4*pi) - 1/(4*pi**2)"),
    OpenRow("A07", "erf(x1) - 2*x1/sqrt(3*pi)", 1, 3, ("0",), "{0}", True, "{0}", 3, 3, 1,
            "2/pi*asin(2/3) - 4/(3*pi)", "0", "2/pi*asin(2/3) - 4/(3*pi)"),
    OpenRow("A08", "relu(x1) + relu(x2)", 2, 1, ("1/2", "1/2"), "⟨(1,1)⟩", True, "R2", 2, 1, 2,
            "1 + 1/pi", "sqrt(2/pi)", "1/2 - 1/pi"),
    OpenRow("A09", "relu(x1) + 2*relu(x2)", 2, 1, ("1/2", "1"), "⟨(1,2)⟩ ⊂ R2", False, "R2",
            1, 1, 1, "5/2 + 2/pi", "3/sqrt(2*pi)", "5/4 - 5/(2*pi)"),
    OpenRow("A10", "cos(x1)*cos(x2)", 2, 2, ("0", "0"), "{0}", True, "R2", 2, 2, 2,
            "((1 + exp(-2))/2)**2", "exp(-1)", "((1 - exp(-2))/2)**2"),
    OpenRow("A11", "max(x1, x2)", 2, 1, ("1/2", "1/2"), "⟨(1,1)⟩", True, "R2", 2, 1, 2, "1",
            "1/sqrt(pi)", "1/2 - 1/pi"),
    OpenRow("A12", "x1*relu(x2)", 2, 1, ("1/sqrt(2*pi)", "0"), "⟨e1⟩ ⊂ R2", False, "R2", 1, 1, 1,
            "1/2", "0", "1/2 - 1/(2*pi)"),
    OpenRow("A13", "gelu(x1) - x1/2", 1, 2, ("0",), "{0}", True, "R1", 2, 2, 2,
            "1/12 + 1/(2*pi*sqrt(3))", "1/(2*sqrt(pi))",
            "1/12 + 1/(2*pi*sqrt(3)) - 1/(4*pi)"),
    OpenRow("A14", "erf(x1) + erf(x2) + erf(x3)", 3, 1, (_ERF_1,) * 3, "⟨(1,1,1)⟩", True,
            "⟨(1,1,1)⟩ ⊂ R3", 2, 1, 2, "6/pi*asin(2/3)", "0", "6/pi*asin(2/3) - 4/pi"),
    OpenRow("A15", "erf(x1) + 2*erf(x2) + He(2, x1)*x3", 3, 1,
            (_ERF_1, "4/sqrt(3*pi)", "0"), "⟨(1,2,0)⟩ ⊂ R3", False, "⟨(1,2,0)⟩ ⊂ R3", 1, 1, 1,
            "2 + 10/pi*asin(2/3)", "0", "2 + 10/pi*asin(2/3) - 20/(3*pi)"),
)  # fmt: skip


def chain(text: str, row: Row | OpenRow) -> list[Subspace]:
    """Return U_1, U_2, … of a column; an empty list if nothing is learnt."""
    written = row.staircase if text == SAME else text
    return [] if written == "{0}" else [_span(part, row) for part in written.split(" ⊂ ")]


def values(text: str) -> list[sp.Expr]:
    """Return the numbers of a list such as "4 ×2; 0"."""
    found: list[sp.Expr] = []
    for part in filter(None, text.split("; ")):
        number, _, times = part.partition(" ×")
        found += [parse_expression(number, {})] * int(times or 1)
    return found


def _span(text: str, row: Row | OpenRow) -> Subspace:
    if text.startswith("R"):
        return Subspace.whole(int(text[1:]))
    vectors = []
    for part in text.strip("⟨⟩").split(", "):
        if part == "C_1" and isinstance(row, OpenRow):
            vectors.append([parse_expression(entry, {}) for entry in row.first_tensor])
        elif part.startswith("e"):
            vectors.append([sp.Integer(i == int(part[1:])) for i in range(1, row.dimension + 1)])
        else:
            entries = part.strip("()").replace("√3", "sqrt(3)").split(",")
            vectors.append([parse_expression(entry, {}) for entry in entries])
    return Subspace.spanned_by(vectors, row.dimension)
