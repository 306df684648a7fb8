"""Result 3.1 in numbers: the spiked random features that stand for a trained network."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import AssumptionError, ConvergenceError, ParameterError
from ...numeric.arguments import nonnegative_number, positive_number, real_number
from ...numeric.cache import FileCache
from ...runtime.generated import defined
from ...symbolic.expressions.activations import activation
from ..derived import derived
from ..teachers import read_teacher
from .derive import Derivation, derivation, stretch_function

# μ_0 is proportional to r and is divided by again: where it has to be integrated, a smaller spike
# is drowned by rounding. The errors are within r² of their limit for r → 0 anyway.
_SMALLEST_SPIKE = 1e-5
# Tables need nodes in proportion to the width of what an activation sees: for tanh these take
# about a gigabyte.
_LARGEST_SPIKE = 1e3
_LARGEST_VARIANCE = 1e6


@dataclass(frozen=True)
class SpikeParameters:
    """The spiked random features that stand for the trained network.

    Attributes
    ----------
    spike_strength, bulk_variance, alignment : float
        r, c and γ: rows are sqrt(c) u + r v with \\|u\\| = \\|v\\| = 1 and v·θ = γ.
    orthogonal_alignment : float
        ρ = sqrt(1 − γ²), kept apart because 1 − γ² loses digits near γ = 1.
    norm_overlap : float
        a: the squared norm of a bulk row b is c + 2 a b·v. Of a step it is used with
        ``leading_order="complete"`` only.
    stretch_along, stretch_mixed, stretch_across : float
        T_vv, T_vζ and T_ζζ: bulk rows are stretched by 1 + T in the plane of v and of the
        teacher's direction across it, ζ. Of a step zero but with ``leading_order="complete"``.
    """

    spike_strength: float
    bulk_variance: float
    alignment: float
    orthogonal_alignment: float
    norm_overlap: float = 0.0
    stretch_along: float = 0.0
    stretch_mixed: float = 0.0
    stretch_across: float = 0.0

    @property
    def stretch(self) -> tuple[float, float, float]:
        """The entries of T: along the spike, mixed, across it."""
        return self.stretch_along, self.stretch_mixed, self.stretch_across


def checked_spike(
    spike_strength: object,
    bulk_variance: object,
    alignment: object,
    norm_overlap: object = 0.0,
    stretch: object = (0.0, 0.0, 0.0),
) -> SpikeParameters:
    """Return spike parameters that a user gives."""
    r = real_number("spike_strength", spike_strength)
    if not math.isfinite(r):
        raise ParameterError(f"spike_strength must be finite, got {r}")
    c = positive_number("bulk_variance", bulk_variance)
    _check_size(r, c)
    gamma = real_number("alignment", alignment)
    if not -1 <= gamma <= 1:
        raise ParameterError(f"alignment must be between -1 and 1, got {gamma}")
    entries = tuple(stretch) if isinstance(stretch, Iterable) else ()
    if len(entries) != 3 or isinstance(stretch, str):
        raise ParameterError(
            "stretch must hold three numbers: along the spike, mixed, and along the teacher's "
            f"direction across it; got {stretch!r}"
        )
    rest = [real_number("norm_overlap", norm_overlap)]
    rest += [real_number("stretch", entry) for entry in entries]
    if not all(map(math.isfinite, rest)):
        raise ParameterError(f"norm_overlap and stretch must be finite, got {rest}")
    return SpikeParameters(r, c, gamma, math.sqrt((1 - gamma) * (1 + gamma)), *rest)


def rechecked_spike(given: object) -> SpikeParameters:
    """Return spike parameters that may have been made by hand; what follows is computed again."""
    if not isinstance(given, SpikeParameters):
        raise ParameterError(
            f"direct_parameters must be SpikeParameters, got {given!r}; "
            "use SpikedRandomFeatures.from_parameters"
        )
    return checked_spike(
        given.spike_strength, given.bulk_variance, given.alignment, given.norm_overlap,
        given.stretch,
    )  # fmt: skip


def require_odd(found: Derivation, allowed: bool) -> None:
    """Refuse a student that is not odd, as Result 3.1 assumes, unless others are allowed."""
    if not found.odd_student and not allowed:
        raise AssumptionError(
            f"student {found.student!r} is not an odd function, which Result 3.1 assumes; "
            "pass allow_non_odd=True (--allow-non-odd) for the extension to other students, "
            "or choose an odd one such as tanh, erf or sin"
        )


def spike_after_step(
    found: Derivation, step_size: float, alpha0: float, noise_variance: float
) -> SpikeParameters:
    """Return the spike parameters after a step, from the derived map."""
    if found.mapping_error:
        raise AssumptionError(found.mapping_error)
    mapping = defined(found.mapping_source).mapping
    return _after_step(mapping, found, step_size, alpha0, noise_variance)


def stretched_after_step(
    spike: SpikeParameters,
    student: str,
    teacher: str,
    cache: FileCache,
    step_size: float,
    alpha0: float,
    noise_variance: float,
    *,
    letter: float = 1.0,
    mean_letter: float = 1.0,
) -> SpikeParameters:
    """Return the spike after a step with the stretch of the rows, from the derived formula.

    Those of one letter, `mean_letter` being the mean over all neurons; by default all are 1.
    """
    if spike.orthogonal_alignment == 1 and alpha0 == math.inf:
        # Neither a spike nor a linear part of the labels, which could see the stretch.
        return spike
    function = defined(_stretch_source(cache, student, teacher)).stretch
    given = (step_size, 1 / alpha0, noise_variance, letter, mean_letter)
    along, mixed, across = map(float, function(*given))
    return replace(spike, stretch_along=along, stretch_mixed=mixed, stretch_across=across)


@derived("spiked_random_features/stretch", str)
def _stretch_source(student: str, teacher: str) -> str:
    pair = activation(student, argument="student"), read_teacher(teacher)
    try:
        return "import math\n\n" + stretch_function(*pair)
    except ConvergenceError:
        raise AssumptionError(
            f"labels of teacher {teacher!r} have no third moment, on which the stretch of the "
            'rows depends; use leading_order="published"'
        ) from None


def _after_step(
    mapping: Callable[..., tuple[float, ...]],
    found: Derivation,
    step_size: float,
    alpha0: float,
    noise_variance: float,
    remark: str = "",
) -> SpikeParameters:
    if alpha0 == math.inf and found.leap_index > 1:
        # The population gradient vanishes to leading order: no spike. The bulk keeps what does
        # not depend on alpha0, which any huge value gives.
        return SpikeParameters(0.0, mapping(step_size, 1e300, noise_variance)[1], 0.0, 1.0)
    r, c, gamma, rho, overlap = _in_floats(mapping, step_size, alpha0, noise_variance)
    _check_size(r, c, f"{remark}step_size={step_size:g}, alpha0={alpha0:g}")
    gamma = math.copysign(1.0, gamma) if rho == 0 else gamma
    return SpikeParameters(r, c, gamma, rho, overlap)


def spikes_of_letters(
    student: str,
    teacher: str,
    *,
    step_size: float,
    letters: Sequence[float],
    fractions: Sequence[float],
    alpha0: float = math.inf,
    noise_variance: float = 0.0,
    cache: FileCache | None = None,
    stretched: bool = False,
) -> tuple[SpikeParameters, ...]:
    """Return the spike parameters of each letter of a readout vocabulary after a step.

    Letters are the readouts ã of the step, times sqrt(p), of either sign, with the fraction of the
    neurons that have each; the step size is that of a neuron with letter 1.
    """
    step, samples = positive_number("step_size", step_size), real_number("alpha0", alpha0)
    if not samples > 0:
        raise ParameterError(f"alpha0 must be positive (inf is allowed), got {samples}")
    noise = nonnegative_number("noise_variance", noise_variance)
    chosen, shares = checked_letters(letters, fractions)
    mean = math.fsum(a * f for a, f in zip(chosen, shares, strict=True))
    cache = FileCache(None) if cache is None else cache
    found = derivation(student, teacher, cache=cache)
    if found.mapping_error:
        raise AssumptionError(found.mapping_error)
    function = defined(found.mapping_source).letter_mapping

    def after(a: float) -> SpikeParameters:
        spike = _after_step(
            lambda *given: function(*given, a, mean), found, step, samples, noise, f"letter {a:g}, "
        )
        if found.odd_student or not stretched:
            return spike
        return stretched_after_step(
            spike, student, teacher, cache, step, samples, noise, letter=a, mean_letter=mean
        )

    return tuple(after(a) for a in chosen)


def checked_letters(
    letters: Sequence[float], fractions: Sequence[float]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return letters and fractions of a vocabulary as floats."""
    for name, values in (("letters", letters), ("fractions", fractions)):
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise ParameterError(f"{name} must be a sequence of numbers, got {values!r}")
    chosen = tuple(real_number("letters", a) for a in letters)
    shares = tuple(positive_number("fractions", f) for f in fractions)
    if not chosen or len(chosen) != len(shares):
        raise ParameterError(
            f"letters and fractions must be equally many and at least one, got {len(chosen)} "
            f"letters and {len(shares)} fractions"
        )
    if not all(map(math.isfinite, chosen)):
        raise ParameterError(f"letters must be finite, got {chosen}")
    if not math.isclose(math.fsum(shares), 1.0, rel_tol=1e-9):
        raise ParameterError(f"fractions must sum to 1, got {math.fsum(shares):.12g}")
    return chosen, shares


def relative_bulk_spread(
    found: Derivation, step_size: float, alpha0: float, noise_variance: float
) -> float:
    """Return the relative spread of the bulk covariance after a step, from the derived formula."""
    if alpha0 == math.inf:
        return 0.0
    function = defined(found.mapping_source).bulk
    return float(_in_floats(function, step_size, alpha0, noise_variance)[0])


def _in_floats(
    function: Callable[..., tuple[float, ...]],
    step_size: float,
    alpha0: float,
    noise_variance: float,
) -> tuple[float, ...]:
    try:
        return function(step_size, alpha0, noise_variance)
    except (OverflowError, ZeroDivisionError):
        raise ParameterError(
            f"step_size={step_size:g}, alpha0={alpha0:g} and noise_variance={noise_variance:g} are "
            "too large or too small: the spike after the step is no float; take values between "
            "1e-50 and 1e50, or 0, or alpha0=math.inf"
        ) from None


def _check_size(r: float, c: float, step: str = "") -> None:
    """Refuse a spike without numbers; `step` names the step that it comes from, if any."""
    origin = f" from {step}" if step else ""
    if 0 < abs(r) < _SMALLEST_SPIKE:
        raise ParameterError(
            f"spike_strength={r:.1e}{origin} is too small to be told from rounding errors; "
            f"use 0, or a spike strength of at least {_SMALLEST_SPIKE:g}"
        )
    sizes = (("spike_strength", abs(r), _LARGEST_SPIKE), ("bulk_variance", c, _LARGEST_VARIANCE))
    for name, value, largest in sizes:
        # Negated, so that what is not a number is refused as well.
        if not value <= largest:
            raise ParameterError(
                f"{name}={value:.1e}{origin} is too large: tables of the activations would need "
                "too much memory; use "
                + ("a smaller step_size or more alpha0, for " if step else "")
                + f"at most {largest:g}"
            )


# ----------------------------------------------------------------------
# Conventions of the learning rate, and the step per neuron that each of them means.
# The network is :math:`p^{-1/2}\sum_j a_j\sigma(w_j\cdot x)` with :math:`a_j = 1/\sqrt p`, so row j
# of the gradient is
# :math:`G_j = \frac{1}{p\,n_0}\sum_\mu (y_\mu - f_0)\sigma'(w_j\cdot x_\mu)x_\mu` up to its sign.
# An update :math:`W + \eta\,p^u\,G^\top` moves a neuron by the step :math:`s = \eta\,p^{u-1}`; a
# learning rate :math:`\eta = \tilde\eta\,p^a d^b` with :math:`u + a + b = 1` makes it
# :math:`s = \tilde\eta\,\beta^{-b}`, independent of the size.


@dataclass(frozen=True)
class LearningRateConvention:
    r"""How a first step is scaled with width p and dimension d.

    Attributes
    ----------
    update : str
        The update, in words of a formula; G is the gradient of the loss with its sign turned.
    scaling : str
        The learning rate at size p, d.
    power_of_beta : float
        x of :math:`s = \tilde\eta\,\beta^{-x}`: the power of d in the learning rate.
    source : str
        Who uses it.
    """

    name: str
    update: str
    scaling: str
    power_of_beta: float
    source: str

    def step_size(self, learning_rate: float, beta: float) -> float:
        """Return the per-neuron step s of a scaled learning rate η̃."""
        return learning_rate * beta**-self.power_of_beta

    def learning_rate(self, step_size: float, beta: float) -> float:
        """Return the scaled learning rate η̃ of a per-neuron step."""
        return step_size * beta**self.power_of_beta

    @property
    def formula(self) -> str:
        """The per-neuron step in this convention."""
        divisor = {0.0: "", 0.5: "/√β", 1.0: "/β"}[self.power_of_beta]
        return f"s = η̃{divisor}"

    def __str__(self) -> str:
        return f"{self.name}: {self.update}, {self.scaling}, so {self.formula} ({self.source})"


CONVENTIONS = {
    found.name: found
    for found in (
        LearningRateConvention(
            "sqrt-width", "W ← W + η √p G", "η = η̃ √p", 0.0,
            "Ba et al., arXiv 2205.01445; public code of Cui et al., arXiv 2402.04980",
        ),
        LearningRateConvention(
            "sqrt-dimension", "W ← W + η √p G", "η = η̃ √d", 0.5, "the same update, scaled with d"
        ),
        LearningRateConvention(
            "dimension", "W ← W + η G", "η = η̃ d", 1.0, "no √p in the update"
        ),
    )
}  # fmt: skip
"""Conventions by their names. All of them agree where p = d."""


def convention(name: object) -> LearningRateConvention:
    """Return a convention by its name.

    Raises
    ------
    ParameterError
        If there is none of this name; the message lists all.
    """
    if isinstance(name, LearningRateConvention):
        return name
    found = CONVENTIONS.get(name) if isinstance(name, str) else None
    if found is None:
        close = difflib.get_close_matches(str(name), CONVENTIONS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        known = "".join(f"\n  {known}" for known in CONVENTIONS.values())
        raise ParameterError(f"no learning-rate convention {name!r}{hint}{known}")
    return found


def per_neuron_step(
    learning_rate: float, convention: str = "sqrt-width", *, beta: float = 1.0
) -> float:
    r"""Return the per-neuron step s of a learning rate in one of the conventions in use.

    The step s is what the theory depends on: each row moves by s times
    :math:`\frac{1}{n_0}\sum_\mu (y_\mu - f_0)\sigma'(w\cdot x_\mu)x_\mu`.

    Parameters
    ----------
    learning_rate : float
        η̃ >= 0, the learning rate without its scaling with width and dimension.
    convention : {"sqrt-width", "sqrt-dimension", "dimension"}
        "sqrt-width": W ← W + η√p G with η = η̃√p, so s = η̃. "sqrt-dimension": the same update
        with η = η̃√d, so s = η̃/√β. "dimension": W ← W + ηG with η = η̃d, so s = η̃/β.
    beta : float
        Aspect ratio p/d.

    Raises
    ------
    ParameterError
        If there is no such convention, or a number is outside its range.

    Examples
    --------
    >>> per_neuron_step(3, "dimension", beta=4)
    0.75
    """
    rate = real_number("learning_rate", learning_rate)
    if not 0 <= rate < math.inf:
        raise ParameterError(f"learning_rate must be >= 0 and finite, got {rate}")
    return _convention(convention).step_size(rate, positive_number("beta", beta))


# The argument of the function above has the name that users know.
_convention = convention
