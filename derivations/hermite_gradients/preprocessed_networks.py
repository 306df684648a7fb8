r"""Networks of finite size after one preprocessed step.

Algorithm 1 of Damian, Lee & Soltanolkotabi (arXiv 2206.15144).

The network is :math:`\hat f(x) = \frac1m \sum_j a_j\,\sigma(\langle w_j, x\rangle + b_j)`:

1. Rows uniform on the unit sphere in pairs with :math:`a = \pm1`, no biases: no output.
2. Labels without their mean :math:`\alpha = \frac1n\sum y` and linear part
   :math:`\beta = \frac1n\sum y\,x`.
3. One step with weight decay :math:`1/\eta_1`, so that :math:`W = -\eta_1 \nabla_W L` with
   :math:`L = \frac1{2n}\sum(\hat f - y)^2`, and new biases :math:`b_j \sim \mathcal{N}(0, 1)`.
4. Ridge regression for a on the same samples.

Two liberties: the ridge problem is solved in closed form, which is where the gradient descent of
the source converges to, and label noise is Gaussian. The target depends on the first r coordinates;
nothing but the measurements knows that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ...numeric.arguments import positive_number, whole_number
from ...numeric.networks.network import Network, check_draws
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import Networks, simulate
from ...symbolic.activations import Activation
from ...symbolic.targets import Target
from .network_functions import network_functions

TEST_SAMPLES = 10_000


@dataclass(frozen=True)
class PreprocessedNetworks:
    """Networks that only have to be trained.

    Attributes
    ----------
    network : Network
    random_features : Network
        Rows uniform on the sphere, of the same width, with biases of the same law.
    readout : RidgeReadout
        Fitted to the samples of the step without their mean and linear part, for both.
    """

    network: Network
    random_features: Network
    readout: RidgeReadout

    def train(self, *, seeds: int = 5, seed: int = 0, progress: bool = True) -> Networks:
        r"""Train them, each on samples of its own, and random features on the same samples.

        Parameters
        ----------
        seeds : int
            Number of networks; more of them extend a smaller run.
        seed : int
            Entropy of the run, >= 0; fixes all numbers.
        progress : bool
            Show a progress bar on the standard error stream if the run takes longer than a second.

        Returns
        -------
        Networks
            With ``relevant_share`` of :math:`|\nabla_W L|^2` and ``principal_angles``, see
            :func:`giantstep.numeric.networks.directions.subspace`; ``test_error``,
            ``random_features_error`` and ``linear_error``, that of :math:`\alpha + \beta\cdot x`
            alone, mean squared distances from the noise-free target on fresh samples;
            ``step_size``, ``ridge`` and ``random_features_ridge``, what was used.

        Raises
        ------
        ParameterError
            If an argument is outside its range, a function returns a wrong shape or a value that
            is not finite, or the gradient vanishes.
        KeyboardInterrupt
            If it is interrupted.
        """
        run = partial(simulate, readout=self.readout, seeds=seeds, seed=seed, progress=progress)
        found = run(self.network, ("subspace", "linear_part", "step_size", "errors"))
        if found.interrupted:
            raise KeyboardInterrupt
        random = run(self.random_features, "errors")
        if random.interrupted:
            raise KeyboardInterrupt
        names = ("relevant_share", "principal_angles", "linear_error", "step_size")
        values = {name: found[name] for name in names}
        for name, of_random in (
            ("test_error", "random_features_error"), ("ridge", "random_features_ridge"),
        ):  # fmt: skip
            values |= {name: found[name][:, 0, 0], of_random: random[name][:, 0, 0]}
        return Networks(values, found.completed)


def preprocessed_networks(
    student: Activation,
    target: Target,
    *,
    dimension: int,
    samples: int,
    width: int,
    noise_variance: float = 0.0,
    ridge: float | None = None,
    step_size: float | None = None,
    n_test: int | None = None,
) -> PreprocessedNetworks:
    """Return the networks of a student and a target.

    Parameters
    ----------
    student : Activation
    target : Target
    dimension, samples : int
        d, at least the number of coordinates of the target, and n >= 2.
    width : int
        Number m of neurons, even: they come in pairs.
    noise_variance : float
        Variance of the label noise.
    ridge : float, optional
        Penalty λ > 0. By default a fifth of the samples is held out of all stages, and λ is the one
        of 15 values with the smallest error there, from 10⁻⁴ to 10³ times the mean diagonal entry
        of the Gram matrix of the features; random features choose theirs in the same way. Test
        samples are never looked at.
    step_size : float, optional
        η₁ > 0. By default the one that gives the rows a mean squared length of 1.
    n_test : int, optional
        Test samples for each network; 10000 by default.

    Raises
    ------
    ParameterError
        If an argument is outside its range.
    AssumptionError
        If the student jumps.
    """
    functions = network_functions(student, target)
    samples = whole_number("samples", samples, minimum=2)
    dimension = whole_number("dimension", dimension)
    check_draws("samples", samples, dimension)
    tests = TEST_SAMPLES if n_test is None else whole_number("n_test", n_test)
    penalty = None if ridge is None else positive_number("ridge", ridge)
    size = None if step_size is None else positive_number("step_size", step_size)
    readout = RidgeReadout(samples, penalty, step_samples=True, test_samples=tests)
    network = Network(
        student=functions.student, student_derivative=functions.student_derivative,
        teacher=functions.target, directions=target.dimension, dimension=dimension, width=width,
        noise_variance=noise_variance, readout="signs", paired=True, biases="later", steps=1,
        step_samples=readout.fitted(samples), step_size=1.0 if size is None else size,
        weight_decay=1.0, normalise=size is None, preprocess=True,
    )  # fmt: skip
    # Without pairs, all rows differ.
    return PreprocessedNetworks(network, replace(network, steps=0, paired=False), readout)
