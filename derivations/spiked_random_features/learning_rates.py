r"""Conventions of the learning rate, and the step per neuron that each of them means.

The network is :math:`p^{-1/2}\sum_j a_j\sigma(w_j\cdot x)` with :math:`a_j = 1/\sqrt p`, so row j
of the gradient is :math:`G_j = \frac{1}{p\,n_0}\sum_\mu (y_\mu - f_0)\sigma'(w_j\cdot x_\mu)x_\mu`
up to its sign. An update :math:`W + \eta\,p^u\,G^\top` moves a neuron by the step
:math:`s = \eta\,p^{u-1}`; a learning rate :math:`\eta = \tilde\eta\,p^a d^b` with
:math:`u + a + b = 1` makes it :math:`s = \tilde\eta\,\beta^{-b}`, independent of the size.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass

from ...errors import ParameterError
from ...numeric.arguments import positive_number, real_number


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
