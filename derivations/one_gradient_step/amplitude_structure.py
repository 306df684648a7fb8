r"""What the form of a student proves about J(h) for amplitudes of any size.

A student is taken apart into ramps a z + b\|z\|, functions that saturate, one sine, and bounded
rests, with arguments rz + s. Then

* :math:`|\sigma'| \le L`, so :math:`|G'| \le L`, :math:`|G''| \le L\sqrt{2/\pi}`, :math:`|G'''| \le
  \sqrt2 L` (Stein's lemma), which bounds the derivatives of J;
* for large \|h\| J has a lower bound: ramps leave every bound, because
  :math:`\mathbb{E}|s + \xi| \ge |s|`; saturating students differ from a step s by d with
  :math:`\mathbb{E}(G(ht) - s(ht))^2 \le D^2/(\sqrt{2\pi}|h|)`, :math:`D \le \|d\|_2 + |\Delta|
  (\varphi(0) 2 - \pi^{-1/2})^{1/2}` with the size Δ of the step (Young's inequality for the first
  part, :math:`\int_0^\infty \Phi(-s)^2 ds = \varphi(0) - 1/(2\sqrt\pi)` for the second), and
  :math:`|\Delta| |s/r|^{1/2}` more for a step that is not at zero; a sine averages out,
  :math:`|\mathbb{E} f(t)\sin(ht + s)| \le \|f' - tf\|/|h|` (integration by parts).

(Derived here.)
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from ...errors import CertificationError
from ...symbolic.activations import z
from ...symbolic.functions import relu, sigmoid, softplus


@dataclass(frozen=True)
class _Part:
    """Of a function of z: its slope's bound, size of its rest, and half of its step with the norm.

    `saturates` is the square of the norm of f − step over the line, None where it has none.
    """

    slope: sp.Expr
    rest: sp.Expr
    ramp: tuple[sp.Expr, sp.Expr] = (sp.S.Zero, sp.S.Zero)
    half_step: sp.Expr | None = None
    saturates: sp.Expr | None = None


_HALF = sp.S.Half
# From 0 on: int (1 - tanh)^2 = 2 log 2 - 1, int erfc^2 = (2 - sqrt 2)/sqrt(pi), int arccot^2 =
# pi log 2. softplus = relu + log(1 + exp(-|z|)).
_PARTS = {
    sp.tanh: _Part(sp.S.One, sp.S.One, half_step=sp.S.One, saturates=4 * sp.log(2) - 2),
    sp.erf: _Part(
        2 / sp.sqrt(sp.pi),
        sp.S.One,
        half_step=sp.S.One,
        saturates=2 * (2 - sp.sqrt(2)) / sp.sqrt(sp.pi),
    ),
    sp.atan: _Part(sp.S.One, sp.pi / 2, half_step=sp.pi / 2, saturates=2 * sp.pi * sp.log(2)),
    sp.sin: _Part(sp.S.One, sp.S.One),
    sp.cos: _Part(sp.S.One, sp.S.One),
    sp.Abs: _Part(sp.S.One, sp.S.Zero, ramp=(sp.S.Zero, sp.S.One)),
    relu: _Part(sp.S.One, sp.S.Zero, ramp=(_HALF, _HALF)),
    softplus: _Part(sp.S.One, sp.log(2), ramp=(_HALF, _HALF)),
}
# Of z f(z), f a sigmoid: |z|(1 - tanh|z|) = 2|z|/(1 + exp(2|z|)) <= 2|z| exp(-2|z|) and
# |z| sech(z)^2 <= 4|z| exp(-2|z|); erfc(x) <= exp(-x^2). Swish and gelu are made of these.
_WITH_FACTOR = {
    sp.tanh: _Part(1 + 2 * sp.exp(-1), sp.exp(-1), ramp=(sp.S.Zero, sp.S.One)),
    sp.erf: _Part(
        1 + sp.sqrt(2 / (sp.pi * sp.E)), 1 / sp.sqrt(2 * sp.E), ramp=(sp.S.Zero, sp.S.One)
    ),
}


@dataclass(frozen=True)
class StudentShape:
    r"""A student as sums of known parts.

    Attributes
    ----------
    slope : Expr
        L, a bound of \|σ'\|.
    ramp : tuple of Expr
        a and b of the ramps a z + b\|z\|.
    rest : Expr
        A bound of what is left of σ.
    distance : Expr or None
        D of a student that saturates, None if it does not.
    sine : tuple of Expr or None
        (c, a) of a student c sin(a z + s) + constant.
    constant : Expr
        What it has without z.
    """

    slope: sp.Expr
    ramp: tuple[sp.Expr, sp.Expr]
    rest: sp.Expr
    distance: sp.Expr | None
    sine: tuple[sp.Expr, sp.Expr] | None
    constant: sp.Expr

    @property
    def has_ramp(self) -> bool:
        """Whether the student is unbounded."""
        return self.ramp != (0, 0)


def student_shape(expr: sp.Expr) -> StudentShape:
    """Take a student apart.

    Parameters
    ----------
    expr : Expr
        σ in the variable z of activations, minus its mean if it is centred.

    Raises
    ------
    CertificationError
        If a part is not known.

    Examples
    --------
    >>> from giantstep.symbolic.activations import activation
    >>> shape = student_shape(activation("tanh").expr)
    >>> shape.slope, shape.has_ramp, shape.sine
    (1, False, None)
    """
    expr = sp.expand(expr.replace(sigmoid, lambda u: (1 + sp.tanh(u / 2)) / 2))
    slope, rest, distance, constant = sp.S.Zero, sp.S.Zero, sp.S.Zero, sp.S.Zero
    ramp = (sp.S.Zero, sp.S.Zero)
    sines: list[tuple[sp.Expr, sp.Expr]] = []
    saturates, others = True, 0
    for term in sp.Add.make_args(expr):
        if z not in term.free_symbols:
            constant += term
            rest += abs(term)
            continue
        factor, rate, shift, part, is_sine = _part(term)
        slope += abs(factor * rate) * part.slope
        rest += abs(factor) * (part.rest + abs(shift) * sum(map(abs, part.ramp)))
        ramp = (
            ramp[0] + factor * rate * part.ramp[0],
            ramp[1] + factor * abs(rate) * part.ramp[1],
        )
        if part.saturates is None or part.half_step is None:
            saturates = False
        else:
            away = smoothing_of_a_step() + sp.sqrt(abs(shift / rate))
            step = 2 * part.half_step * away
            distance += abs(factor) * (sp.sqrt(part.saturates / abs(rate)) + step)
        if is_sine:
            sines.append((factor, rate))
        else:
            others += 1
    return StudentShape(
        slope=slope,
        ramp=ramp,
        rest=rest,
        distance=distance if saturates else None,
        sine=sines[0] if len(sines) == 1 and not others else None,
        constant=constant,
    )


def smoothing_of_a_step() -> sp.Expr:
    r"""Return the norm on the line of Φ(s) minus the unit step, :math:`(2\int\Phi(-s)^2)^{1/2}`."""
    return sp.sqrt(2 / sp.sqrt(2 * sp.pi) - 1 / sp.sqrt(sp.pi))


def _part(term: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr, _Part, bool]:
    """Return coefficient, slope and shift of the argument, and the known function of a term."""
    factor, function = term.as_independent(z, as_Add=False)
    if function == z:
        ramp = _Part(sp.S.One, sp.S.Zero, ramp=(sp.S.One, sp.S.Zero))
        return factor, sp.S.One, sp.S.Zero, ramp, False
    inner = function / z
    known, has_factor = (_WITH_FACTOR, True) if inner.func in _WITH_FACTOR else (_PARTS, False)
    inner = inner if has_factor else function
    part = known.get(inner.func)
    rate = inner.args[0].diff(z) if part is not None else sp.nan
    shift = sp.expand(inner.args[0] - rate * z) if part is not None else sp.nan
    if part is None or {z} & (rate.free_symbols | shift.free_symbols) or (has_factor and shift):
        raise CertificationError(
            f"nothing is proven about large amplitudes of a student with the part {function}; "
            "known are sums of z, |z|, relu, softplus, tanh, erf, atan, sigmoid, sine and cosine "
            "of multiples of z plus a number, and of z times tanh, erf or sigmoid of multiples of z"
        )
    # z f(rz) is (rz) f(rz)/r.
    factor = factor / rate if has_factor else factor
    return factor, rate, shift, part, inner.func in (sp.sin, sp.cos)
