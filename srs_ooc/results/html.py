"""What a notebook shows of a result: plain HTML, with every text escaped."""

from html import escape
from typing import TYPE_CHECKING, Any

from srs_ooc.base.text import counted, visible
from srs_ooc.results.status import Status

if TYPE_CHECKING:
    from srs_ooc.results.result import Result

SHOWN = 10
_COLUMNS = ("rank", "name", "selected", "importance", "n_drawn")
_VERDICT_COLUMNS = ("rank", "name", "selected", "q_value", "score", "importance", "p_value")


def page_of(result: "Result") -> str:
    """Return the head of a result and its first features; no script, no colours of its own."""
    status, reading = result.status, result.reading
    columns = _COLUMNS if reading.verdict is None else _VERDICT_COLUMNS
    records = result.features("records", top=SHOWN)
    more = len(reading.positions) - len(records)
    rest = f"<p>and {counted(more, 'feature')} more: <code>.features()</code></p>" if more else ""
    provisional = " (no verdict yet)" if reading.is_provisional else ""
    head = f"<strong>{_text(result.run)}</strong>{provisional}"
    return f"<div>{head}{_facts(status)}{_table(columns, records)}{rest}</div>"


def _facts(status: Status) -> str:
    run = status.parts["run"]
    q = run["subspace_size"]
    facts = {
        "state": status.state,
        "iterations": f"{status.iterations} of {status.iterations_asked}",
        "selected": counted(status.n_selected, "feature"),
        "run": f"method {run['method']}, judge {run['judge']}, q {q}, seed {run['seed']}",
        "memory": status.memory,
        "time": f"{status.seconds:.1f} s of work",
        "store": status.store,
    }
    rows = "".join(
        f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f"<table>{rows}</table>"


def _table(columns: tuple[str, ...], records: list[dict[str, Any]]) -> str:
    head = "".join(f'<th scope="col">{_text(column)}</th>' for column in columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(record[column])}</td>" for column in columns) + "</tr>"
        for record in records
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return _text(f"{value:.4g}" if isinstance(value, float) else value)


def _text(value: object) -> str:
    return escape(visible(str(value)), quote=True)
