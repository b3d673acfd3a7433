"""Examples that `--help` of each command ends with."""

EXAMPLES = {
    "ingest": [
        "srs-ooc ingest data.csv data.zarr --target diagnosis --memory-mb 512",
        "srs-ooc ingest data.csv data.zarr --ignore id,date --strata plate --overwrite",
        "srs-ooc ingest betas.tsv.gz data.zarr --orient features --samples pheno.csv --id ID "
        "--target Group",
    ],
    "inspect": ["srs-ooc inspect data.zarr", "srs-ooc inspect data.zarr --json"],
    "verify": ["srs-ooc verify data.zarr", "srs-ooc verify data.run"],
    "scores": ["srs-ooc scores data.zarr --csv"],
    "plan": [
        "srs-ooc plan data.zarr --memory-mb 512",
        "srs-ooc plan --n-rows 72 --n-features 850000 --memory-mb 512",
    ],
    "run": [
        "srs-ooc run data.zarr --memory-mb 512",
        "srs-ooc run data.zarr --fresh --fdr 0.05 --seed 1",
        "srs-ooc run data.zarr --save-trees --iterations 10000",
    ],
    "resume": ["srs-ooc resume data.run", "srs-ooc resume data.run --iterations 50000"],
    "status": ["srs-ooc status data.run", "srs-ooc status data.run --json"],
    "features": [
        "srs-ooc features data.run --top 20",
        "srs-ooc features data.run --why f123",
        "srs-ooc features data.run --csv > features.csv",
    ],
    "compare": ["srs-ooc compare data.run other.run", "srs-ooc compare a.run b.run --json"],
    "report": [
        "srs-ooc report data.run",
        "srs-ooc report data.run --format md -o -",
        "srs-ooc report data.run --figure cut -o cut.svg",
    ],
    "compact": ["srs-ooc compact data.run", "srs-ooc compact data.run --max-features 20 --csv"],
    "export": [
        "srs-ooc export data.run selected.csv",
        "srs-ooc export data.run best.parquet --top 100",
        "srs-ooc export data.run small.zarr --top 1000",
    ],
    "predict": ["srs-ooc predict data.run new.csv predictions.csv"],
    "sensitivity": [
        "srs-ooc run data.zarr --save-trees --bootstrap",
        "srs-ooc sensitivity data.run",
        "srs-ooc sensitivity data.run --rows unseen.txt --flip permute --csv",
    ],
    "runs": ["srs-ooc runs", "srs-ooc runs results --json"],
    "remove": ["srs-ooc remove data.run", "srs-ooc remove data.run --yes"],
    "network": [
        "srs-ooc network genes.zarr --regulators factors.txt --out edges.csv",
        "srs-ooc network genes.zarr --ensemble extra-trees --k all --out edges.csv --top 1000",
        "srs-ooc network genes.zarr --method srs --out edges.csv",
        "srs-ooc network genes.zarr --k all --plan",
        "srs-ooc network genes.zarr --method prs --joint 0.001 --epochs 300 --out edges.csv",
    ],
    "synth": ["srs-ooc synth madelon t.csv --rows 500 --features 3000 --relevant 20"],
    "theory": ["srs-ooc theory chain --n-features 10000 --q 100 --n-relevant 5"],
}
"""Command lines by command."""


def epilog(command: str) -> str | None:
    """Return the examples of a command as click shows them, lines kept."""
    lines = EXAMPLES.get(command, [])
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines) if lines else None
