"""Sphinx extension: ``{claim} cui-3.1`` writes a claim as the package holds it.

Statement, source, status and the list of checks come from :func:`giantstep.claims`, so that a page
cannot say anything else than what ``giantstep verify`` checks.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from giantstep.derivations.claims import Claim, claims

_FORMULA = re.compile(r"\$\$(?P<block>.+?)\$\$|\$(?P<inline>.+?)\$", re.DOTALL)


def statement(text: str) -> list[nodes.Node]:
    """Return paragraphs and displayed formulas of a text with mathematics in dollar signs."""
    found: list[nodes.Node] = []
    paragraph = nodes.paragraph()
    position = 0
    for formula in _FORMULA.finditer(text):
        paragraph += nodes.Text(text[position : formula.start()])
        position = formula.end()
        if formula["inline"]:
            paragraph += nodes.math(formula["inline"], formula["inline"])
            continue
        block = formula["block"].strip()
        # What ends the sentence belongs to the formula; a line cannot begin with it.
        ending = re.match(r"\s*([.,;])(?=\s|$)", text[position:])
        if ending:
            block += ending[1]
            position += ending.end()
        found += [paragraph, nodes.math_block(block, block, number=None, nowrap=False, label=None)]
        paragraph = nodes.paragraph()
    paragraph += nodes.Text(text[position:].rstrip())
    if paragraph.astext().strip():
        found.append(paragraph)
    return found


def _checks(claim: Claim) -> nodes.Node:
    listing = nodes.bullet_list()
    for check in claim.checks:
        kind = check.kind.value + (", slow" if check.slow else "")
        item = nodes.paragraph(
            "", "", nodes.strong(kind, kind), nodes.Text(f": {check.description}")
        )
        listing += nodes.list_item("", item)
    return listing


class ClaimDirective(Directive):
    """Write one claim."""

    required_arguments = 1
    final_argument_whitespace = False
    has_content = False
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Return an admonition with statement, source, status and checks."""
        known = {claim.identifier: claim for claim in claims()}
        name = self.arguments[0]
        if name not in known:
            raise self.error(f"no claim {name!r}; claims: {', '.join(known)}")
        claim = known[name]
        title = f"{claim.title} ({claim.status.value})"
        box = nodes.admonition(classes=["claim"])
        box += nodes.title(title, title)
        box += statement(claim.statement)
        source = nodes.paragraph("", "", nodes.emphasis("Source: ", "Source: "))
        source += nodes.Text(claim.source + ".")
        command = f"giantstep verify {name}"
        evidence = nodes.paragraph(
            "", "", nodes.emphasis("Evidence, recomputed by ", "Evidence, recomputed by ")
        )
        evidence += nodes.literal(command, command)
        evidence += nodes.Text(":")
        box += [source, evidence, _checks(claim)]
        return [box]


class ClaimTable(Directive):
    """Write a table of all claims."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        """Return a table: identifier, title, status, kinds of evidence."""
        table = nodes.table(classes=["claims"])
        group = nodes.tgroup(cols=4)
        table += group
        for width in (20, 50, 20, 20):
            group += nodes.colspec(colwidth=width)
        head = nodes.thead()
        head += _row("claim", "statement", "status in its source", "evidence")
        body = nodes.tbody()
        for claim in claims():
            kinds = ", ".join(dict.fromkeys(check.kind.value for check in claim.checks))
            body += _row(claim.identifier, claim.title, claim.status.value, kinds)
        group += [head, body]
        return [table]


def _row(*cells: str) -> nodes.Node:
    row = nodes.row()
    for cell in cells:
        row += nodes.entry("", nodes.paragraph(cell, cell))
    return row


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives."""
    app.add_directive("claim", ClaimDirective)
    app.add_directive("claim-table", ClaimTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
