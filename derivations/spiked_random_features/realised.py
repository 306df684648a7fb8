"""The theory conditioned on one network: evaluated at the spike that the network realised.

At finite size the direction of the spike, its strength and the bulk variance fluctuate from network
to network by O(1/sqrt(d)); Result 3.1 gives their limits. What is left between a network and the
theory at its own spike is the finite readout sample, the fluctuations of the bulk matrix, and what
spiked random features neglect. On request the theory takes the bulk matrix of the network, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ParameterError
from ...labelled import labelled
from ...numeric.arguments import checked_seed, positive_array, positive_number
from ...numeric.networks.bulk import norm_overlap, row_stretch
from ...numeric.networks.network import Network
from ...numeric.networks.readout import RidgeReadout
from ...numeric.networks.run import simulate
from ...numeric.networks.sizes import sample_count
from ...pages import Block, Table
from ...pictures import Line, Lines, Picture
from ..dataset_result import DatasetResult
from ..json_text import saved_model
from ..spectra.spectrum import SimulatedSpectrum
from ..teachers import refuse_directions
from .bulk_law import BulkLaw
from .simulated import network_of
from .solution import model_attributes
from .spike import SpikeParameters

if TYPE_CHECKING:
    import xarray as xr

    from .model import SpikedRandomFeatures
    from .spectrum.spectrum import FeatureSpectrum

_ERRORS = ("test_error", "training_error")
_SPIKE = ("spike_strength", "bulk_variance", "alignment")
_OVERLAPS = ("m", "theta", "psi", "q1", "q2")
_HEADINGS = {
    "measured": "measured",
    "spectrum": "theory, realised spike and bulk",
    "realised": "theory, realised spike",
    "asymptotic": "theory, limit of the spike",
}
_STYLES = {"measured": "", "spectrum": ":", "realised": "-", "asymptotic": "--"}


@dataclass(frozen=True, eq=False, repr=False)
class RealisedNetwork(DatasetResult):
    """One trained network with the theory at its own spike.

    Attributes
    ----------
    dataset : xarray.Dataset
        Dimension ``alpha``: ``measured_…``, ``realised_…`` (theory at the realised spike) and
        ``asymptotic_…`` of test and training error and of the overlaps m, theta, psi, q1, q2; on
        request ``spectrum_…`` (theory at the realised spike and bulk matrix). All theories are at
        the width of the network. Also as `comparison`.
    cache_folder : path-like, optional
        That of the models.
    """

    _document = "realised network"
    _needed = ("model", "dimension", "entropy", *(f"realised_{name}" for name in _SPIKE))

    cache_folder: str | os.PathLike[str] | None = None

    @property
    def comparison(self) -> xr.Dataset:
        """The measured values beside the theories."""
        return self.dataset

    @cached_property
    def asymptotic(self) -> SpikedRandomFeatures:
        """The model whose step the network took."""
        model: SpikedRandomFeatures = saved_model(str(self.dataset.attrs["model"]))
        return replace(model, cache_folder=self.cache_folder)

    @cached_property
    def model(self) -> SpikedRandomFeatures:
        """Spiked random features with the realised r, c and γ, at the width of the network.

        Without what Result 3.1 leaves out, which the comparison has if `asymptotic` has it.
        """
        strength, variance, alignment = (self.dataset.attrs[f"realised_{x}"] for x in _SPIKE)
        return _at_spike(self.asymptotic, self.network.width, (strength, variance, alignment))

    @cached_property
    def network(self) -> Network:
        """The network: ``network.train(network_seed)`` is its first layer."""
        return network_of(self.asymptotic, int(self.dataset.attrs["dimension"]))

    @property
    def seed(self) -> int:
        """Entropy of the run."""
        return int(self.dataset.attrs["entropy"])

    @property
    def spike(self) -> SpikeParameters:
        """Realised spike strength, bulk variance and alignment."""
        return self.model.spike

    @property
    def network_seed(self) -> np.random.SeedSequence:
        """What fixes the rows and all samples of the network."""
        return np.random.SeedSequence(self.seed, spawn_key=(0,))

    def feature_spectrum(
        self, alpha: float, *, progress: bool = True
    ) -> tuple[FeatureSpectrum, SimulatedSpectrum]:
        """Return the spectrum at the realised spike, and the eigenvalues of this network.

        Parameters
        ----------
        alpha : float
            Samples n = α d at which the features are evaluated.

        Returns
        -------
        FeatureSpectrum
            Asymptotic density at the realised r and c; that at their limits is
            ``self.asymptotic.spectrum(alpha)``.
        SimulatedSpectrum
            Eigenvalues of the features of the network, one matrix.

        Raises
        ------
        ParameterError
            If α d is not close to a whole number.
        """
        network = self.network
        samples = sample_count("alpha", positive_number("alpha", alpha), network.dimension)
        found = simulate(
            network, "feature_eigenvalues",
            # Its samples are those of the features; nothing is fitted.
            readout=RidgeReadout(samples, 1.0, test_samples=1),
            seeds=1, seed=self.seed, progress=progress,
        )  # fmt: skip
        simulated = SimulatedSpectrum(
            found["feature_eigenvalues"][:, 0], found["projections"], network.width,
            network.dimension, trained=True,
        )  # fmt: skip
        return self.model.spectrum(alpha=alpha), simulated

    @property
    def rests_on(self) -> str:
        """What the numbers rest on, in words."""
        return (
            f"Measured: one network of d = {self.network.dimension}, so without a standard error. "
            "All theories: float, at the width of the network."
        )

    @property
    def _kinds(self) -> list[str]:
        return [kind for kind in _HEADINGS if f"{kind}_{_ERRORS[0]}" in self.dataset]

    def page(self) -> Iterable[Block]:
        """Return the realised spike and the errors, measured and by each theory."""
        found, limit = self.spike, self.asymptotic.spike
        yield "realised " + ", ".join(
            f"{letter} = {getattr(found, name):.5g} (limit {getattr(limit, name):.5g})"
            for letter, name in zip("rcγ", _SPIKE, strict=True)
        )
        rows = [
            [
                f"{float(point['alpha']):.6g}",
                name.removesuffix("_error"),
                *(f"{float(point[f'{kind}_{name}']):.5g}" for kind in self._kinds),
            ]
            for k in range(self.dataset.sizes["alpha"])
            for point in (self.dataset.isel(alpha=k),)
            for name in _ERRORS
        ]
        yield Table(rows, ["α", "error", *(_HEADINGS[kind] for kind in self._kinds)])
        yield self.rests_on

    def picture(self) -> Picture:
        """Return the test errors over α: measured ones as points, theories as lines."""
        x = self.dataset["alpha"].values.tolist()
        lines = [
            Line(
                x, self.dataset[f"{kind}_test_error"].values.tolist(), _HEADINGS[kind],
                style=_STYLES[kind], mark="" if _STYLES[kind] else "o",
            )
            for kind in self._kinds
        ]  # fmt: skip
        return Lines(lines, r"$\alpha$", "test error")

    def __repr__(self) -> str:
        found = self.spike
        return (
            f"RealisedNetwork(dimension={self.network.dimension}, seed={self.seed}, "
            f"spike_strength={found.spike_strength:.6g}, bulk_variance={found.bulk_variance:.6g}, "
            f"alignment={found.alignment:.6g})"
        )


def realised_network(
    model: SpikedRandomFeatures,
    dimension: int = 1000,
    alpha: object = (0.5, 1.0, 2.0),
    ridge: float = 0.1,
    *,
    seed: int = 0,
    progress: bool = True,
    spectrum: bool = False,
) -> RealisedNetwork:
    """Train one network and return the theory at its own spike beside the asymptotic one.

    The spike strength, bulk variance and alignment of a network fluctuate around Result 3.1
    by :math:`O(d^{-1/2})`. The theory at the values that it realised has no such error.

    Parameters
    ----------
    dimension, alpha, ridge
        As for :meth:`simulate`.
    seed : int
        Fixes the network.
    spectrum : bool
        Also evaluate the theory with averages over the bulk matrix of the network: the
        eigenvalues that it has, and how the spike and the teacher lie to its eigenvectors.

    Returns
    -------
    RealisedNetwork
        Realised spike, measured errors, and the theories at the network's finite width.

    Raises
    ------
    ParameterError
        As for :meth:`simulate`.
    """
    alphas, ridge = positive_array("alpha", alpha), positive_number("ridge", ridge)
    seed = checked_seed(seed)
    if model.direct_parameters is not None:
        raise ParameterError(
            "a model made by from_parameters has no gradient step to simulate; "
            "give step_size and alpha0 instead"
        )
    if model.step_size == 0:
        raise ParameterError(
            "a network without a step has no spike to realise; give step_size > 0, or use simulate"
        )
    refuse_directions(model.teacher, "the theory of one network")
    network = network_of(model, dimension)
    sizes = [sample_count("alpha", ratio, network.dimension) for ratio in alphas.tolist()]
    found = simulate(
        network, ("errors", "overlaps", "spike"), readout=RidgeReadout(sizes, ridge), seeds=1,
        seed=seed, progress=progress,
    )  # fmt: skip
    strength, variance, overlap = (
        found[name].item() for name in ("spike_strength", "bulk_variance", "alignment")
    )
    realised = partial(_at_spike, model, network.width, (strength, variance, overlap))
    columns = {f"measured_{name}": found[name].reshape(-1) for name in (*_ERRORS, *_OVERLAPS)}
    theories = {"realised": realised(), "asymptotic": model.at_width(network.width)}
    norms, stretched = (model._case[name] for name in ("correlated_norms", "stretched"))
    if spectrum or norms or stretched:
        layer = network.train(np.random.SeedSequence(seed, spawn_key=(0,)))
        of_norms = norm_overlap(layer) if norms else 0.0
        if norms or stretched:
            stretch = row_stretch(layer, variance) if stretched else (0.0, 0.0, 0.0)
            theories["realised"] = realised(norm_overlap=of_norms, stretch=stretch)
        if spectrum:
            # One bulk matrix has its stretch already.
            law = BulkLaw.from_layer(layer)
            theories["spectrum"] = realised(norm_overlap=of_norms, bulk=law)
    zero = np.zeros(len(alphas))
    for kind, theory in theories.items():
        values = theory.solve_many(alpha=alphas, ridge=[ridge]).values
        columns |= {f"{kind}_{name}": values.get(name, zero) for name in (*_ERRORS, *_OVERLAPS)}
    attributes = {
        **model_attributes(model, ridge),
        "kind": "one network",
        "dimension": network.dimension,
        "entropy": seed,
        "realised_spike_strength": strength,
        "realised_bulk_variance": variance,
        "realised_alignment": overlap,
    }
    dataset = labelled(
        {name: ("alpha", values) for name, values in columns.items()},
        coords={"alpha": alphas},
        attrs=attributes,
    )
    return RealisedNetwork(dataset, model.cache_folder)


def _at_spike(
    model: SpikedRandomFeatures, width: int, spike: Sequence[float], **bulk: Any
) -> SpikedRandomFeatures:
    strength, variance, overlap = spike
    return type(model).from_parameters(
        model.student,
        model.teacher,
        spike_strength=strength,
        bulk_variance=variance,
        # A unit vector times a unit vector, up to rounding.
        alignment=min(1.0, max(-1.0, overlap)),
        beta=model.beta,
        noise_variance=model.noise_variance,
        width=width,
        cache_folder=model.cache_folder,
        **bulk,
    )
