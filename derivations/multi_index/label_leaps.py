r"""Leaps, staircases and one-step constants of labels that are drawn, y ~ P(y|u).

Gradients of the squared loss average y against functions of x, so that they see the *regression
function* :math:`m(u) = \mathbb{E}[y|u]` alone: leap indices and staircases of labels are those of m
as a target, and of the noise a giant step knows :math:`\Delta = \mathbb{E}\,\mathrm{Var}(y|u)`,
beside :math:`\mathbb{E}\,m^2` in :math:`\mathbb{E}\,y^2` (derived here; neurons and labels become
independent for d → ∞, so that the noise may depend on u). Methods that use transforms of the labels
see more: the generative exponent is that of the law itself. Of finitely many labels it is that of
their probabilities given u; additive Gaussian noise does not change it, as the law of a sum
determines that of its part: convolution with a Gaussian is injective
(:mod:`...symbolic.leaps.generative_leap`). Shares of flips, noise and the function may hold
parameters; the answer is then a tree of cases.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import sympy as sp

from ...errors import ParameterError, UndecidedError, UnsupportedExpressionError
from ...numeric.arguments import is_one_of, nonnegative_number
from ...pages import Block, Table
from ...pictures import Bars
from ...result import Result
from ...symbolic.expressions.activations import Activation, activation, z
from ...symbolic.expressions.expression_text import expression_text
from ...symbolic.expressions.parser import Parameters
from ...symbolic.leaps.generative_leap import (
    GenerativeLeap,
    generative_leap,
    generative_leap_of_labels,
)
from ...symbolic.leaps.leap_report import LeapReport, leaps
from ...symbolic.leaps.staircase import Staircase, staircase
from ...symbolic.targets.target import Target, target as read_target
from ..late import given_by
from .channels import (
    LABELS,
    Channel,
    flipped,
    labels_by_signs,
    law_of_signs,
    read_channel,
    require_own_noise,
    share_of_flips,
)
from .thresholds import Threshold, weak_recovery

if TYPE_CHECKING:
    from ..giant_steps.one_step import GiantStep

_COORDINATE = re.compile(r"\bx[0-9]+\b")


@dataclass(frozen=True, repr=False)
class LabelLeaps(Result):
    """What gradient steps and transforms of labels see of a law of labels.

    Attributes
    ----------
    name : str
        Of the law.
    regression : Target
        m(u) = E[y|u].
    noise_variance : Expr
        E Var(y|u).
    leaps : LeapReport
        Of m; the generative leap in it is that of labels m(u), without noise.
    staircase : Staircase
        Of m.
    generative : GenerativeLeap or None
        Of the law of labels, at any order; None where it is not known.
    recovery : Threshold or None
        With transforms of the labels: trivial (generative exponent 1), easy (2) or hard (3 or
        more), and the threshold; None with parameters.

    Examples
    --------
    >>> found = label_leaps("sign(x1*x2)", flips=0.1)
    >>> found.regression.expr, found.leaps.leap_index, found.recovery.kind
    (4*sign(x1)*sign(x2)/5, 2, 'easy')
    >>> int(label_leaps("z**2*exp(-z**2)", noise_variance=0.1).generative)
    4
    """

    _document = "leaps of labels"

    name: str
    regression: Target
    noise_variance: sp.Expr
    leaps: LeapReport
    staircase: Staircase
    generative: GenerativeLeap | None
    recovery: Threshold | None

    giant_step = cast(
        "Callable[..., GiantStep]", given_by("giantstep.derivations.bridge", "step_on_labels")
    )

    def page(self) -> Iterable[Block]:
        """Return the regression function and what is seen of it."""
        yield Table(
            [
                ("labels", self.name),
                ("E[y|u]", expression_text(self.regression.expr)),
                ("E Var(y|u)", expression_text(self.noise_variance)),
                ("gradients see", self.leaps.summary),
                ("giant steps learn", self.staircase.summary),
                ("transforms of labels", self._transforms),
            ]
        )

    @property
    def _transforms(self) -> str:
        parts = []
        if self.generative is not None:
            parts.append(f"generative exponent {self.generative.bounds}")
        if self.recovery is not None:
            parts.append(f"{self.recovery.kind}: {self.recovery.reason}")
        return "; ".join(parts) or "not known"

    @property
    def summary(self) -> str:
        """The leaps in one line."""
        generative = "?" if self.generative is None else self.generative.bounds
        return f"{self.leaps.summary}; of the law of labels {generative}"

    def __repr__(self) -> str:
        return f"LabelLeaps({self.name}: {self.leaps.summary}; {self._transforms})"

    def latex(self) -> str:
        """Return the regression function and the leaps of it in LaTeX, without delimiters."""
        head = rf"\mathbb{{E}}[y|u] = {sp.latex(self.regression.expr)}"
        parts = [head, self.leaps.latex(), self.staircase.latex()]
        parts += [] if self.generative is None else [self.generative.latex()]
        return r"\begin{gathered}" + r" \\ ".join(parts) + r"\end{gathered}"

    def picture(self) -> Bars:
        """Return the indices of the regression function as bars."""
        return self.leaps.picture()


def label_leaps(
    target: str | sp.Expr | Target,
    *,
    labels: str = "regression",
    noise_variance: float | sp.Expr = 0.0,
    flips: float | sp.Expr = 0.0,
    student: str | sp.Expr | Activation | None = None,
    parameters: Parameters = True,
) -> LabelLeaps:
    """Return leaps and staircase of labels drawn from a law, and their generative order.

    Parameters
    ----------
    target, labels, noise_variance, flips
        The law of labels, as for :class:`.model.MultiIndex`: a function of a few directions with
        additive noise, its sign, probit or logistic labels, a share of flipped labels; quantised
        labels are functions with few values, such as ``sign(x1 - 1) + sign(x1 + 1)``. Noise and
        share may be symbols declared nonnegative, and the function may hold parameters: the answer
        is then a :class:`.CaseTree` of such, if it depends on them.
    student : str, Expr or Activation, optional
        Activation of the neurons of the staircase; a generic one by default.
    parameters : optional
        Which symbols of the target are parameters; see :func:`.targets.target.target`.

    Raises
    ------
    AssumptionError
        If E[y|u] is constant: gradients of the squared loss then see nothing.
    ParameterError
        If a symbol for noise or share is not declared nonnegative.
    UnsupportedExpressionError
        If E[y|u] or its variance has no closed form.
    UndecidedError
        If whether a moment vanishes cannot be decided.

    Examples
    --------
    >>> print(label_leaps("x1", labels="sign", flips=0.25).noise_variance)
    3/4
    >>> print(label_leaps("x1 + x1*x2", noise_variance=0.5).staircase.summary)
    {0} ⊂ ⟨e1⟩ ⊂ R^2, saturates
    >>> w = sp.Symbol("w", positive=True)
    >>> tree = label_leaps("sign(x1*x2)", flips=w)
    >>> [(str(leaf.case), leaf.value and int(leaf.value.generative)) for leaf in tree.leaves]
    [('2*w != 1', 2), ('2*w = 1', None)]
    >>> tree.generic.noise_variance
    -4*w**2 + 4*w
    """
    law = _read_law(target, labels, noise_variance, flips, parameters)
    if not law.regression.parameters:
        return _label_leaps(law, law.regression, student)
    tree = law.regression.by_cases(lambda m: _label_leaps(law, m, student), "label leaps")
    return cast(LabelLeaps, tree)


@dataclass(frozen=True)
class _Law:
    """Labels f(u) + noise, or finitely many with probabilities, as targets in x1, x2, …"""

    regression: Target
    noise_variance: sp.Expr
    probabilities: Mapping[sp.Expr, Target]
    channel: Channel | None
    has_function: bool


def _label_leaps(law: _Law, regression: Target, student: Any) -> LabelLeaps:
    report, steps = leaps(regression), staircase(regression, student=student)
    return LabelLeaps(
        regression.name,
        regression,
        law.noise_variance,
        report,
        steps,
        _generative(law, regression),
        None if law.channel is None else weak_recovery(law.channel),
    )


def _generative(law: _Law, regression: Target) -> GenerativeLeap | None:
    case = regression.case
    try:
        if law.probabilities:
            laws = {y: p if case is None else p.in_case(case) for y, p in law.probabilities.items()}
            return generative_leap_of_labels(laws, regression.name)
        return generative_leap(regression) if law.has_function else None
    except (UndecidedError, UnsupportedExpressionError):
        return None


def _read_law(
    target: str | sp.Expr | Target,
    labels: str,
    noise_variance: float | sp.Expr,
    flips: float | sp.Expr,
    parameters: Parameters,
) -> _Law:
    given = [v for v in (noise_variance, flips) if isinstance(v, sp.Expr) and v.free_symbols]
    may_hold = given or isinstance(target, sp.Expr | Target) or not isinstance(parameters, bool)
    f = _function(target, parameters) if may_hold else None
    if f is None or not (f.parameters or given):
        channel = read_channel(target, labels=labels, noise_variance=noise_variance, flips=flips)
        return _law_of_channel(channel)
    if not is_one_of(labels, LABELS):
        raise ParameterError(f"labels must be one of {', '.join(LABELS)}, got {labels!r}")
    noise = _nonnegative("noise_variance", noise_variance)
    share = _nonnegative("flips", flips)
    probabilities = _probabilities(f, labels, noise)
    if share != 0:
        probabilities = flipped(probabilities, share)
    return _law(f.name, f.variables, f.expr, noise, probabilities)


def _function(target: Any, parameters: Parameters) -> Target:
    if isinstance(target, str) and not _COORDINATE.search(target):
        return read_target(activation(target, parameters=parameters, argument="target"))
    return read_target(target, parameters=parameters)


def _nonnegative(name: str, value: float | sp.Expr) -> sp.Expr:
    if isinstance(value, sp.Expr) and value.free_symbols:
        if not value.is_nonnegative:
            symbol = min(map(str, value.free_symbols))
            raise ParameterError(
                f"{name} = {value} is not known to be nonnegative; declare its symbols, as "
                f"Symbol({symbol!r}, positive=True)"
            )
        return value
    return (
        share_of_flips(value)
        if name == "flips"
        else sp.Rational(str(nonnegative_number(name, value)))
    )


def _probabilities(f: Target, labels: str, noise: sp.Expr) -> dict[sp.Expr, sp.Expr]:
    """Return the labels with their probabilities; none where they take a continuum of values."""
    require_own_noise(labels, noise)
    if labels == "regression":
        return {} if noise != 0 else labels_by_signs(f.expr, f.variables) or {}
    if noise != 0 or labels == "logistic":
        return law_of_signs(f.expr, labels, noise)
    return labels_by_signs(sp.sign(f.expr), f.variables) or {}


def _law_of_channel(channel: Channel) -> _Law:
    variables, function = channel.variables, channel.function
    if function is None and not channel.probabilities:
        raise UnsupportedExpressionError(
            "E[y|u] of a density of one's own is an integral over y; give the labels as a function "
            "with noise, or finitely many labels with their probabilities"
        )
    probabilities = dict(channel.probabilities)
    if variables == (z,):
        x1 = sp.Symbol("x1", real=True)
        variables, rule = (x1,), {z: x1}
        function = None if function is None else function.xreplace(rule)
        probabilities = {y: p.xreplace(rule) for y, p in probabilities.items()}
    law = _law(channel.name, variables, function, channel.exact_noise, probabilities)
    return replace(law, channel=channel)


def _law(
    name: str,
    variables: Sequence[sp.Symbol],
    function: sp.Expr | None,
    noise: sp.Expr,
    probabilities: Mapping[sp.Expr, sp.Expr],
) -> _Law:
    def as_target(expr: sp.Expr) -> Target:
        # By signs, because steps in both directions add up to one.
        expr = expr.replace(sp.Heaviside, lambda u, *_: (1 + sp.sign(u)) / 2)
        return replace(read_target(sp.expand(expr), variables), name=name)

    if not probabilities:
        assert function is not None
        return _Law(as_target(function), noise, {}, None, True)
    moments = [sp.Add(*(y**n * p for y, p in probabilities.items())) for n in (1, 2)]
    mean, square = map(as_target, moments)
    laws = {y: as_target(p) for y, p in probabilities.items()}
    named = dict.fromkeys(x for p in (mean, *laws.values()) for x in p.parameters)
    # Parameters that the mean does not hold are those of the law all the same.
    mean = replace(mean, parameters=tuple(named))
    laws = {y: replace(p, parameters=tuple(named)) for y, p in laws.items()}
    residual = sp.expand(square.mean - mean.norm_squared)
    return _Law(mean, residual, laws, None, True)
