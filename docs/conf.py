"""Configuration of the documentation: ``sphinx-build -W docs docs/_build/html``.

Nothing is taken from a network, neither by the build nor by the pages: formulas become MathML,
figures are drawn by the code that stands above them, scripts and fonts come with the theme.
"""

import os
import sys
import warnings
from pathlib import Path

# Pages run side by side: threads of linear algebra, for all processors each, wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import reference_pages  # noqa: E402

import giantstep  # noqa: E402

reference_pages.write(HERE)

project = "giantstep"
author = "the giantstep developers"
copyright = "the giantstep developers, BSD-3-Clause"
version = release = giantstep.__version__

extensions = [
    "claim_directive",
    "docstring_text",
    "finished_pages",
    "latex_to_mathml",
    "myst_nb",
    "notebook_downloads",
    "reference_pages",
    "room_map",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "gallery/*", "auto_gallery/*.ipynb"]
templates_path = ["_templates"]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
toc_object_entries_show_parents = "hide"
add_module_names = False

# -- code on pages: a cell that raises fails the build ------------------------------------------
# MPLBACKEND=Agg, usual where there is no display, would keep figures from the pages.
os.environ.pop("MPLBACKEND", None)
# Progress bars are switched off on pages, but tqdm looks for notebook widgets all the same.
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 240
nb_merge_streams = True
nb_ipywidgets_js: dict[str, dict[str, str]] = {}

# -- figures of the gallery ---------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    # As many scripts at a time as there are jobs of the build.
    "parallel": True,
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 0,
    "write_computation_times": False,
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# -- reference ----------------------------------------------------------------------------------
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    # Members of these bases are named, with a link to where they are described.
    "inherited-members": "object, int, tuple, ABC, BaseException, Enum, Generic, Mapping, "
    "NamedTuple, Protocol, Sequence, Application, Basic, EvalfMixin, Expr, Function, Printable, "
    "DatasetResult, Drawn, InLatex, JsonDocument, Page, Reported, Result, SentWithDigits, Typeset",
}
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
# Types in docstrings are short names, and some are in two places: at home and in the front door.
suppress_warnings = ["ref.python"]
autosummary_imported_members = False
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# -- pages --------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = f"giantstep {release}"
html_static_path = ["_static"]
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "tour")}
html_css_files = ["giantstep.css"]
html_math_renderer = "mathml"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "header_links_before_dropdown": 5,
    "secondary_sidebar_items": ["page-toc", "notebook"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "use_edit_page_button": False,
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
