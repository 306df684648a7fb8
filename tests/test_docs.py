"""The documentation is complete, and its formulas are converted; the pages run when it is built."""

import ast
import contextlib
import importlib
import importlib.util
import inspect
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import giantstep as gs

DOCS = Path(__file__).parent.parent / "docs"
RESULTS = sorted(page for page in (DOCS / "results").glob("*.md") if page.stem != "index")


def _extension(name):
    pytest.importorskip("sphinx")
    spec = importlib.util.spec_from_file_location(name, DOCS / "_extensions" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


LISTED = set(re.findall(r"^   ~?([\w.]+)$", (DOCS / "api" / "index.md").read_text(), re.MULTILINE))


def test_the_reference_lists_every_public_name():
    assert {name for name in LISTED if "." not in name or name.startswith("errors.")} == {
        *(set(gs.__all__) - {"errors"}),
        *(f"errors.{name}" for name, kind in vars(gs.errors).items() if isinstance(kind, type)),
    }


def test_names_of_the_reference_are_there():
    for name in LISTED - set(gs.__all__):
        module, _, thing = name.rpartition(".")
        assert hasattr(importlib.import_module(f"giantstep.{module}"), thing), name


def test_the_reference_lists_all_results():
    assert _extension("reference_pages").results() <= LISTED


def test_the_reference_lists_what_pages_import_from_modules():
    imports = re.compile(r"^from giantstep\.[\w.]+ import (?:\([^)]*\)|.*)$", re.MULTILINE)
    files = [*DOCS.glob("*.md"), *DOCS.glob("[!a]*/*.md"), *DOCS.glob("gallery/*.py")]
    lines = "\n".join(line for file in files for line in imports.findall(file.read_text()))
    found = {
        (line.module or "", name.name)
        for line in ast.parse(lines).body
        if isinstance(line, ast.ImportFrom)
        for name in line.names
    }
    assert ("giantstep.symbolic.expressions.functions", "relu") in found
    things = {pair: getattr(importlib.import_module(pair[0]), pair[1], None) for pair in found}
    assert [
        f"{module}.{name}"
        for (module, name), thing in things.items()
        if inspect.isfunction(thing) or inspect.isclass(thing)
        if name not in gs.__all__ and f"{module}.{name}".removeprefix("giantstep.") not in LISTED
    ] == []


def test_references_to_homes_and_to_inherited_members_are_resolved():
    described = _extension("reference_pages").described
    known = {"giantstep.activation", "giantstep.Kernel.solve", "giantstep.pages.Reported.report"}
    assert described("activation", None, known) == "giantstep.activation"
    assert described(".activations.activation", None, known) == "giantstep.activation"
    assert described(".kernel.Kernel.solve", None, known) == "giantstep.Kernel.solve"
    assert described("report", gs.Curve, known) == "giantstep.pages.Reported.report"
    assert described(".targets.target.target", None, {"giantstep.target"}) == "giantstep.target"
    assert described(".claims.evidence", None, {"giantstep.evidence"}) == "giantstep.evidence"
    assert described("activation", gs.Curve, known) is None
    assert described(".expressions.solve", None, known) is None


def test_every_claim_is_on_a_page_of_results():
    pages = "".join(page.read_text() for page in RESULTS)
    shown = re.findall(r"```\{claim\} (\S+)", pages)
    assert sorted(shown) == sorted(claim.identifier for claim in gs.claims())


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_a_page_of_a_result_has_all_its_parts(page):
    headings = re.findall(r"^## (\w+)$", page.read_text(), re.MULTILINE)
    wanted = ["Assumptions", "Derivation", "Code"]
    assert [heading for heading in headings if heading in wanted] == wanted
    assert headings[-1] in ("Reference", "References")


def test_formulas_of_all_claims_become_mathml():
    mathml = _extension("latex_to_mathml").mathml
    for claim in gs.claims():
        for block, inline in re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", claim.statement, re.DOTALL):
            assert mathml(block or inline, block=bool(block)).startswith("<math")


def test_indices_stand_beside_letters_with_accents_and_labels_below_braces():
    mathml = _extension("latex_to_mathml").mathml
    tags = r"<(\w+)"
    assert re.findall(tags, mathml(r"\hat{V}_{2}", block=False)) == [
        "math", "msub", "mover", "mi", "mo", "mn",
    ]  # fmt: skip
    assert re.findall(tags, mathml(r"\underbrace{x}_{1}", block=False)) == [
        "math", "munder", "munder", "mi", "mo", "mn",
    ]  # fmt: skip


def test_bars_stand_close_and_do_not_grow_with_an_exponent():
    mathml = _extension("latex_to_mathml").mathml
    bars = re.findall(r"<mo([^>]*)>\|</mo>", mathml(r"\lvert w\rvert^2", block=False))
    assert bars == [' stretchy="false" lspace="0" rspace="0"'] * 2
    norm = mathml(r"\|f\|^2", block=False)
    assert re.findall(r"<msup>\s*<mo([^>]*)>‖", norm) == [' stretchy="false"']


def test_names_of_functions_stand_apart_from_a_factor_before_them():
    mathml = _extension("latex_to_mathml").mathml
    assert "<mspace" in mathml(r"2 \operatorname{asin}{\left(x \right)}", block=False)
    assert "<mspace" in mathml(r"\frac{1}{2} \log x", block=False)
    assert "<mspace" not in mathml(r"x + \log x", block=False)


def test_an_unknown_command_is_refused():
    docutils_math = pytest.importorskip("docutils.utils.math")
    mathml = _extension("latex_to_mathml").mathml
    with pytest.raises(docutils_math.MathError, match="nosuchcommand"):
        mathml(r"\nosuchcommand{x}", block=False)


def test_absolute_values_in_docstrings_are_no_substitutions():
    escape = _extension("docstring_text").escape
    lines = ["with |w| = 1 and ``|x|``, :math:`|y|`, z_ and", "", ".. math:: |a|"]
    escape("function", "f", lines)
    assert lines[0] == r"with \|w\| = 1 and ``|x|``, :math:`|y|`, z\_ and"
    assert lines[2] == ".. math:: |a|"


def test_pages_that_load_from_a_network_are_found():
    loaded = _extension("finished_pages")._LOADED
    assert loaded.search('<script src="https://cdn.example/x.js"></script>')
    assert loaded.search('<link rel="stylesheet" href="//fonts.example/x.css">')
    assert not loaded.search('<script src="_static/x.js"></script><a href="https://arxiv.org">')


def test_figures_that_are_drawn_and_not_shown_are_counted():
    missing = _extension("finished_pages").missing_figures
    source = (
        "```{code-cell} ipython3\nfigure, ax = plt.subplots(2)\n```\n`plt.subplots()` in a text"
    )
    assert missing(source, "no figure") == 1
    assert missing(source, '<img src="figure.png">') == 0
    plots = "```{code-cell} ipython3\na.plot()  # b.plot()\naxes.plot(x)\nb.plot(ax=axes)\n```"
    assert missing(plots, "no figure") == 1


def test_attributes_that_share_a_line_are_listed_one_by_one():
    separate = _extension("docstring_text").separate
    lines = ["A thing.", "", "Attributes", "----------", "a, b : float", "    Sizes.", "c : str"]
    separate(lines)
    assert lines[4:] == ["a : float", "    Sizes.", "b : float", "    Sizes.", "c : str"]


def test_the_walkthrough_prints_every_stage():
    from giantstep.symbolic.lowering.lowered import STAGES

    page = (DOCS / "kernel_walkthrough.md").read_text()
    assert set(re.findall(r'inspect\("(\w+)"\)', page)) == set(STAGES)


def _run(page, folder):
    """Run the blocks of a page and return what they print."""
    run = subprocess.run(
        [sys.executable, Path(__file__).parent / "run_readme.py", DOCS / page],
        cwd=folder, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_example_of_claims_of_ones_own_runs(tmp_path):
    assert "passed  arcsine-law: Two erf neurons" in _run("results/index.md", tmp_path)


@pytest.mark.slow
def test_a_loss_an_activation_and_a_model_of_ones_own_are_one_file_each(tmp_path):
    shown = _run("how_to/extending.md", tmp_path)
    assert "information exponent 1" in shown and "float" in shown


# ---------------------------------------------------------------------- the page on certificates


PAGE = Path(__file__).parent.parent / "docs" / "certificates.md"


@pytest.mark.slow
def test_the_code_of_the_page_prints_what_it_says():
    pytest.importorskip("flint")
    blocks = re.findall(
        r"^```(python|text)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert [kind for kind, _ in blocks].count("python") >= 2
    names: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert printed == text
            continue
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            exec(compile(text, str(PAGE), "exec"), names)
        printed = stream.getvalue()
        assert printed
