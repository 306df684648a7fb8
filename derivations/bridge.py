r"""Where two theories describe the same network: the model of one as the model of the other.

Without a step both describe plain random features: the deterministic equivalent of the risk of Ba
et al. (arXiv 2205.01445) and the saddle point of Cui et al. (arXiv 2402.04980) are then one, with
the same λ (:func:`.penalties.paper_ridge` is λ_B in both). With a step they are limits of different
steps. Steps of order one move a row by :math:`O(N^{-1/2})` along the spike, those of order √p by
O(1); in either limit the step of the other is zero or infinite.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import sympy as sp
from scipy.stats import norm

from ..errors import AssumptionError
from ..numeric.arguments import positive_number
from ..symbolic.expressions.activations import Activation, activation, z as variable
from ..symbolic.gaussian.expectation import GaussianExpectation, expect
from .giant_steps.one_step import GiantStep, giant_step
from .multi_index.label_leaps import LabelLeaps
from .one_gradient_step.model import OneGradientStep
from .one_gradient_step.nonlinear_spikes.model import StepAtWidth
from .spiked_random_features.model import SpikedRandomFeatures
from .spiked_random_features.vocabulary.model import VocabularyFeatures


def as_spiked_features(model: OneGradientStep) -> SpikedRandomFeatures:
    """Return this model of plain random features as spiked random features without spike.

    Solutions at the same `alpha` and `ridge` are the same: its test error is the risk here.

    Raises
    ------
    AssumptionError
        If there is a step: the two theories are of steps of different order. If a mean has to
        be subtracted that has no closed form.

    Examples
    --------
    >>> from giantstep import OneGradientStep
    >>> plain = OneGradientStep("erf", "tanh", alpha=2, beta=1.5, step_size=0)
    >>> spiked = plain.as_spiked_features().solve(alpha=2, ridge=0.1)
    >>> abs(spiked.test_error - plain.solve(ridge=0.1).initial) < 1e-13
    True
    """
    if model.step_size:
        raise AssumptionError(
            f"step_size = {model.step_size:g}: a step of order one leaves rows without a spike of "
            "their own length, which spiked random features have; only without a step are both "
            "theories of one network: take at(step_size=0)"
        )
    teacher = model.teacher
    if model.centre and model.teacher_moments.mean and not model.student_moments.mean:
        # Features without mean cannot fit that of the teacher.
        teacher = _centred(teacher)
    return SpikedRandomFeatures(
        model.student,
        teacher,
        step_size=0.0,
        alpha0=model.step_samples,
        beta=model.beta,
        noise_variance=model.noise_variance,
        allow_non_odd=not model.student_moments.odd,
        cache_folder=model.cache_folder,
    )


def as_gradient_step(model: SpikedRandomFeatures, *, alpha: float) -> OneGradientStep:
    """Return this model, if it has no spike, as one gradient step of length zero.

    Parameters
    ----------
    alpha : float
        Sample complexity n/d of the readout, which is a parameter of that model. That of the step,
        `alpha0`, is this model's, for steps that are taken with :meth:`.OneGradientStep.at`.

    Raises
    ------
    AssumptionError
        If there is a spike, a finite width, or a mean of the teacher that the features cannot
        fit.

    Examples
    --------
    >>> from giantstep import SpikedRandomFeatures
    >>> plain = SpikedRandomFeatures("erf", "tanh", step_size=0, beta=1.5)
    >>> step = plain.as_gradient_step(alpha=2)
    >>> print(step.at(step_size=1).solve(ridge=0.1).improvement > 0)
    True
    """
    spike, alpha = model.spike, positive_number("alpha", alpha)
    model._refuse_law("the risk of one step")
    if spike.spike_strength or spike.bulk_variance != 1:
        raise AssumptionError(
            f"rows have a spike of length {spike.spike_strength:g} and a bulk of variance "
            f"{spike.bulk_variance:g}, after a step of order sqrt(p), which steps of order one do "
            "not make; only without a step are both theories of one network: take at(step_size=0)"
        )
    if model.width is not None:
        raise AssumptionError(
            f"width = {model.width}: the risk of one step is that of infinite width; take "
            "at(width=None)"
        )
    # A model that is given by its spike has no samples of a step.
    samples = model.alpha0 if model.direct_parameters is None else alpha
    plain = OneGradientStep(
        model.student,
        model.teacher,
        alpha,
        model.beta,
        step_size=0.0,
        noise_variance=model.noise_variance,
        alpha0=None if samples == alpha else samples,
        centre=True,
        cache_folder=model.cache_folder,
    )
    student, teacher = plain.student_moments, plain.teacher_moments
    if teacher.mean and not student.mean:
        raise AssumptionError(
            f"teacher {model.teacher!r} has the mean {teacher.mean:.6g}, which features of "
            f"{model.student!r} cannot fit and which one step is without; subtract it from the "
            "teacher"
        )
    return plain if student.mean or teacher.mean else plain.at(centre=False)


def as_letters(model: StepAtWidth, *, nodes: int = 10) -> VocabularyFeatures:
    r"""Return spiked random features whose letters are the readouts of the step.

    A giant step of size :math:`s = \eta/\sqrt N` for each neuron, at this width: all that the
    forms of this model leave out at relative order θ²/N is in them.

    Parameters
    ----------
    nodes : int
        Letters that stand for a normal readout.

    Raises
    ------
    AssumptionError
        If the step size is zero.
    """
    step = model.step
    if not step.effective_step_size:
        raise AssumptionError("without a step there are no letters; use OneGradientStep")
    options: dict[str, Any] = {
        "step_size": step.effective_step_size / math.sqrt(model.width),
        "alpha0": step.step_samples,
        "beta": step.beta,
        "noise_variance": step.noise_variance,
        "width": model.width,
        "allow_non_odd": not step.student_moments.odd,
        "cache_folder": step.cache_folder,
    }
    teacher = step.teacher
    if step.teacher_moments.mean:
        teacher = f"{teacher} - ({model._coefficients['teacher'][0]})"
    if model.letters is not None:
        return VocabularyFeatures(
            step.student, teacher, letters=model.letters, fractions=model.fractions or (),
            **options,
        )  # fmt: skip
    return VocabularyFeatures.from_law(step.student, teacher, law=norm(), nodes=nodes, **options)


def step_on_labels(
    labels: LabelLeaps, student: str | sp.Expr | Activation = "relu", **options: Any
) -> GiantStep:
    """Return one giant step on the labels; options as for :func:`giantstep.giant_step`."""
    # A variance, whatever is known of the signs of its parameters.
    step = giant_step(labels.regression, student, **options)
    return replace(step, noise_variance=labels.noise_variance)


def _centred(teacher: str) -> str:
    """Return a function minus its mean as text.

    Raises
    ------
    AssumptionError
        If the mean has no closed form.
    """
    expr = activation(teacher, argument="teacher").expr
    mean = expect(expr, variable)
    if mean.has(GaussianExpectation):
        raise AssumptionError(
            f"the mean of the teacher {teacher!r} has no closed form that could be subtracted; "
            "give a teacher without mean"
        )
    return str(expr - mean)
