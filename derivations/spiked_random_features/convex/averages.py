r"""What the averages over label and prediction are: one, two or three Gaussian integrals.

Given κ the prediction without a sample is :math:`\omega = C + p s + \sqrt v\,\eta`, the field of
the teacher is :math:`\gamma\kappa + \rho s`. Four ways to integrate:

- *ramps*: for a margin loss that is linear between kinks, and flat on one side or between two, and
  the labels "sign" or "probit", both integrals are in closed form: averages of ramps where the
  field has the sign of the label;
- *closed*: for a loss that is quadratic between kinks the integral over η is in closed form, and
  the one over s remains;
- *field*: for a smooth loss and the labels "sign" or "probit" the label is integrated over first:
  given :math:`\omega = C + \sqrt q\,g` the field is Gaussian again, with mean
  :math:`\gamma\kappa + \rho g p/\sqrt q` and variance :math:`\rho^2 v/q`;
- *full*: integrals over s and η.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import sympy as sp
from sympy.core.function import AppliedUndef

from ....errors import UnsupportedExpressionError
from ....symbolic.expressions.functions import OwenT, normal_cdf
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.gaussian.ramp_moments import RampAverage, labelled_ramp_moment, ramp_moment
from ....symbolic.losses.convex_losses import is_kinked, without_cases
from ....symbolic.losses.proximal import MoreauEnvelope, Proximal
from ..physics import T0, T1, T2, Prediction, gamma, kappa, noise, rho
from .labels import Labels, takes_signs_only
from .losses import ConvexLoss, x, y
from .smoothing import (
    LabelledEnvelope,
    closed_moments,
    rectified_moment,
    smoothed_envelope,
    smoothed_loss,
)

s, g, eta = sp.symbols("s g eta", real=True)
_a, _V, _v = sp.Symbol("a", real=True), sp.Symbol("V", positive=True), sp.Symbol("v", positive=True)
_omega, _label = sp.symbols("omega label", real=True)
# A table: the mean of the field whose sign is the label, in its standard deviations. It sets a
# scale in κ as tables do; nothing should look for another where signs of it are taken.
_teacher_mean = sp.Function("teacher_mean", real=True)(kappa)
# Where a mean is zero; with the powers that derivatives have it still is no zero in floats.
_TINY = sp.Rational(1, 10**120)
# Added to the variance of a prediction: where a student saturates, variances in the tails underflow
# and the powers of them in derivatives would be divisions by zero.
_FLOOR = sp.Rational(1, 10**40)


@dataclass(frozen=True)
class LabelAverages:
    """Averages over label and prediction for one loss and channel.

    Attributes
    ----------
    loss : ConvexLoss
    labels : Labels
    aligned : bool
        The label depends on κ alone.
    prediction : Prediction
        The law of the prediction given κ.
    odd : bool
        The student is odd, so that predictions at −κ have the other sign.
    """

    loss: ConvexLoss
    labels: Labels
    aligned: bool
    prediction: Prediction
    odd: bool = False

    # ------------------------------------------------------------------ the node and its meaning

    def node(self) -> sp.Expr:
        """Return the average of the envelope, to be differentiated."""
        return LabelledEnvelope(self.mean, self.covariance, self.total_variance, self.step, 0, 0, 0)

    def written_out(self, expr: sp.Expr) -> sp.Expr:
        """Replace these nodes by what they are."""
        outer = {
            e: GaussianExpectation(self._written_out(e.integrand), e.variable)
            for e in expr.atoms(GaussianExpectation)
            if e.has(LabelledEnvelope)
        }
        return expr.xreplace(outer)

    def _written_out(self, integrand: sp.Expr) -> sp.Expr:
        r"""Write out what is linear in nodes; what multiplies the same average is summed before.

        Averages that cancel in a condition at fixed Q_1, as :math:`p\,\mathbb{E}M''` in that of ψ,
        are gone from then on.
        """
        nodes = sorted(integrand.atoms(LabelledEnvelope), key=sp.default_sort_key)
        linear = sp.expand_mul(integrand, deep=False)
        weights: dict[sp.Expr, sp.Expr] = {}
        for node in nodes:
            weight = linear.coeff(node)
            for term in sp.Add.make_args(self._value(node)):
                factor, inner = term.as_independent(GaussianExpectation)
                weights[inner] = weights.get(inner, sp.S.Zero) + weight * factor
        rest = linear.xreplace(dict.fromkeys(nodes, sp.S.Zero))
        return sp.Add(rest, *(weight * inner for inner, weight in weights.items()))

    @property
    def mean(self) -> sp.Expr:
        """C."""
        return self.prediction.mean

    @property
    def covariance(self) -> sp.Expr:
        """Covariance p of the prediction with s."""
        return self.prediction.covariance

    @cached_property
    def total_variance(self) -> sp.Expr:
        """Variance q of the prediction."""
        return self.prediction.variance + _FLOOR

    @cached_property
    def free_variance(self) -> sp.Expr:
        """Variance v of the prediction that is left when s is known."""
        return self.prediction.free_variance + _FLOOR

    @property
    def step(self) -> sp.Expr:
        """Step V of the envelope."""
        return self.prediction.step

    @property
    def by_field(self) -> bool:
        """Whether the label is integrated over first."""
        channel = self.labels.channel in ("sign", "probit")
        return channel and not self.aligned and not self.closed

    @cached_property
    def ramps(self) -> sp.Expr | None:
        """The average over a Gaussian for the label 1, if it is a sum of ramps; else None."""
        if self.aligned or self.labels.channel not in ("sign", "probit") or not self.loss.is_margin:
            return None
        found = _closed_envelope(self._reduced(1))
        if found is None:
            return None
        nodes = found.atoms(ramp_moment)
        base = found.xreplace(dict.fromkeys(nodes, sp.S.Zero))
        return found if nodes and base == 0 else None

    @cached_property
    def closed(self) -> bool:
        """Whether the integral over η is in closed form."""
        return all(_closed_envelope(term.loss) is not None for term in self.terms)

    @cached_property
    def label_function(self) -> sp.Expr:
        """The label, or the probability of +1, as a table where it depends on κ alone."""
        return sp.Function("label", real=True)(kappa)

    @cached_property
    def definitions(self) -> dict[sp.Expr, sp.Expr]:
        """Tables of what depends on κ alone besides the coefficients: labels, means."""
        if not self.aligned:
            by_owen = self.labels.channel in ("sign", "probit")
            if not by_owen:
                return {}
            return {_teacher_mean: gamma * kappa / self._field_scale, **self._mean_tables[1]}
        label = self.labels.label(gamma * kappa)
        if label is None:
            label = self.labels.probability(1, gamma * kappa)
        return {self.label_function: label}

    @cached_property
    def _mean_tables(self) -> tuple[sp.Expr, dict[sp.Expr, sp.Expr]]:
        """C in tables of what κ multiplies in it, κμ_1, and what these tables are."""
        tables: dict[sp.Expr, sp.Expr] = {}
        terms = []
        for term in sp.Add.make_args(sp.expand(self.mean)):
            factors = sp.Mul.make_args(term)
            if kappa in factors:
                (coefficient,) = (f for f in factors if isinstance(f, AppliedUndef))
                table = sp.Function(f"kappa_{coefficient.func}", real=True)(kappa)
                tables[table] = kappa * coefficient
                term = term / (kappa * coefficient) * table
            terms.append(term)
        return sp.Add(*terms), tables

    @cached_property
    def terms(self) -> tuple[_Term, ...]:
        """The terms of the sum over labels, at a field that depends on κ and s."""
        field_ = gamma * kappa + rho * s
        certain = self.labels.label(field_)
        if certain is None:
            chance = self.label_function if self.aligned else self.labels.probability(1, field_)
            other = 1 - chance if self.aligned else self.labels.probability(-1, field_)
            return self._two_terms(chance, other)
        label = self.label_function if self.aligned else _label
        signs = self.labels.is_binary or takes_signs_only(self.labels.teacher)
        if self.loss.is_residual:
            noisy = noise if self.labels.has_noise else sp.S.Zero
            return (_Term(sp.S.One, self._reduced(0), label, offset=label, variance=noisy),)
        if self.labels.has_noise:
            raise UnsupportedExpressionError(
                f"loss {self.loss.name!r} is no function of y - x, and with label noise its "
                "average takes four integrals; use noise_variance=0, or a loss of the residual"
            )
        if signs and self.loss.is_margin:
            return (_Term(sp.S.One, self._reduced(1), label, sign=label),)
        if signs:
            return self._two_terms((1 + label) / 2, (1 - label) / 2)
        return (_Term(sp.S.One, without_cases(self.loss.expr, x), label),)

    def _two_terms(self, chance: sp.Expr, other: sp.Expr) -> tuple[_Term, ...]:
        return (
            _Term(chance, self._reduced(1), sp.S.One),
            _Term(other, self._reduced(-1), sp.S.NegativeOne),
        )

    def _reduced(self, label: int) -> sp.Expr:
        return without_cases(self.loss.at_label(label), x)

    # ------------------------------------------------------------------ averages

    def _value(self, node: sp.Expr) -> sp.Expr:
        i, j, k = node.orders
        if self.ramps is not None:
            return self._over_ramps(self.ramps.diff(_a, j).diff(_V, k), i, j)
        if self.by_field:
            return self._over_field(i, lambda t, w: _envelope(t.loss, j, k, w, self.step))
        if i == 0:
            return self._over_label(lambda t: self._smoothed(t, j, k))
        # Stein's lemma: the derivative by s of the label alone.
        return self._over_label(
            lambda t: s * self._smoothed(t, j, k)
        ) - self.covariance * self._over_label(lambda t: self._smoothed(t, j + 1, k))

    def _over_label(self, value: Callable[[_Term], sp.Expr]) -> sp.Expr:
        total = sp.Add(*(t.weight * value(t) for t in self.terms))
        if self.aligned:
            return total
        # Labels ±1 have no moments T_0, T_1 and T_2: those of the teacher are of another label.
        signs = self.labels.is_binary or self.loss.needs_binary_labels
        if not signs and total.has(_label) and total.is_polynomial(s, _label):
            polynomial = sp.Poly(total, s, _label)
            if polynomial.total_degree() <= 2:
                return sp.Add(*(c * self._moments[powers] for powers, c in polynomial.terms()))
        certain = self.labels.label(gamma * kappa + rho * s)
        return GaussianExpectation(total.xreplace({_label: certain}), s)

    @property
    def _moments(self) -> dict[tuple[int, int], sp.Expr]:
        """Moments of s and of the label without noise, given kappa, by their powers."""
        square = T2 - noise if self.labels.has_noise else T2
        one, zero = sp.S.One, sp.S.Zero
        return {(0, 0): one, (1, 0): zero, (2, 0): one, (0, 1): T0, (1, 1): T1, (0, 2): square}

    def _smoothed(self, term: _Term, j: int, k: int) -> sp.Expr:
        """Average a derivative of the envelope over η."""
        closed = _closed_envelope(term.loss)
        if closed is not None:
            closed = sp.diff(sp.diff(closed, _a, j), _V, k)
        found = self._over_rest(term, closed, lambda w: _envelope(term.loss, j, k, w, self.step))
        return term.sign ** (j % 2) * found

    def _over_rest(
        self, term: _Term, closed: sp.Expr | None, at: Callable[[sp.Expr], sp.Expr]
    ) -> sp.Expr:
        """Average over η what is a function of the prediction, in closed form if there is one."""
        mean = term.reduced(self.mean + self.covariance * s)
        variance = self.free_variance + term.variance
        label = {y: term.label}
        if closed is not None:
            here = {_a: mean, _v: variance, _V: self.step, **label}
            return closed_moments(closed).xreplace(here)
        return GaussianExpectation(at(mean + sp.sqrt(variance) * eta).xreplace(label), eta)

    def _over_ramps(self, ramps: sp.Expr, i: int, j: int) -> sp.Expr:
        """Average ramps at y ω, the j-th derivative by it, where the field has the sign of y.

        For i = 1 with the derivative of that step by s, which is the density of the field at zero.
        """
        total = []
        for label, (mean, covariance, field, rest) in self._signed_laws():
            if i == 0:
                value = ramps.replace(
                    ramp_moment,
                    lambda *args, t=covariance, e=field, w=rest: ramp_moment(*args).labelled(
                        w, args[2].diff(_a) * t, e
                    ),
                ).xreplace({_a: mean, _V: self.step})
            else:
                density = sp.exp(-(field**2) / 2) / sp.sqrt(2 * sp.pi)
                at_zero = ramps.xreplace({_a: mean - covariance * field, _v: rest, _V: self.step})
                value = label * rho / self._field_scale * density * at_zero
            total.append(label**j * value)
        # Where κ and y change their signs together, so do field and prediction of odd students.
        return (2 if self.odd else 1) * sp.Add(*total)

    @property
    def _field_scale(self) -> sp.Expr:
        """Standard deviation, given κ, of the field whose sign is the label."""
        return sp.sqrt(rho**2 + (noise if self.labels.has_noise else 0))

    def _signed_laws(self) -> list[tuple[int, tuple[sp.Expr, ...]]]:
        """Return for each label the law of y ω and of y times the scaled field.

        Means and covariance, and the variance of the prediction when the field is known.
        """
        scale = self._field_scale
        extra = noise if self.labels.has_noise else sp.S.Zero
        rest = self.free_variance + self.covariance**2 * extra / scale**2
        covariance = rho * self.covariance / scale
        return [
            (label, (sp.expand(label * self.mean), covariance, label * _teacher_mean, rest))
            for label in ((1,) if self.odd else (1, -1))
        ]

    def _over_field(self, i: int, value: Callable[[_Term, sp.Expr], sp.Expr]) -> sp.Expr:
        """Average over g, with the i-th derivative of the law of the label by s."""
        root = sp.sqrt(self.total_variance)
        field_ = gamma * kappa + rho * g * self.covariance / root
        variance = rho**2 * self.free_variance / self.total_variance
        mean, total = [], sp.Dummy("t", real=True)
        for label in (1, -1):
            law = self.labels.probability(label, total, variance).diff(total, i) * rho**i
            term = _Term(sp.S.One, self._reduced(label), sp.Integer(label))
            mean.append(law.xreplace({total: field_}) * value(term, self.mean + root * g))
        return GaussianExpectation(sp.Add(*mean), g)

    # ------------------------------------------------------------------ losses and metrics

    def of_loss(self, *, training: bool = False) -> sp.Expr:
        """Return the mean loss before the average over κ: that of a fresh sample, at ω.

        In training that at the proximal point, which is M + V ∂_V M.
        """
        if self.ramps is not None:
            if training:
                return self._over_ramps(_at_proximal(self.ramps), 0, 0)
            averaged = self._over_ramps(self.ramps.xreplace({_V: sp.S.Zero}), 0, 0)
            return averaged.replace(
                labelled_ramp_moment, lambda *args: labelled_ramp_moment(*args).without_width()
            )

        def at(term: _Term, point: sp.Expr) -> sp.Expr:
            return term.loss.xreplace({x: self._proximal(term, point) if training else point})

        if self.by_field:
            return self._over_field(0, at)

        def value(term: _Term) -> sp.Expr:
            closed = _closed_envelope(term.loss)
            if closed is not None:
                fresh = smoothed_loss(term.loss, x, _a, _v)
                closed = _at_proximal(closed) if training else fresh
            return self._over_rest(term, closed, lambda w: at(term, w))

        return self._over_label(value)

    def _proximal(self, term: _Term, point: sp.Expr) -> sp.Expr:
        found: sp.Expr = Proximal(term.loss, x, _omega, _V).doit()
        return found.xreplace({_V: self.step}).xreplace({_omega: point})

    def of_metric(self, metric: sp.Expr, *, training: bool) -> sp.Expr:
        """Return the mean of a function of y and x, before the average over κ.

        Parameters
        ----------
        metric : Expr
            In y and x.
        training : bool
            At the proximal point of ω; else at ω.

        Raises
        ------
        UnsupportedExpressionError
            If labels are noisy and the metric is no function of y − x.
        """

        def at(term: _Term, point: sp.Expr) -> sp.Expr:
            point_ = self._proximal(term, point) if training else point
            if term.variance != 0:
                reduced = sp.expand(metric.subs(x, x + y))
                if y in sp.simplify(reduced).free_symbols:
                    raise UnsupportedExpressionError(
                        f"metric {metric} is no function of y - x, and with label noise its "
                        "average takes four integrals; use noise_variance=0"
                    )
                return metric.xreplace({y: sp.S.Zero}).xreplace({x: point_})
            value = term.original(point_)
            return metric.xreplace({x: value, y: term.label}).xreplace({y: term.label})

        if self.by_field:
            return self._over_field(0, at)

        return self._over_label(lambda t: self._over_rest(t, None, lambda w: at(t, w)))

    def of_error(self) -> sp.Expr:
        """Return the probability that the sign of ω is not a fresh label, before that over κ."""
        root = sp.sqrt(self.free_variance)
        mean = self.mean + self.covariance * s
        if self.labels.channel in ("sign", "probit") and not self.aligned:
            return self._opposite_signs()
        return self._over_label(lambda t: normal_cdf(-t.label * mean / root))

    def _opposite_signs(self) -> sp.Expr:
        r"""Return P(XY < 0) of two correlated Gaussians, :math:`\Phi(h)+\Phi(k)-2\Phi_2(h, k)`.

        In Owen's T, :math:`2T(h, (k/h - r)/w) + 2T(k, (h/k - r)/w) + 1_{hk<0}` with
        :math:`w^2 = 1 - r^2`. Ratios and signs are written so that h = 0, and h = k = 0, give the
        limit, and that reflections show. Where k = 0 for all κ but h and r are not, which needs
        m = ϑ = 0 and ψ ≠ 0 and is no solution, the second term is not zero as it should be.
        """
        extra = noise if self.labels.has_noise else sp.S.Zero
        q, v, p = self.total_variance, self.free_variance, self.covariance
        scale = self._field_scale
        h = _teacher_mean
        k = self._mean_tables[0] / sp.sqrt(q)
        r = rho * p / (scale * sp.sqrt(q))
        # 1 - r² with v = q - p², which is no difference.
        w = sp.sqrt((rho**2 * v + extra * q) / (q * scale**2))
        if k == 0:
            return sp.Rational(1, 2) + 2 * OwenT(h, -r / w)
        one_sign = h * k / sp.sqrt((h**2 + _TINY) * (k**2 + _TINY))
        return (
            2 * OwenT(h, (k - r * h) * h / (w * (h**2 + _TINY)))
            + 2 * OwenT(k, (h * k / (k**2 + _TINY) - r) / w)
            + (1 - one_sign) / 2
        )


@dataclass(frozen=True)
class _Term:
    """One label: M(y, ω) is the envelope of `loss` at sign·ω − offset, of a wider Gaussian."""

    weight: sp.Expr
    loss: sp.Expr
    label: sp.Expr
    sign: sp.Expr = sp.S.One
    offset: sp.Expr = sp.S.Zero
    variance: sp.Expr = sp.S.Zero

    def reduced(self, prediction: sp.Expr) -> sp.Expr:
        # Term by term, so that reflections of sign and prediction show.
        return sp.expand(self.sign * prediction) - self.offset

    def original(self, reduced: sp.Expr) -> sp.Expr:
        return self.sign * (reduced + self.offset)


@lru_cache(maxsize=64)
def _closed_envelope(loss: sp.Expr) -> sp.Expr | None:
    try:
        return smoothed_envelope(loss, x, _a, _v, _V)
    except UnsupportedExpressionError:
        if is_kinked(loss, x):
            raise
        return None


def _at_proximal(envelope: sp.Expr) -> sp.Expr:
    """Return M + V ∂_V M of an averaged envelope without what cancels where V is large."""
    found = sp.expand(envelope + _V * envelope.diff(_V))
    moments = sorted(found.atoms(rectified_moment, RampAverage), key=sp.default_sort_key)
    return sp.collect(found, moments, sp.factor)


def _envelope(loss: sp.Expr, j: int, k: int, point: sp.Expr, step: sp.Expr) -> sp.Expr:
    found = MoreauEnvelope(loss, x, _omega, _V)
    derivative = sp.diff(sp.diff(found, _omega, j), _V, k)
    return derivative.xreplace({_V: step}).xreplace({_omega: point})
