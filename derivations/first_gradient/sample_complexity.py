r"""From how many samples: what is known for a target, and whether its assumptions hold.

The ledger of Damian, Lee & Soltanolkotabi (arXiv 2206.15144) beside the neighbouring results, for
one student and one target :math:`f(x_1,\dots,x_r)` of degree p with the averaged Hessian
:math:`H = C_2 = \mathbb{E}\nabla^2 f`. Scales leave out constants and logarithms, except for the
one derived here: after the preprocessing, which takes mean and linear part out of the labels, the
gradient of a neuron on n samples has the squared norm S + V with

.. math:: S = \mu_2^2\,|H|_F^2/d ,\qquad V = \frac dn\left[\mathrm{Var}(\sigma')\,
          (\|P_{>1}f\|^2 + \Delta) + \mu_1^2\,(C_0^2 + |C_1|^2)\right].

S, the leading term of the gradient expansion, is inside the relevant space; of V, the noise, only
the share r/d is. The second part of V is what is left of the linear part because the samples'
covariance is not exactly the identity; where :math:`\mathrm{Var}\,\sigma' = \mu_1^2`, as for relu,
V depends on :math:`\mathbb{E} y^2` alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from ...errors import AssumptionError, ParameterError
from ...json_document import WritesJson
from ...numeric.arguments import nonnegative_number, whole_number
from ...pages import Block, Page, Table, Typeset
from ...pictures import Drawn, Line, Lines
from ...runtime.precision import local_context
from ...symbolic.expressions.activations import Activation, activation
from ...symbolic.expressions.standing import Standing
from ...symbolic.gaussian.zero_test import is_exactly_zero
from ...symbolic.hermite.coefficients import hermite_coefficient, slope_variance
from ...symbolic.leaps.leap_index import leap_index
from ...symbolic.targets.spans import spans_of
from ...symbolic.targets.stein import DIMENSION, SAMPLES, gradient_expansion
from ...symbolic.targets.target import Target, closed_target as read_target
from ..formulas import latex
from ..symbols import noise

_DLS = "Damian, Lee, Soltanolkotabi, arXiv 2206.15144"


@dataclass(frozen=True)
class Requirement:
    """One row of the ledger.

    Attributes
    ----------
    subject : str
        What is to be done, and by what means.
    relation : str
        Such as "n ≳": what stands left of `scale`.
    scale : Expr or None
        In d, and Δ in the row with constants; None if the row does not apply.
    obstacle : str
        Which assumption does not hold; empty if the row applies.
    remark : str
        What has to be known beside the number.
    """

    subject: str
    relation: str
    scale: sp.Expr | None
    standing: Standing
    source: str
    obstacle: str = ""
    remark: str = ""

    @property
    def applies(self) -> bool:
        """Whether the assumptions hold, as far as they can be checked."""
        return not self.obstacle

    @property
    def basis(self) -> str:
        """What the number rests on; a dash if there is none."""
        return self.standing.value if self.applies else "–"

    @property
    def statement(self) -> str:
        """The requirement, or why there is none, as text."""
        if self.scale is None:
            return f"does not apply: {self.obstacle}"
        return f"{self.relation} {self.scale}"


@dataclass(frozen=True, repr=False)
class SampleComplexity(Page, Typeset, Drawn, WritesJson):
    r"""The ledger of a student and a target.

    Attributes
    ----------
    leap_index : int
        Smallest k >= 1 with :math:`C_k \ne 0`; the information exponent.
    degree : int or None
        p; None if the target is not a polynomial.
    directions : int
        r, the dimension of the relevant space; of a target that is not a polynomial the number
        of its coordinates, which can be more.
    hessian : Matrix, shape (r, r)
        H = C_2 in the coordinates of the target.
    signal : Expr
        S, in d; 0 if the leading term does not come from H.
    noise : Expr
        V, in d, n and Δ.
    """

    student: Activation
    target: Target
    leap_index: int
    degree: int | None
    directions: int
    hessian: sp.Matrix
    hessian_rank: int
    signal: sp.Expr
    noise: sp.Expr
    rows: tuple[Requirement, ...]

    @property
    def half_samples(self) -> sp.Expr:
        r"""The n, in d and Δ, at which S = V; for relu :math:`(\pi/2)\,d^2\,\mathbb{E}y^2/|H|_F^2`.

        Raises
        ------
        AssumptionError
            If H or the second coefficient of the student vanishes.
        """
        if self.signal == 0:
            raise AssumptionError(_no_signal(self.student, self.hessian_rank))
        return sp.expand(self.noise * SAMPLES / self.signal)

    def relevant_share(self, dimension: int, samples: int, noise_variance: float = 0.0) -> float:
        """Predict the share of the squared gradient inside the relevant space.

        (S + V r/d)/(S + V), after the preprocessing and averaged over neurons; corrections are of
        the order 1/d and, for few samples, d/n.

        Raises
        ------
        ParameterError
            If an argument is outside its range.
        AssumptionError
            If S and V vanish: the student is linear, and the target has no linear part.
        """
        rule = {
            DIMENSION: whole_number("dimension", dimension),
            SAMPLES: whole_number("samples", samples),
            noise: nonnegative_number("noise_variance", noise_variance),
        }
        signal, scatter = (float(e.subs(rule).evalf(17)) for e in (self.signal, self.noise))
        if signal + scatter == 0:
            raise AssumptionError(
                f"the student {self.student} is linear: after the preprocessing its gradient "
                "vanishes to leading order, and no share of it is known"
            )
        return (signal + scatter * self.target.dimension / dimension) / (signal + scatter)

    def __repr__(self) -> str:
        return (
            f"SampleComplexity({self.student} on {self.target}: leap index {self.leap_index}, "
            f"rank H = {self.hessian_rank}, {sum(row.applies for row in self.rows)} of "
            f"{len(self.rows)} rows apply)"
        )

    def page(self) -> Iterable[Block]:
        """Return a table of the rows, and remarks on those that apply."""
        yield self._headline()
        yield Table(
            [(row.subject, row.statement, row.basis) for row in self.rows],
            ("what", "samples or neurons", "rests on", "source", "remark"),
            beside=[(row.source, row.remark) for row in self.rows],
        )
        yield from (f"{x.subject}: {x.remark}" for x in self.rows if x.remark and x.applies)

    def _headline(self) -> str:
        degree = "not a polynomial" if self.degree is None else f"degree {self.degree}"
        return (
            f"student {self.student}, target {self.target}: leap index {self.leap_index}, "
            f"{degree}, r = {self.directions}, rank H = {self.hessian_rank}"
        )

    def picture(self) -> Lines:
        """Return the requirements that apply over the dimension, without label noise."""
        places = [10 * 2**k for k in range(11)]
        lines = [
            Line(places, [float(row.scale.subs({DIMENSION: d, noise: 0})) for d in places],
                 f"{row.subject}: {row.relation} ${latex(row.scale)}$")
            for row in self.rows
            if row.applies and row.scale is not None
            and row.scale.free_symbols <= {DIMENSION, noise}
        ]  # fmt: skip
        if not lines:
            raise ParameterError("no requirement applies, so that there is none to draw")
        title = f"student {self.student}, target {self.target}"
        return Lines(lines, "dimension $d$", "samples or neurons", title, logarithmic="xy")

    def latex(self) -> str:
        """Return the table in LaTeX, an array without delimiters."""
        lines = [
            rf"\text{{{row.subject}}} & {_latex_cell(row)} & \text{{{row.basis}}}"
            for row in self.rows
        ]
        return r"\begin{array}{lll}" + r" \\ ".join(lines) + r"\end{array}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: texts, numbers, lists and dictionaries."""
        return {
            "student": str(self.student),
            "target": str(self.target),
            "leap_index": self.leap_index,
            "degree": self.degree,
            "directions": self.directions,
            "hessian_rank": self.hessian_rank,
            "rows": [
                {
                    "subject": row.subject,
                    "relation": row.relation,
                    "scale": None if row.scale is None else str(row.scale),
                    "standing": row.standing.value,
                    "source": row.source,
                    "obstacle": row.obstacle,
                    "remark": row.remark,
                }
                for row in self.rows
            ],
        }


def sample_complexity(
    student: str | sp.Expr | Activation, target: str | sp.Expr | Activation | Target
) -> SampleComplexity:
    """Collect what is known about the samples that a target needs.

    Parameters
    ----------
    student : str, Expr or Activation
        σ, continuous.
    target : str, Expr, Activation or Target

    Raises
    ------
    AssumptionError
        If the student jumps, or the target is constant as far as can be seen.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.
    UndecidedError
        If whether a coefficient vanishes cannot be decided.

    Examples
    --------
    >>> ledger = sample_complexity("relu", "x1*x2 + He(3, x1)")
    >>> ledger.half_samples
    pi*Delta*d**2/4 + 7*pi*d**2/4
    >>> print(sample_complexity("relu", "He(2, x1) + He(3, x2)").rows[0].statement)
    does not apply: rank H = 1 < r = 2
    """
    sigma = activation(student, argument="student")
    f = read_target(target)
    mu1, mu2 = (hermite_coefficient(sigma, k) for k in (1, 2))
    leap = leap_index(f)
    hessian = sp.Matrix(f.dimension, f.dimension, sp.flatten(f.hermite_tensor(2).tolist()))
    rank = _rank(hessian)
    directions = _directions(f)
    leading = gradient_expansion(sigma, f, 1, removed=(0, 1)).leading
    from_hessian = leading is not None and leading.k == 1
    linear = f.contract(1, [sp.S.Zero] * f.dimension, leave=1)
    affine_square = f.mean**2 + sp.Add(*(c**2 for c in linear))
    scatter = slope_variance(sigma) * (f.norm_squared - affine_square + noise)
    result = SampleComplexity(
        student=sigma,
        target=f,
        leap_index=leap,
        degree=f.degree,
        directions=directions,
        hessian=hessian,
        hessian_rank=rank,
        signal=leading.mean_square if leading is not None and from_hessian else sp.S.Zero,
        noise=DIMENSION / SAMPLES * (scatter + mu1**2 * affine_square),
        rows=(),
    )
    return _with_rows(result, mu2)


def _with_rows(found: SampleComplexity, mu2: sp.Expr) -> SampleComplexity:

    d, r, p = DIMENSION, found.directions, found.degree
    sigma, leap = found.student, found.leap_index
    no_degree = "" if p is not None else "the target is not a polynomial"
    missing = no_degree
    if not missing and found.hessian_rank < r:
        missing = f"rank H = {found.hessian_rank} < r = {r}"
    if not missing and is_exactly_zero(mu2, f"Hermite coefficient 2 of {sigma}"):
        missing = f"mu_2 = 0 for the student {sigma}"
    is_relu = sigma.name == "relu"
    standing = Standing.THEOREM if is_relu else Standing.HEURISTIC
    remark = "" if is_relu else "proven for relu"
    half = found.half_samples if found.signal != 0 else None
    mu_leap = hermite_coefficient(sigma, leap)
    blind = is_exactly_zero(mu_leap, f"Hermite coefficient {leap} of {sigma}")
    rows = (
        _row("first layer, preprocessed step", "n ≳", r * d**2, standing, _DLS, missing, remark),
        _row("second layer, same samples", "n ≳", _power(r, p) * d, standing, _DLS, missing,
             remark),
        _row("second layer, neurons", "m ≳", _power(r, p), standing, _DLS, missing, remark),
        _row(
            "half of the preprocessed gradient relevant", "n =", half, Standing.DERIVED_HERE,
            "leading term of the gradient expansion against its noise",
            "" if half is not None else _no_signal(sigma, found.hessian_rank),
            "for d → ∞; inside the range of H",
        ),
        _row(
            "one giant step, raw labels", "n ≍", d**leap, Standing.THEOREM,
            "Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270",
            f"mu_{leap} = 0 for the student {sigma}, leap index {leap}" if blind else "",
            "learns directions inside the range of C_" + str(leap),
        ),
        _row(
            "kernel methods", "n ≳", _power(d, p), Standing.THEOREM,
            f"Ghorbani, Mei, Misiakiewicz, Montanari, arXiv 1904.12191; see {_DLS}", no_degree,
            "needed by any rotation-invariant kernel",
        ),
        _row(
            "correlational queries, worst target of this degree", "n ≳",
            _power(d, p, sp.Rational(1, 2)), Standing.HEURISTIC, _DLS, no_degree,
            "theorem on queries of tolerance τ, read with τ = 1/sqrt(n); for the class He_p(u.x) "
            "of all directions u, not for this target",
        ),
    )  # fmt: skip
    return replace(found, rows=rows)


def _row(
    subject: str, relation: str, scale: sp.Expr | None, standing: Standing, source: str,
    obstacle: str, remark: str = "",
) -> Requirement:  # fmt: skip
    value = None if obstacle or scale is None else sp.sympify(scale, strict=True)
    return Requirement(subject, relation, value, standing, source, obstacle, remark)


def _power(base: Any, p: int | None, factor: sp.Expr = sp.S.One) -> sp.Expr:
    return sp.S.Zero if p is None else sp.sympify(base, strict=True) ** (factor * p)


def _no_signal(student: Activation, rank: int) -> str:
    return "H = 0" if rank == 0 else f"mu_2 = 0 for the student {student}"


def _latex_cell(row: Requirement) -> str:
    if row.scale is None:
        return rf"\text{{{row.statement}}}".replace("_", r"\_")
    left = row.relation.replace("≳", r"\gtrsim").replace("≍", r"\asymp")
    return f"{left} {latex(row.scale)}"


def _directions(f: Target) -> int:
    """Dimension of the relevant space; of a target that is no polynomial, that of its frame."""
    return f.dimension if f.degree is None else spans_of(f).relevant_subspace.dimension


def _rank(matrix: sp.Matrix) -> int:
    """Rank of a matrix of exact numbers; pivots are decided, not guessed."""
    entries: Sequence[sp.Expr] = list(matrix)
    if all(entry.is_Rational for entry in entries):
        return int(matrix.rank())
    rows = [i for i in range(matrix.rows) if any(e != 0 for e in matrix.row(i))]
    columns = [j for j in range(matrix.cols) if any(e != 0 for e in matrix.col(j))]
    rest = matrix.extract(rows, columns)
    # Long entries grow beyond all bounds in an exact elimination; most matrices need none.
    if rest.is_square and _is_regular(rest):
        return int(rest.rows)
    return int(rest.rank(iszerofunc=lambda e: is_exactly_zero(sp.expand(e), "a pivot")))


def _is_regular(matrix: sp.Matrix) -> bool:
    """Whether the determinant is far from zero in digits: rows of length 1, 40 digits each."""
    ctx = local_context(40)
    numbers = [sp.N(entry, 40) for entry in matrix]
    if not all(number.is_Float or number.is_Rational for number in numbers):
        return False
    digits = ctx.matrix(matrix.rows, matrix.cols)
    for position, number in enumerate(numbers):
        digits[divmod(position, matrix.cols)] = ctx.mpf(str(number))
    lengths = [ctx.norm(digits[i, :], 2) for i in range(matrix.rows)]
    return bool(abs(ctx.det(digits)) > ctx.mpf(10) ** -20 * ctx.fprod(lengths))
