r"""Networks of finite size that take giant steps, beside the staircase that predicts them.

:math:`\hat f(x) = \frac1p \sum_i a_i\,\sigma(\langle w_i, x\rangle [+ b_i])`, rows uniform on the
unit sphere at the start, neurons in pairs of opposite readout, n = C d^κ fresh samples for each
step of the first layer, learning rate :math:`\eta = s\,p\,d^{(\kappa-1)/2}` (Dandi, Krzakala,
Loureiro, Pesce, Stephan, arXiv 2305.18270; with the prefactor 1/p as here). What is measured is
stated in :mod:`.trained_networks`.
"""

from __future__ import annotations

import concurrent.futures
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import sympy as sp

from ...atomic_files import replacing
from ...errors import ParameterError
from ...pages import Block, Page
from ...symbolic.activations import Activation
from ...symbolic.leaps.staircase import Staircase
from ...symbolic.subspaces import Subspace
from ...symbolic.targets import Target
from .learned_directions import (
    Direction,
    Estimate,
    LearnedDirection,
    StepSpectrum,
    adapted_basis,
    learned_directions,
    mean_over_networks,
    step_spectra,
)
from .simulated_presentation import as_dict, page
from .simulation_plan import GiantStepsPlan, NetworkSettings, plan_giant_steps
from .trained_networks import QUANTITIES, GiantStepsResult, take_giant_steps

_FORMAT = 1


@dataclass(frozen=True, repr=False)
class SimulatedGiantSteps(Page):
    """What finite networks learned in giant steps, and what the staircase says of it.

    Attributes
    ----------
    settings : NetworkSettings
    seed : int
        Entropy of the run.
    staircase : Staircase
        U_0 ⊂ U_1 ⊂ …, with the degrees that the student uses; with preprocessing, of the target
        without its constant and linear parts.
    relevant_subspace : Subspace
        V*, of the whole target.
    result : GiantStepsResult
        The measurements, with the overlaps of all neurons.
    predicted_residual : str or None
        The squared norm of what the readout cannot fit, exact for polynomials, sampled with its
        standard error for others; None without a readout.
    """

    settings: NetworkSettings
    seed: int
    staircase: Staircase
    relevant_subspace: Subspace
    result: GiantStepsResult = field(compare=False)
    predicted_residual: str | None

    @cached_property
    def basis(self) -> tuple[Direction, ...]:
        """An orthonormal basis of V* that is adapted to the staircase."""
        clusters = self.staircase.clusters
        limited = clusters is not None and clusters.is_limiting
        return adapted_basis(
            self.staircase.subspaces[1:],
            self.relevant_subspace,
            clusters.certain if clusters is not None and limited else None,
        )

    @property
    def compares_shared(self) -> bool:
        """Whether verdicts are on what neurons of equal readout and bias have in common."""
        return self.result.has_shared and self.settings.sample_exponent == 1

    @cached_property
    def directions(self) -> tuple[LearnedDirection, ...]:
        """What was learned of each direction of the basis after each step."""
        return learned_directions(self.result, self.basis, shared=self.compares_shared)

    @cached_property
    def spectra(self) -> tuple[StepSpectrum, ...]:
        """Singular values inside V* and outside U_t after each step."""
        return step_spectra(self.result, self.basis, shared=self.compares_shared)

    @property
    def agrees(self) -> bool:
        """Whether every verdict is the prediction, where there is one."""
        return all(row.agrees is not False for row in self.directions)

    @property
    def squared_norms(self) -> tuple[Estimate, ...]:
        """Mean squared norm of the rows after 0, 1, …, T steps."""
        return tuple(
            mean_over_networks(values) for values in self.result.squared_norms.mean(axis=2).T
        )

    @property
    def test_error(self) -> Estimate | None:
        """Mean squared error of the final ridge regression against the noise-free target."""
        if not self.settings.ridge_samples:
            return None
        return mean_over_networks(self.result.test_error)

    def plot(self, directions: Sequence[Sequence[float]] | None = None) -> Any:
        """Draw neurons and singular values; see :func:`.figures.plot_giant_steps`."""
        from .figures import plot_giant_steps

        return plot_giant_steps(self, directions)

    def __repr__(self) -> str:
        chain = " ⊂ ".join(map(str, self.staircase.subspaces))
        seen = sum(row.agrees is True for row in self.directions)
        asked = sum(row.predicted is not None for row in self.directions)
        return (
            f"SimulatedGiantSteps({self.settings.student} on {self.settings.target}, "
            f"d = {self.settings.dimension}, n = {self.settings.samples}: {chain}; {seen} of "
            f"{asked} verdicts as predicted)"
        )

    def page(self) -> Iterable[Block]:
        """Return tables and remarks."""
        return page(self)

    def to_dict(self) -> dict[str, Any]:
        """Return settings, prediction and what is derived from the measurements, plain."""
        return as_dict(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything, the measurements too, to one file; a reader sees all of it or none.

        Parameters
        ----------
        path : path-like
            With suffix .npz.
        """
        found = Path(path)
        if found.suffix != ".npz":
            raise ParameterError(f"path must end in .npz, got {found.name!r}")
        header = {
            "format": _FORMAT,
            "settings": asdict(self.settings),
            "seed": self.seed,
            "staircase": self.staircase.to_dict(),
            "relevant_subspace": self.relevant_subspace.to_dict(),
            "predicted_residual": self.predicted_residual,
            "completed": self.result.completed,
            "interrupted": self.result.interrupted,
        }
        arrays: dict[str, Any] = dict(self.result.values)
        with replacing(found) as temporary, temporary.open("xb") as file:
            np.savez(file, header=np.array(json.dumps(header)), **arrays)
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what :meth:`save` wrote.

        Raises
        ------
        ParameterError
            If the file is something else, or damaged.
        """
        content = Path(path).read_bytes()
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                header = json.loads(str(archive["header"]))
                arrays = {name: archive[name] for name in QUANTITIES}
            if header["format"] != _FORMAT:
                raise ValueError("another format")
            settings = header["settings"]
            if not isinstance(settings["readout"], str):
                settings["readout"] = tuple(settings["readout"])
            return cls(
                NetworkSettings(**settings),
                header["seed"],
                Staircase.from_dict(header["staircase"]),
                Subspace.from_dict(header["relevant_subspace"]),
                GiantStepsResult(arrays, tuple(header["completed"]), header["interrupted"]),
                header["predicted_residual"],
            )
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, OSError) as error:
            raise ParameterError(
                f"{os.fspath(path)!r} is not a file that SimulatedGiantSteps.save wrote, or "
                f"damaged: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            ) from None


def simulate_giant_steps(
    target: str | sp.Expr | Activation | Target,
    student: str | sp.Expr | Activation = "relu",
    *,
    dimension: int,
    samples: int | None = None,
    sample_exponent: int = 1,
    samples_factor: float | None = None,
    width: int = 100,
    steps: int = 2,
    step_size: float = 1.0,
    readout: str | Sequence[float] = "gaussian",
    biases: bool = False,
    preprocess: bool = False,
    noise_variance: float = 0.0,
    ridge_samples: int = 0,
    ridge: float | None = None,
    seeds: int = 5,
    seed: int = 0,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
    cache_folder: str | os.PathLike[str] | None = None,
) -> SimulatedGiantSteps:
    r"""Train networks by giant steps, and hold what they learn against the staircase.

    Parameters
    ----------
    target : str, Expr, Activation or Target
        f, in x1, x2, …
    student : str, Expr or Activation
        σ, without jumps.
    dimension : int
        d, at least twice the number of coordinates of the target.
    samples : int, optional
        n of each step. Give this or `samples_factor`.
    sample_exponent : int
        κ ≥ 1: n counts as d^κ, which fixes the learning rate :math:`s\,p\,d^{(\kappa-1)/2}` and the
        orders that the staircase uses.
    samples_factor : float, optional
        C of n = C d^κ, rounded.
    width, steps : int
        p, even, and T.
    step_size : float
        s > 0.
    readout : {"gaussian", "signs"} or sequence of float
        Law of the readouts: standard normal, ±1, or these values and their negatives.
    biases : bool
        Standard normal biases.
    preprocess : bool
        Take mean and linear part, as estimated on the batch, off its labels.
    noise_variance : float
        Variance of the label noise.
    ridge_samples : int
        Fresh samples of a final ridge regression of the readout; none by default.
    ridge : float, optional
        Its penalty; by default a fifth of these samples is held out to choose it.
    seeds : int
        Number of networks.
    seed : int
        Entropy of the run; fixes all numbers.
    workers : int, optional
        Threads; no effect on the numbers.
    executor : concurrent.futures.Executor, optional
        Where to run the networks instead of in threads of this process; no effect on the numbers.
    store : path-like, optional
        Folder of this run, for finished networks and for unfinished ones after each step: the same
        call resumes there. A folder of another run is refused.
    progress : bool
        Show a progress bar on the standard error stream from the second second on.
    cache_folder : path-like, optional
        Deprecated and without effect.

    Returns
    -------
    SimulatedGiantSteps

    Raises
    ------
    ParameterError
        If an argument is outside its range, or the memory of this machine is too small.
    AssumptionError
        If the student jumps, or the target is constant, with preprocessing affine.
    ExpressionError, UnsupportedExpressionError
        If student or target cannot be read.
    UndecidedError
        If it cannot be decided what the staircase is.

    Examples
    --------
    >>> found = simulate_giant_steps("x1 + x1*x2", dimension=100, samples=10_000, width=60,
    ...                              step_size=1.5, seeds=3)
    >>> [(row.step, row.direction.name, row.predicted) for row in found.directions]
    [(1, 'e1', True), (1, 'e2', False), (2, 'e1', True), (2, 'e2', True)]
    >>> found.agrees
    True
    """
    if cache_folder is not None:
        warnings.warn(
            "cache_folder has no effect and goes with the next release: no source is written",
            DeprecationWarning,
            stacklevel=2,
        )
    plan = plan_giant_steps(
        target,
        student,
        dimension=dimension,
        samples=samples,
        sample_exponent=sample_exponent,
        samples_factor=samples_factor,
        width=width,
        steps=steps,
        step_size=step_size,
        readout=readout,
        biases=biases,
        preprocess=preprocess,
        noise_variance=noise_variance,
        ridge_samples=ridge_samples,
        ridge=ridge,
    )
    return run_plan(
        plan, seeds=seeds, seed=seed, workers=workers, executor=executor, store=store,
        progress=progress,
    )  # fmt: skip


def run_plan(
    plan: GiantStepsPlan,
    *,
    seeds: int = 5,
    seed: int = 0,
    workers: int | None = None,
    executor: concurrent.futures.Executor | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> SimulatedGiantSteps:
    """Train the networks of a plan.

    Parameters
    ----------
    plan : GiantStepsPlan
    seeds, seed, workers, executor, store, progress
        See :func:`simulate_giant_steps`.
    """
    result = take_giant_steps(
        plan.network,
        plan.readout,
        seeds=seeds,
        seed=seed,
        workers=workers,
        executor=executor,
        progress=progress,
        store=store,
        description=plan.description,
    )
    return SimulatedGiantSteps(
        plan.settings,
        seed,
        plan.staircase,
        plan.relevant_subspace,
        result,
        plan.predicted_residual,
    )
