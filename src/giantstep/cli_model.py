"""Arguments of the model of spiked random features, which several commands share."""

from __future__ import annotations

import argparse

from .cli_numbers import nonnegative, positive, positive_or_infinite, whole


def add_activations(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the two activations; where they are not `required`, what is not given stays None."""
    group = parser.add_argument_group("activations")
    for name, default in (("student", "tanh"), ("teacher", "sin")):
        group.add_argument(
            f"--{name}",
            default=default if required else None,
            metavar="F",
            help=f"activation of the {name}: a name, or an expression in z [{default}]",
        )


def add_model(parser: argparse.ArgumentParser, *, ridge: bool = True, width: bool = True) -> None:
    """Add the arguments of the model; without those that a command does not depend on."""
    add_activations(parser)
    group = parser.add_argument_group("model (defaults in brackets)")
    group.add_argument(
        "--step-size",
        type=nonnegative("--step-size", 3),
        metavar="S",
        help="step per neuron, s = eta/sqrt(p) [3]; 0 for no step",
    )
    group.add_argument(
        "--learning-rate",
        type=nonnegative("--learning-rate", 3),
        metavar="R",
        help="learning rate in the convention of --convention, instead of --step-size",
    )
    group.add_argument(
        "--convention",
        metavar="NAME",
        help="sqrt-width (S = R), sqrt-dimension (S = R/sqrt(B)) or dimension (S = R/B) "
        "[sqrt-width]",
    )
    group.add_argument(
        "--alpha0",
        type=positive_or_infinite("--alpha0", 20),
        default=20.0,
        metavar="A",
        help="samples of the step, n0/d [20]; inf for the population gradient",
    )
    group.add_argument(
        "--beta", type=positive("--beta", 1), default=1.0, metavar="B", help="neurons, p/d [1]"
    )
    if ridge:
        group.add_argument(
            "--ridge",
            type=positive("--ridge", 0.1),
            default=0.1,
            metavar="L",
            help="ridge penalty of the readout, > 0 [0.1]",
        )
    group.add_argument(
        "--noise",
        type=nonnegative("--noise", 0.25),
        default=0.0,
        metavar="D",
        help="variance of the label noise [0]",
    )
    group.add_argument(
        "--allow-non-odd",
        action="store_true",
        help="use the extension of the theory to students that are not odd functions",
    )
    group.add_argument(
        "--leading-order",
        choices=("published", "complete"),
        default="published",
        help="Result 3.1 as published, or with the terms of the same order that it leaves out: "
        "correlated norms and stretched rows, as networks have them [published]",
    )
    group.add_argument(
        "--correlated-norms",
        dest="leading_order",
        action="store_const",
        const="complete",
        help="former name of --leading-order complete",
    )
    if width:
        group.add_argument(
            "--width",
            type=whole("--width", 1, 1000),
            metavar="P",
            help="number of neurons, for the finite-width correction of the theory [none: p = inf]",
        )
    else:
        parser.set_defaults(width=None)
    group.add_argument("--cache-folder", metavar="FOLDER", help="where derivations are kept")
