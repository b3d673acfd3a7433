"""A report as JSON and as Markdown: the same facts without figures."""

import json
from collections.abc import Iterator

from srs_ooc.base.text import visible
from srs_ooc.report.facts import Facts
from srs_ooc.results.feature_record import FeatureRecord

LISTED = 50
"""Features of the table in Markdown."""
_COLUMNS = ("rank", "name", "q_value", "score", "importance", "stability", "cluster", "n_drawn")


def json_of(facts: Facts) -> str:
    """Return a report as one JSON object."""
    return json.dumps(facts.values(), ensure_ascii=False, indent=1) + "\n"


def markdown_of(facts: Facts) -> str:
    """Return a report as Markdown; names are escaped."""
    return "\n".join(_lines(facts)) + "\n"


def _lines(facts: Facts) -> Iterator[str]:
    yield from (f"# {_escaped(facts.name)}", "")
    yield from map(_escaped, facts.summary)
    for title, sentences in (
        ("How sure", facts.surety),
        ("What is not claimed", facts.not_claimed),
        ("Warnings", [f"{c.title}. {c.text}" for c in facts.cautions]),
    ):
        if sentences:
            yield from ("", f"## {title}", "", *(f"- {_escaped(s)}" for s in sentences))
    yield from ("", "## Features", "", *_table(facts.features))
    if facts.held_out is not None:
        yield from ("", "## Accuracy on rows held out", "", "| features | score | error |")
        yield "|---|---|---|"
        scored = zip(facts.held_out.sizes, facts.held_out.scores, facts.held_out.errors,
                     strict=True)  # fmt: skip
        yield from (f"| {size} | {score} | {error} |" for size, score, error in scored)
    usage = facts.usage
    yield from ("", "## Time and memory", "")
    yield f"{usage.total_seconds:.1f} s of work; memory: {facts.status.memory}."
    yield from ("", "## How to repeat it", "", "```", *map(visible, facts.repeat.commands), "```")
    yield from ("", *(f"- {_escaped(note)}" for note in facts.repeat.notes))
    known = facts.repeat.versions | facts.repeat.fingerprints
    yield from (f"- {_escaped(name)}: {_escaped(value)}" for name, value in known.items())


def _table(records: list[FeatureRecord]) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|" + "---|" * len(_COLUMNS)
    for record in records[:LISTED]:
        yield f"| {' | '.join(_cell(getattr(record, name)) for name in _COLUMNS)} |"
    if len(records) > LISTED:
        yield from ("", f"and {len(records) - LISTED:,} more.")


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else _escaped(str(value))


def _escaped(text: str) -> str:
    seen = visible(text).replace("\n", " ")
    # Backticks of commands stay; inside them nothing is escaped.
    parts = seen.split("`")
    return "`".join(part if i % 2 and i + 1 < len(parts) else _plain(part)
                    for i, part in enumerate(parts))  # fmt: skip


def _plain(text: str) -> str:
    return "".join(f"\\{c}" if c in "\\*_{}[]<>#|~$" else c for c in text)
