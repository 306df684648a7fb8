"""From a lowered system, exact parameters and a solution in floats to a certificate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...errors import CertificationError, UnsupportedExpressionError
from ...numeric.proofs.grid import Branch, BranchedFunction
from ...numeric.proofs.integrals import LineIntegrator
from ...numeric.proofs.krawczyk import ProvenRoot, prove_root
from ...numeric.proofs.moments import Convolution
from ...numeric.proofs.panels import WorkLimitError
from ...symbolic.exact.ball_functions import Ball
from ...symbolic.exact.enclosures import Enclosure
from ...symbolic.gaussian.convolutions import (
    BranchedBalls,
    ConvolutionBalls,
    GaussianTables,
    TableBalls,
    gaussian_tables,
)
from ...symbolic.gaussian.enclosures import INTERMEDIATE_DIGITS, PRECISION, enclosure_of
from ...symbolic.gaussian.tail_analysis import integrand_tails, mass_outside
from ...symbolic.lowering.ball_program import BallLoop, BallNewton, BallProgram
from ...symbolic.lowering.lowered import LoweredSystem
from .certificate import Certificate

# The integrands of saddle-point equations are at most of the fourth degree in the tables.
_DEGREE = 4
# Lines longer than this have integrands that grow almost like the inverse of the normal density.
_FARTHEST = 200


@dataclass(frozen=True, eq=False)
class LineTables:
    """The tables of a lowered system as Gaussian convolutions, before there are numbers."""

    lowered: LoweredSystem
    tables: GaussianTables

    @classmethod
    def of(cls, lowered: LoweredSystem) -> LineTables:
        """Return the tables of a system.

        Raises
        ------
        UnsupportedExpressionError
            If a table is no convolution that can be enclosed.
        """
        return cls(lowered, gaussian_tables(lowered.definitions, lowered.node))

    def averages(self, parameters: Mapping[str, Ball], bits: int, digits: int) -> LineAverages:
        """Return the averages at given parameters (balls by code name)."""
        lowered = self.lowered
        values = {p: parameters[lowered.identifiers[p]] for p in lowered.table_parameters}
        return LineAverages(lowered, self.tables.balls(values), bits, digits)


class LineAverages:
    """Averages of the sums of a pass over the nodes.

    Parameters
    ----------
    balls : TableBalls
        Its tables at given parameters.
    bits, digits : int
        Working precision, and wanted digits of the averages.
    """

    def __init__(self, lowered: LoweredSystem, balls: TableBalls, bits: int, digits: int) -> None:
        self._node, *names = lowered.program.tables
        self._growth = dict(zip(names, balls.growth, strict=True))
        flint = require_flint()
        self._reach = self._enough(digits)
        self._line = LineIntegrator(
            [convolution(c) for c in balls.convolutions],
            [branched(direct.function) for direct in balls.directs],
            balls.combine,
            reach=self._reach,
            bits=bits,
            goal=flint.arb(10) ** -digits,
            even=lowered.program.even,
            breaks=balls.breaks,
        )
        self.panels = 0

    def __call__(
        self, loop: BallLoop, scalars: Mapping[sp.Symbol, Ball], progress: Callable[[], object]
    ) -> list[Ball]:
        """Return enclosures of the averages of the sums, in order.

        `progress` is called at every evaluation of the integrands.

        Raises
        ------
        CertificationError
            If an integrand cannot be enclosed on the line or bounded outside.
        """
        local_values, sums = ({a.target: a.value for a in x} for x in (loop.locals, loop.sums))
        bounds = integrand_tails(
            local_values, sums, node=self._node, tables=self._growth, scalars=scalars
        )
        tails = [mass_outside(bound, self._reach) for bound in bounds]
        integrands = loop.integrands(scalars)

        def counted(tables: Sequence[Ball]) -> Sequence[Ball]:
            progress()
            return integrands(tables)

        result = self._line.integrate(counted, tails)
        self.panels = max(self.panels, self._line.panels)
        return result

    def _enough(self, digits: int) -> Ball:
        """Return where to cut the line: beyond, products of the tables weigh 10^-digits."""
        arb = require_flint().arb
        wanted = arb(10) ** -digits
        reach = arb(max(4, math.ceil(math.sqrt(2 * digits * math.log(10)))))
        sizes = [growth.size for growth in self._growth.values()]
        while reach < _FARTHEST:
            if all(reach >= size.start for size in sizes):
                largest = max((float(size.at(reach).upper()) for size in sizes), default=1.0)
                largest = max(largest, float(reach))
                if math.isfinite(largest):
                    density = (-reach * reach / 2).exp() * arb(largest) ** _DEGREE
                    if density < wanted:
                        return reach
            reach = reach + 1
        raise CertificationError(
            "the tables grow too fast against the normal density: the integrals would run over "
            f"more than {_FARTHEST} standard deviations\n  weaker growth of the activations, or a "
            "smaller spike, is needed"
        )


def convolution(balls: ConvolutionBalls) -> Convolution:
    """Return a convolution as the integrator takes it."""
    functions = tuple(branched(f) for f in balls.functions)
    return Convolution(functions, balls.moments, balls.slope, balls.offset, balls.spread)


def branched(balls: BranchedBalls) -> BranchedFunction:
    """Return a function and its branches as the integrator takes them."""
    branches = tuple(Branch(b.function, b.left, b.right) for b in balls.branches)
    return BranchedFunction(branches, balls.tails)


DEFAULT_DIGITS = 15

Parameters = Callable[[int], Mapping[str, Enclosure | float]]

# Most digits of integrals over the line: the work grows with about the third power of the digits.
MOST_DIGITS_OF_INTEGRALS = 200

# Attempts with more and more digits; the first shows how many are lost on the way. What fails for
# another reason than digits fails again.
_ATTEMPTS, _FAILURES = 5, 2
_SPARE_DIGITS = 6
# Rounding, and what integrals cancel.
_SPARE_BITS = 40
# A solution in floats agrees with the proven one this well, or up to this multiple of its error
# estimate, or it is that of something else. An estimate that is a good part of the number says
# nothing; without one less is asked, since digits are lost between unknowns and what they give.
_AGREEMENT, _ERRORS, _MOST, _UNKNOWN = 1e-6, 10.0, 1e-2, 1e-3


@dataclass
class _Attempt:
    """One run of the proof at one working precision."""

    program: BallProgram
    parameters: Mapping[str, Ball]
    start: Mapping[str, float]
    digits: int
    averages: LineAverages | None
    progress: Callable[[], object]
    roots: dict[str, Ball] = field(default_factory=dict)
    contraction: float = 0.0

    def run(self) -> dict[str, Ball]:
        return self.program.run(self.parameters, self._average, self._root)

    def _average(self, loop: BallLoop, scalars: Mapping[Any, Ball]) -> Sequence[Ball]:
        assert self.averages is not None
        return self.averages(loop, scalars, self.progress)

    def _root(self, block: BallNewton, scalars: dict[Any, Ball]) -> Sequence[Ball]:
        arb = require_flint().arb
        names = [str(x) for x in block.unknowns]

        def system(point: Sequence[Ball], derivatives: bool) -> tuple[list[Any], list[Any]]:
            return block.evaluate(point, scalars, self._average, derivatives)

        try:
            result: ProvenRoot = prove_root(
                system,
                [arb(self.start[name]) for name in names],
                logarithmic=block.logarithmic,
                goal=arb(10) ** -self.digits,
            )
        except CertificationError as error:
            # Of the same kind: it decides whether more digits are tried.
            raise type(error)(f"equations for {', '.join(names)}: {error}") from None
        self.roots.update(zip(names, result.box, strict=True))
        self.contraction = max(self.contraction, result.contraction)
        return result.unknowns


def certify(
    lowered: LoweredSystem,
    parameters: Parameters,
    solution: Mapping[str, float],
    *,
    errors: Mapping[str, float] | None = None,
    digits: int = DEFAULT_DIGITS,
    shown: Mapping[str, str] | None = None,
    progress: bool = True,
) -> Certificate:
    """Prove intervals for the outputs and unknowns of a system of equations.

    Parameters
    ----------
    lowered : LoweredSystem
    parameters : callable
        Takes a number of digits; returns enclosures with about so many for all parameters.
        Infinity is given as a float.
    solution : mapping from str to float
        Outputs and unknowns of a solution in floats, with the coordinates of these that Newton's
        method moves. The proof starts from it, and its intervals have to agree with it.
    errors : mapping from str to float, optional
        Estimated absolute errors of these floats.
    digits : int
        Proven digits of each output, or of each unknown if there are none: the radius is at most
        10^-digits of the number, or 10^-2digits where it may be zero.
    shown : mapping from str to str, optional
        Parameters for the certificate.
    progress : bool
        Show a bar if it takes longer than a second.

    Raises
    ------
    CertificationError
        If the proof does not succeed; the message says which part.
    UnsupportedExpressionError
        If the system is outside of what can be certified.
    MissingDependencyError
        If python-flint is not installed.
    """
    flint = require_flint()
    if lowered.program.tables and digits > MOST_DIGITS_OF_INTEGRALS:
        raise CertificationError(
            f"at most {MOST_DIGITS_OF_INTEGRALS} digits of integrals are proven, got digits="
            f"{digits}: a proof would take too long\n  digits={digits} without certify=True gives "
            "numbers with estimated errors"
        )
    results = tuple(lowered.results)
    # A system without outputs is solved for its unknowns.
    outputs = [name for name in lowered.system.outputs if name in results] or results
    program = BallProgram(lowered.program, results)
    tables = _tables(lowered)
    wanted = digits + _SPARE_DIGITS
    failures: list[CertificationError] = []
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    with PRECISION, tqdm(
        desc="certificate", unit="evaluation", delay=1, leave=False,
        disable=None if progress else True,
    ) as bar:  # fmt: skip
        for _ in range(_ATTEMPTS):
            if wanted + _SPARE_DIGITS > INTERMEDIATE_DIGITS:
                break
            bits = math.ceil(wanted * math.log2(10)) + _SPARE_BITS
            with flint.ctx.workprec(bits):
                enclosed = parameters(wanted + _SPARE_DIGITS)
                given = {name: as_ball(value) for name, value in enclosed.items()}
                try:
                    averages = None if tables is None else tables.averages(given, bits, wanted)
                    attempt = _Attempt(program, given, solution, wanted, averages, bar.update)
                    result = attempt.run()
                except CertificationError as error:
                    failures.append(error)
                    if isinstance(error, WorkLimitError) or len(failures) == _FAILURES:
                        break
                    wanted = 2 * wanted
                    continue
                _compare(result, solution, errors or {})
                missing = max(_missing(result[name], digits) for name in outputs)
                if missing <= 0:
                    return _certificate(
                        lowered, result, attempt, digits, bits, _shown(enclosed, shown)
                    )
                wanted += missing + _SPARE_DIGITS
    if failures:
        raise CertificationError(
            f"{failures[0]}\n  tried with up to {bits} bits; less extreme parameters may have a "
            "proof, or the same equations in another form, as unknown = average; digits= without "
            "certify=True gives numbers with estimated errors"
        )
    raise CertificationError(
        f"{digits} digits are not reached at a working precision of {bits} bits: {missing} more "
        "would be needed; ask for fewer"
    )


def as_ball(value: Enclosure | float) -> Ball:
    """Return an enclosure as a ball that contains it; infinity as itself."""
    flint = require_flint()
    if not isinstance(value, Enclosure):
        return flint.arb(value)
    middle, radius = (
        flint.arb((int(x.p), 1 - int(x.q).bit_length())) for x in (value.midpoint, value.radius)
    )
    return middle + flint.arb(0, radius)


def _shown(
    enclosed: Mapping[str, Enclosure | float], shown: Mapping[str, str] | None
) -> dict[str, str]:
    return {**{name: str(value) for name, value in enclosed.items()}, **(shown or {})}


def _tables(lowered: LoweredSystem) -> Any:
    if not lowered.program.tables:
        return None
    return LineTables.of(lowered)


def _missing(value: Ball, digits: int) -> int:
    """Return how many more digits a ball would need; 0 or less if it has them."""
    radius, size = value.rad(), abs(value).lower()
    if radius == 0:
        return 0
    arb = type(value)
    wanted = (size * arb(10) ** -digits).max(arb(10) ** (-2 * digits))
    if radius <= wanted:
        return 0
    return max(1, math.ceil(float((radius / wanted).log() / arb(10).log())))


def _compare(
    result: Mapping[str, Ball], solution: Mapping[str, float], errors: Mapping[str, float]
) -> None:
    """Refuse intervals that do not belong to the solution in floats."""
    arb = require_flint().arb
    scale = max(1.0, *(abs(solution[name]) for name in result if name in solution))
    for name, value in result.items():
        if name not in solution:
            continue
        expected = arb(solution[name])
        size = max(abs(solution[name]), min(1.0, 1e-6 * scale))
        error = errors.get(name, math.nan)
        allowed = _UNKNOWN * size
        if math.isfinite(error):
            allowed = max(_AGREEMENT * size, min(_ERRORS * error, _MOST * size))
        if not abs(value - expected).lower() <= allowed:
            raise CertificationError(
                f"{name} is proven to be {value.str(12)}, and the solution in floats says "
                f"{solution[name]:.12g}: they belong to different equations or to different "
                "solutions of them, so nothing is certified\n  compare with digits=, and where "
                "there are several solutions give the one that is meant with start="
            )


def _certificate(
    lowered: LoweredSystem,
    result: Mapping[str, Ball],
    attempt: _Attempt,
    digits: int,
    bits: int,
    shown: Mapping[str, str],
) -> Certificate:
    def exact(balls: Mapping[str, Ball]) -> dict[str, Enclosure]:
        return {name: enclosure_of(ball, name) for name, ball in balls.items()}

    try:
        values, box = exact(result), exact(attempt.roots)
    except UnsupportedExpressionError as error:
        raise CertificationError(str(error)) from None
    panels = 0 if attempt.averages is None else attempt.averages.panels
    return Certificate(
        system=lowered.system.name,
        parameters=dict(shown),
        values=values,
        box=box,
        digits=digits,
        bits=bits,
        panels=panels,
        contraction=attempt.contraction,
        statement=_statement(lowered.system.name, box, panels),
    )


def _statement(system: str, box: Mapping[str, Enclosure], panels: int) -> str:
    integrals = ", with their integrals, not quadrature sums," if panels else ""
    inside = ", ".join(f"{name} in {value}" for name, value in box.items())
    proven = (
        f"Proven: the equations of {system}{integrals} have exactly one solution with {inside} at "
        "the given parameters, and its values lie in these intervals. Not stated: whether there "
        "are solutions outside of this box, and"
        if box
        else f"Proven: the formulas of {system}{integrals} have values in these intervals at the "
        "given parameters. Not stated:"
    )
    return f"{proven} whether the equations describe what they were derived for."
