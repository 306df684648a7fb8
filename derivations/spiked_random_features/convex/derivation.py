"""The generated code of a convex readout: derived once, kept on disk as text."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from sympy.core.function import AppliedUndef

from ....numeric.cache import FileCache
from ....numeric.kernel_code import KernelCode, LoadedKernel
from ....symbolic.expressions.activations import activation
from ....symbolic.lowering.lower import table_name
from ....symbolic.lowering.lowered import LoweredSystem, lower
from ....symbolic.printing.compiled import Formula, function_source
from ....symbolic.systems.saddle_point import SaddlePointSystem
from ...derived import derived
from ...kernels.code import deriving, kernel_code, latex_names, parameter_domains
from ..bulk_law import IID
from ..derive import with_constraints
from ..physics import IDENTIFIERS
from ..spike import SpikeParameters
from ..vocabulary.arguments import VocabularyParameters
from .energy import ConvexFreeEnergy, convex_free_energy, convex_system
from .labels import Labels
from .losses import loss_family, read_metrics


@dataclass(frozen=True)
class ConvexCase:
    """What distinguishes one set of equations from another, as text.

    Attributes
    ----------
    loss, channel, student, teacher : str
        The loss by the name of :class:`.losses.ConvexLoss`.
    has_noise, aligned, finite_width : bool
    unspiked : bool
        Of one kind of rows.
    letters : int or None
        Number of kinds of rows, where they are several.
    metrics : tuple of (str, str)
        Name and expression.
    signs : tuple of (str, bool)
        Which parameters of the loss are positive; the others are negative.
    bulk : str
        Law of the bulk, as for the free energies of :mod:`.physics`.
    correlated_norms, stretched : bool
        Of letters, likewise.
    """

    loss: str
    channel: str
    student: str
    teacher: str
    has_noise: bool
    aligned: bool
    finite_width: bool
    unspiked: bool = False
    letters: int | None = None
    metrics: tuple[tuple[str, str], ...] = ()
    signs: tuple[tuple[str, bool], ...] = ()
    bulk: str = IID
    correlated_norms: bool = False
    stretched: bool = False

    def energy(self) -> ConvexFreeEnergy:
        """Return the free energy."""
        return convex_free_energy(
            loss_family(self.loss, self.signs),
            Labels(self.channel, activation(self.teacher), self.has_noise),
            activation(self.student),
            unspiked=self.unspiked,
            aligned=self.aligned,
            finite_width=self.finite_width,
            letters=self.letters,
            bulk=self.bulk,
            correlated_norms=self.correlated_norms,
            stretched=self.stretched,
        )

    def system(self) -> SaddlePointSystem:
        """Derive the equations."""
        return convex_system(self.energy(), read_metrics(dict(self.metrics)))

    def lowered(
        self, constrained: SpikeParameters | VocabularyParameters | None = None
    ) -> LoweredSystem:
        """Derive the equations and lower them, with the constraints of a spike if one is given."""
        system = self.system()
        # Letters have their constraints from the beginning.
        if isinstance(constrained, SpikeParameters):
            system = with_constraints(system, constrained)
        return lower(system)

    def check(self) -> None:
        """Refuse what has no equations, before the time is spent to derive them.

        Raises
        ------
        UnsupportedExpressionError
        """
        _check(self)


# Once for all readouts that differ in numbers only.
@lru_cache(maxsize=128)
def _check(case: ConvexCase) -> None:
    averages = case.energy().averages
    _ = averages.closed
    for metric in read_metrics(dict(case.metrics)).values():
        averages.of_metric(metric, training=False)


@dataclass(frozen=True)
class ConvexDerivation:
    """Generated code with what a kernel shows of it.

    Attributes
    ----------
    code : KernelCode
    title, structure : str
    domains, labels : tuple of (str, str)
        Which numbers parameters and unknowns may be, and their LaTeX.
    law : str
        The source of a function: the law of a prediction.
    law_arguments : tuple of str
        Tables and unknowns that it takes, by their names.
    """

    code: KernelCode
    title: str
    structure: str
    domains: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    law: str
    law_arguments: tuple[str, ...]


@derived("convex_readout", ConvexDerivation)
def convex_derivation(case: ConvexCase) -> ConvexDerivation:
    """Derive the code of a case."""
    with deriving(f"the {case.loss} loss", 3) as done:
        system = case.system()
        done()
        lowered = lower(system)
        done()
        code = kernel_code(lowered)
    return ConvexDerivation(
        code=code,
        title=lowered.system.title,
        structure=lowered.system.structure.describe(),
        domains=tuple(parameter_domains(lowered).items()),
        labels=tuple(latex_names(lowered).items()),
        **_law(case.energy()),
    )


def _law(energy: ConvexFreeEnergy) -> dict[str, Any]:
    """Return ``law`` with the fields of :class:`.physics.Prediction`, and its arguments."""
    law = energy.averages.prediction.xreplace(energy.orthogonal)
    # Teachers of these readouts have one direction: nothing is added across it.
    values = [getattr(law, f.name) for f in fields(law) if f.name != "across"]
    tables = {x for value in values for x in value.atoms(AppliedUndef)}
    names = {x: table_name(x) for x in sorted(tables, key=str)}
    symbols = {x for value in values for x in value.xreplace(dict.fromkeys(tables, 1)).free_symbols}
    names |= {x: IDENTIFIERS.get(x, str(x)) for x in sorted(symbols, key=str)}
    source = function_source({"law": Formula(tuple(names), values)}, names=names)
    return {"law": source, "law_arguments": tuple(names.values())}


@lru_cache(maxsize=128)
def loaded_kernel(case: ConvexCase, folder: str) -> LoadedKernel:
    """Return the kernel of a case, one for all readouts."""
    cache = FileCache(folder)
    return convex_derivation(cache, case).code.load(cache)
