"""Kernels in Julia: no Julia runs here, so the syntax is checked, and the text where it differs."""

import functools
import re

import pytest
import sympy as sp

from giantstep.symbolic.lowering.driver import BakedTables
from giantstep.symbolic.lowering.languages import c as c_files, julia as julia_files
from giantstep.symbolic.lowering.lowered import lower
from giantstep.symbolic.printing.printers import JuliaPrinter
from giantstep.symbolic.systems.saddle_point import SaddlePointSystem

from .target_files import lowered_of
from .vectors import MEAN_FIELD, SPIKED_VECTORS

tree_sitter = pytest.importorskip("tree_sitter", reason="reads the syntax of Julia")
grammar = pytest.importorskip("tree_sitter_julia", reason="reads the syntax of Julia")

x = sp.Symbol("x", positive=True)

# No rules; data; a root; panels; safeguarded Newton on plain nodes; tables that it computes.
VECTORS = {v.system: v for v in [*MEAN_FIELD, SPIKED_VECTORS[0]]}


@functools.cache
def text_of(build):
    return module(lowered_of(build))


def nodes_of(text):
    parser = tree_sitter.Parser(tree_sitter.Language(grammar.language()))

    def walk(node):
        yield node
        for child in node.children:
            yield from walk(child)

    return list(walk(parser.parse(text.encode()).root_node))


def assert_julia(text):
    lines = text.splitlines()
    wrong = [lines[n.start_point[0]] for n in nodes_of(text) if n.is_error or n.is_missing]
    assert not wrong, wrong[:5]


def module(lowered, tables=None, name="kernel"):
    ((file, text),) = julia_files.files(lowered, tables, name).items()
    assert file == f"{name}.jl"
    return text


def test_the_check_finds_what_is_wrong():
    with pytest.raises(AssertionError):
        assert_julia("function f(x)\n    return x +\n")


@pytest.mark.parametrize("vector", VECTORS.values(), ids=str)
def test_is_julia(vector):
    text = text_of(vector.system)
    assert_julia(text)
    assert "syntax checked only" in text and "without conditions" in text
    assert not re.search(r"^\s*(using|import)\b", text, re.MULTILINE)


def test_every_name_is_defined_in_the_module_or_in_base():
    for vector in VECTORS.values():
        text = text_of(vector.system)
        called = set(re.findall(r"(?<![\w.:!@])([a-z]\w*)\(", re.sub(r"#.*|\"[^\"]*\"", "", text)))
        defined = set(re.findall(r"^(?:function )?(\w+)\(", text, re.MULTILINE))
        base = set(
            "zeros fill length abs min max exp isfinite isinteger collect any all error sum view "
            "haskey size push append reshape enumerate sign ccall Dict tanh sinh cosh expm1 "
            "atan asinh floor ceil log2 isnan zip isempty".split()
        ) | {"if", "while", "elseif", "return", "in"}  # fmt: skip
        assert called <= defined | base, vector


def functions_in(text):
    return re.findall(r"^function (\w+)\(", text, re.MULTILINE)


def test_holds_the_functions_of_the_kernel_in_c():
    lowered = lowered_of(SPIKED_VECTORS[0].system)
    in_c = re.findall(r"^static .*?(\w+)\(", c_files.files(lowered, name="k")["k.c"], re.MULTILINE)
    own = {"smaller", "larger", "forget", "room_for", "solve_one", "solve_all"}
    julia = set(functions_in(module(lowered))) | {"fn_erf"}
    assert {f for f in in_c if not f.startswith("fn_")} - own <= julia


def test_indices_begin_at_one():
    text = module(lowered_of(SPIKED_VECTORS[0].system))
    body = text[text.index("function solve_rows(") :]
    assert "results[" in body and not re.search(r"\[(0|i|j|k)\]", text.split("mutable struct")[0])
    assert re.search(r"for j in \(0\):\(length\(\w+\) - 1\)", text)


def test_tables_in_the_file():
    lowered = lowered_of(SPIKED_VECTORS[0].system)
    names = ("weight", *map(str, lowered.program.tables))
    levels = tuple({n: (0.5, 1.0) for n in names} for _ in range(3))
    values = {lowered.identifiers[p]: 0.5 for p in lowered.table_parameters}
    text = module(lowered, BakedTables(values, levels))
    assert_julia(text)
    assert "tabulate" not in functions_in(text)
    assert 'const PARAMETERS = ("alpha", "beta", "ridge", )' in text


def test_names_of_users_mean_nothing_else_in_julia():
    names = ("end", "function", "error", "exp", "zeros", "Inf", "length", "p")
    symbols = {name: sp.Symbol(f"s{k}", positive=True) for k, name in enumerate(names)}
    unknown = sp.Symbol("y", positive=True)
    system = SaddlePointSystem.from_fixed_point(
        {unknown: sp.tanh(unknown + sum(symbols.values())) + 1},
        name="module_",
        parameters=tuple(symbols.values()),
        identifiers={**{s: name for name, s in symbols.items()}, unknown: "struct"},
    )
    text = module(lower(system), name="module")
    assert_julia(text)
    assert "module module_" in text
    assert "end_" in text and '"end", ' in text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (x**7, "(x)^(7)"),
        (x ** sp.Rational(3, 2), "power(x, (3.0 / 2.0))"),
        (sp.sqrt(x), "sqrt(x)"),
        (sp.Piecewise((x, x > 1), (2, True)), "((x > 1.0) ? (x) : (2.0))"),
    ],
)
def test_prints_expressions_in_julia(expr, text):
    assert JuliaPrinter().print(expr) == text
