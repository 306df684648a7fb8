"""The command ``giantstep kernel``: generated code of a model, in any language, at any stage."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .atomic_files import write_atomically
from .cli_files import variables_of
from .cli_options import Command, Group, option, real
from .errors import ParameterError

if TYPE_CHECKING:
    from .derivations.kernels.kernel import Kernel

SPIKED = "spiked-random-features"
# Module and function of the systems, and what they describe.
_SYSTEMS = {
    "ridge-regression": (
        "ridge_regression",
        "ridge regression on isotropic Gaussians",
    ),
    "gaussian-covariates": (
        "gaussian_covariates",
        "ridge regression on Gaussians with any covariance, read as data",
    ),
    "logistic-regression": (
        "logistic_regression",
        "logistic regression with a teacher, by its proximal operator",
    ),
    "sherrington-kirkpatrick": (
        "sherrington_kirkpatrick",
        "replica-symmetric spin glass",
    ),
}
ONE_STEP = "one-gradient-step"
MODELS = (SPIKED, ONE_STEP, *_SYSTEMS)
_SUFFIXES = (".py", ".c", ".h", ".jl", ".f90")
TARGETS = ("numba", "python", "numpy", "mpmath", "c", "jax", "julia", "fortran")
STAGES = (
    "equations", "blocks", "hoisted", "quadrature", "fused", "accurate", "program", "functions",
    "tables", "source",
)  # fmt: skip

EPILOG = """\
MODEL is one of those that --list shows, or FILE.py:NAME, a system or kernel of your own: NAME is a
SaddlePointSystem, a Kernel, or a function without arguments that returns one. What is written runs
without giantstep and may be used, changed and distributed without conditions:

  numba    solve_point, and solve_many on all cores      (needs NumPy, numba)
  python   the same text without compilation             (needs NumPy)
  numpy    vectorised over parameters                    (needs NumPy)
  mpmath   to any number of digits                       (needs mpmath)
  c        C99: FILE.c and FILE.h                        (needs libm)
  jax      solve_point, solve_many, derivatives          (needs JAX)
  julia    a module                                      (needs nothing; only its syntax is checked)
  fortran  a module of Fortran 2008                      (needs nothing)

The target follows from the suffix of --out: .py (numba), .c, .jl, .f90; one that contradicts
--target is refused. Files check themselves: python kernel.py, cc -DNAME_SELFCHECK NAME.c -lm, or
selfcheck() in Julia and Fortran.

tables:
  Expectations that depend on nothing but fixed parameters are tabulated over the nodes once.
  "computed": the file does that itself, from the activations; its tables' parameters are arguments.
  "baked": the file holds the tables at the values given by --at, which become constants.

stages, from equations to code:
  equations   as derived              blocks      the order in which they are solved
  hoisted     inner expectations      quadrature  which rule each average takes
  fused       residual and Jacobian   accurate    rewritten where digits would be lost
  program     the intermediate form   functions   special functions for each target
  tables      code of the tables      source      the file of --target

examples:
  giantstep kernel --list
  giantstep kernel sherrington-kirkpatrick --target c --out sk.c
  giantstep kernel spiked-random-features --student erf --teacher erf --out kernel.py
  giantstep kernel spiked-random-features --stage program
  giantstep kernel one-gradient-step --target julia --out risk.jl
  giantstep kernel sherrington-kirkpatrick --out sk.f90
  giantstep kernel mymodel.py:system --out mymodel_kernel.c
  giantstep kernel spiked-random-features --tables baked --at spike_strength=0.9
      --at bulk_variance=1.2 --at alignment=0.6 --at noise_variance=0 --out kernel.c
"""


def run(arguments: argparse.Namespace) -> int:
    """Print or write a generated kernel, or a stage on the way to it."""
    if arguments.list:
        if arguments.out is not None:
            raise ParameterError("--list writes no file: leave --out out, or use --json")
        width = max(map(len, MODELS)) + 2
        listed = {
            SPIKED: "a network after one giant gradient step, with a ridge readout",
            ONE_STEP: "ridge risk after one step of order one, in closed form",
            **{name: summary for name, (_, summary) in _SYSTEMS.items()},
        }
        for name, summary in listed.items():
            print(f"{name:<{width}}{summary}")
        arguments.document = listed
        return 0
    if arguments.model is None:
        raise ParameterError(f"MODEL is missing; use one of {', '.join(MODELS)}")
    check_model(arguments.model, MODELS)
    _check(arguments)
    if arguments.stage != "source":
        return _show(arguments, kernel_named(arguments).inspect(arguments.stage))
    values = _values(arguments.at)
    kernel = kernel_named(arguments)
    if arguments.json:
        stem = None if arguments.out is None else Path(arguments.out).stem
        arguments.document = dict(
            kernel.files(arguments.target or "numba", tables=arguments.tables, name=stem, **values)
        )
    if arguments.out is None:
        if not arguments.json:
            print(kernel.source(arguments.target or "numba", tables=arguments.tables, **values))
        return 0
    path = Path(arguments.out).expanduser()
    written = kernel.write(path, arguments.target, tables=arguments.tables, **values)
    print(f"Wrote {' and '.join(str(p) for p in written)}")
    return 0


def check_model(name: str, known: Sequence[str]) -> None:
    """Refuse a name that is neither known nor of a file."""
    if name not in known and ":" not in name:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ParameterError(
            f"no model {name!r}{hint}; use one of {', '.join(known)}, or FILE.py:NAME for one of "
            "your own"
        )


def _check(arguments: argparse.Namespace) -> None:
    """Refuse flags that contradict each other, before anything is derived."""
    if arguments.stage != "source":
        for flag, given in (
            (f"--target {arguments.target}", arguments.target is not None),
            ("--tables baked", arguments.tables == "baked"),
        ):
            if given:
                raise ParameterError(
                    f"{flag} has no meaning for --stage {arguments.stage}, which is the same "
                    "for all files; leave out one of them"
                )
    if arguments.out is not None and arguments.stage == "source":
        suffix = Path(arguments.out).suffix
        if Path(arguments.out).expanduser().is_dir():
            raise ParameterError(f"--out {arguments.out!r} is a folder; name a file in it")
        if suffix not in _SUFFIXES:
            raise ParameterError(
                f"--out must end in {', '.join(_SUFFIXES)}, got {arguments.out!r}: no language is "
                f"written into {suffix or 'a file without ending'}"
            )
    if arguments.at and arguments.tables != "baked":
        raise ParameterError("--at gives values for --tables baked; add that or leave out --at")


def _values(texts: list[str]) -> dict[str, float]:
    result = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise ParameterError(f"--at must be NAME=NUMBER such as alignment=0.5, got {text!r}")
        try:
            result[name] = real("--at", value, f"{name}=0.5")
        except argparse.ArgumentTypeError as error:
            raise ParameterError(f"--at {name}: {error}") from None
    return result


def kernel_named(arguments: argparse.Namespace) -> Kernel:
    """Return the kernel of the model that the arguments name."""
    from .derivations.kernels.lower import lower

    folder = arguments.cache_folder
    if arguments.model == SPIKED:
        from .derivations.spiked_random_features.model import SpikedRandomFeatures

        # Parameters enter a kernel as arguments; the general one is that of a nonzero spike. So
        # its numbers are no defaults, which baked tables would take.
        model = SpikedRandomFeatures.from_parameters(
            arguments.student or "tanh",
            arguments.teacher or "sin",
            spike_strength=1.0,
            bulk_variance=1.0,
            alignment=0.5,
            cache_folder=arguments.cache_folder,
        )
        return replace(model.kernel(), defaults={})
    if arguments.model == ONE_STEP:
        from .derivations.one_gradient_step.model import OneGradientStep

        step = OneGradientStep(
            arguments.student or "tanh", arguments.teacher or "erf", alpha=2.0, beta=1.0,
            step_size=1.0, cache_folder=arguments.cache_folder,
        )  # fmt: skip
        return step.kernel()
    for flag in ("student", "teacher"):
        if getattr(arguments, flag) is not None:
            raise ParameterError(
                f"--{flag} belongs to {SPIKED} and {ONE_STEP}; {arguments.model} has none"
            )
    if ":" in arguments.model:
        found = own_object(arguments.model)
        return found if hasattr(found, "inspect") else lower(found, cache_folder=folder)
    name, _ = _SYSTEMS[arguments.model]
    module = import_module(f".derivations.mean_field.{name}", __package__)
    return lower(getattr(module, name)(), cache_folder=folder)


def own_object(text: str) -> Any:
    """Return what ``FILE.py:NAME`` names; of a function without arguments what it returns."""
    file, _, name = text.rpartition(":")
    found = variables_of(file, "MODEL must be FILE.py:NAME, a Python file with a system").get(name)
    if found is None:
        raise ParameterError(f"MODEL {text!r}: {file} has nothing named {name!r}")
    return found() if callable(found) else found


def _show(arguments: argparse.Namespace, text: str) -> int:
    arguments.document = {"stage": arguments.stage, "text": text}
    if arguments.out is None:
        print(text)
        return 0
    write_atomically(Path(arguments.out).expanduser(), text.rstrip("\n") + "\n")
    print(f"Wrote {arguments.out}")
    return 0


KERNEL = Command(
    "kernel", "generated kernel of a model, for other languages and in all stages", run, (
        Group("activations", (
            opts.STUDENT.but(help=f"{opts.STUDENT.help} [tanh]", default=None),
            opts.TEACHER.but(help=f"{opts.TEACHER.help} [sin, erf for {ONE_STEP}]", default=None),
        )),
        option("MODEL", "see --list, or FILE.py:NAME for one of your own", nargs="?"),
        option("--list", "list the models and stop"),
        option(
            "--target T",
            f"language: {', '.join(TARGETS)}; the other stages have none [numba]", choices=TARGETS,
        ),
        option(
            "--stage S", "how far on the way from equations to code, see below", default="source",
            choices=STAGES,
        ),
        option(
            "--tables", "whether the file computes its tables or holds them", default="computed",
            choices=("computed", "baked"),
        ),
        option(
            "--at NAME=X", "with --tables baked: a parameter that the tables depend on; may be "
            "repeated", default=[], action="append",
        ),
        option("--out FILE", "where to write it [standard output]"),
        opts.JSON.but(help="print names and texts of the files"), opts.CACHE_FOLDER,
    ), EPILOG, flags=None,
)  # fmt: skip
