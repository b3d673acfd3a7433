"""What a report says in words: asked, found, how sure, and what is not claimed."""

from math import ceil

from srs_ooc.base.text import counted
from srs_ooc.evidence.judges import PositiveParams, ProbeParams
from srs_ooc.report.source import Source
from srs_ooc.results.feature_record import FeatureRecord


def summary_of(source: Source, records: list[FeatureRecord]) -> list[str]:
    """Return three sentences: what was asked, what was found, and what comes first."""
    return [_asked(source), _found(source, records), _first(source, records)]


def _asked(source: Source) -> str:
    manifest, spec, task = source.manifest, source.spec, source.task
    kind = "a number" if task.is_regression else f"one of {len(manifest.classes)} classes"
    return (
        f"Asked was which of {source.n_candidates:,} features are informative about "
        f"{manifest.target_name} ({kind}), alone or beside other features, in {task.n_rows:,} rows "
        f"of {manifest.source.get('name') or source.store.place.name}; method {spec.run.method} "
        f"looked at {spec.subspace_size:,} features at a time, "
        f"{source.reading.n_iterations:,} times."
    )


def _found(source: Source, records: list[FeatureRecord]) -> str:
    verdict, reading = source.reading.verdict, source.reading
    if reading.is_provisional:
        return "There is no verdict yet: what follows is a ranking so far."
    if reading.ranks_only:
        return "This method ranks features and selects none: there is no verdict, and no level."
    if not len(source.selected):
        return f"No feature was selected{_at_level(source)}."
    n = len(source.selected)
    were = "was" if n == 1 else "were"
    found = f"{n:,} {'feature' if n == 1 else 'features'} {were}"
    if verdict is None:
        return f"{found} selected: so many met the test of the judge."
    n_alone = sum(1 for record in records if record.passes_alone)
    among = f"of the {len(records):,} listed, " if len(records) < n else ""
    clusters = verdict.clusters_selected
    clusters = "" if clusters is None else f", in {clusters} of correlated features"
    return (
        f"{found} selected{_at_level(source)}{clusters}; {among}{n_alone:,} "
        f"{'is' if n_alone == 1 else 'are'} marginally significant, which a test of each feature "
        "alone shows too."
    )


def _at_level(source: Source) -> str:
    if not source.spec.concludes:
        return ""
    kind = "family-wise level" if source.spec.permutations else "level"
    return f" at {kind} {source.spec.fdr}"


def _first(source: Source, records: list[FeatureRecord]) -> str:
    if not records:
        return "There is no feature to list."
    first = records[0]
    facts = []
    if first.q_value is not None:
        facts.append(f"q-value {first.q_value:.2g}")
    if first.q_value is None and first.score is not None:
        facts.append(f"score {first.score:.3g}")
    if first.importance is not None:
        facts.append(f"importance {first.importance:.3g}")
    facts.append(f"drawn {counted(first.n_drawn, 'time')}")
    verb = "comes first" if first.selected else "comes first by rank, which is no finding"
    return f"{first.name} {verb} ({', '.join(facts)})."


def surety_of(source: Source) -> list[str]:
    """Return how sure the findings are."""
    spec, verdict = source.spec, source.reading.verdict
    if source.reading.is_provisional:
        return ["Nothing is sure before the verdict, which comes after the last iteration."]
    if verdict is not None and spec.permutations:
        return [
            f"If no feature were informative, the chance that any is selected would be at most "
            f"{spec.fdr}: this run reached more than {spec.permutations} runs on permuted targets "
            "did."
        ]
    if verdict is not None:
        n_false = float(spec.fdr) * verdict.n_selected
        bound = f"at most {ceil(n_false)}" if n_false else "none"
        return [
            f"The share of false features among the selected is bounded by {spec.fdr} on average "
            f"over runs, not in each run: of {verdict.n_selected:,} expect {bound} to be false.",
            "A q-value is the smallest level at which a feature would still be selected, as "
            "estimated; stability is the share of batches of trees that agree on its place.",
        ]
    if isinstance(spec.judging, ProbeParams):
        return [
            "The judge compares each feature with one irrelevant column at a time "
            f"(better in {spec.judging.probe_min_wins} of more than "
            f"{spec.judging.probe_min_draws} draws). It bounds no share of errors."
        ]
    if isinstance(spec.judging, PositiveParams):
        return ["The judge keeps any feature that ever helped a tree: noise does so, too."]
    return ["A rank orders features. It does not say from which place on they are noise."]


def not_claimed_of(source: Source) -> list[str]:
    """Return what does not follow from the report."""
    found = [
        "Not that a selected feature is a cause: one that only stands in for a cause (a correlated "
        "neighbour, a batch) is informative as well.",
        "Not that other features are irrelevant: with few rows or few draws much goes unseen, and "
        "features that carry the same information share their importance.",
        "Not how well the features predict: plots, importance and q-values come from the rows "
        "that were searched.",
    ]
    if source.spec.concludes:
        rows = "Rows must be exchangeable for the level to hold"
        kept = [name for name in ("strata", "groups") if name in source.manifest.row_columns]
        given = f" (given were {' and '.join(kept)})" if kept else ""
        found.append(f"{rows}{given}: batches, families and repeated samples break it.")
    return found
