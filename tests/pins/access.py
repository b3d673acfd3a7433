"""The only file of the pins that imports from the package: mend it here when parts are moved.

Everything goes through the command line where it can. What a run holds is read from its ledger.
"""

import json
from unittest import mock

import click
import numpy as np
from click.testing import CliRunner
from digests import digest_of_array, digest_of_json, rounded, sha256

import srs_ooc
import srs_ooc.estimators
import srs_ooc.extend
import srs_ooc.testing
from srs_ooc import ingest
from srs_ooc.base.budget import PROCESS_NBYTES, total_nbytes
from srs_ooc.cli import cli
from srs_ooc.evidence.tally import Tally
from srs_ooc.ingestion.formats.files import GROUP as FORMATS_GROUP
from srs_ooc.learners.tree_learner import Trial
from srs_ooc.methods.models import model_learner
from srs_ooc.methods.networks.network_run import Network
from srs_ooc.methods.rfest.feature_sensitivity import Sensitivity
from srs_ooc.results.ranking import Comparison
from srs_ooc.runs.ledger import VALID
from srs_ooc.runs.plan import Plan
from srs_ooc.runs.request import Request
from srs_ooc.runs.run import Run
from srs_ooc.runs.run_memory import TrainingShape
from srs_ooc.runs.run_trees import TREES_FILE
from srs_ooc.runs.session import open_or_create, work_on
from srs_ooc.runs.settling import settle
from srs_ooc.samplers.base import GROUP as SAMPLERS_GROUP
from srs_ooc.samplers.srs import KeptSet
from srs_ooc.store.arrays import read_array
from srs_ooc.store.manifest import chunk_file, read_manifest
from srs_ooc.store.store import Store
from srs_ooc.store.values import ValuesReader

MEMORY = ("--memory-mb", 4000)
"""Far above what the tests' own process takes; the results do not depend on it."""
_OF_THE_MACHINE = {"seconds", "peak_nbytes"}


def command(*arguments):
    """Run the command line in this process; return what it writes."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    if result.exit_code:
        raise AssertionError(f"{arguments}: {result.output}") from result.exception
    return result.stdout


def without_trials():
    """Try no model in a process of its own before a run: what it takes changes no result."""
    return mock.patch.object(model_learner, "tried", return_value=Trial(0, 0, 0.001, 0.001))


def json_of(*arguments):
    return json.loads(command(*arguments))


def ingest_file(source, store, *options):
    command("ingest", source, store, *MEMORY, *options)
    return store


def ingest_object(table, store, **options):
    ingest(table, store, memory_mb=MEMORY[1], **options)
    return store


def digests_of_store(store):
    """Of a store: its fingerprint, and each array without regard to how it lies on disk."""
    manifest = read_manifest(store)
    files = [
        np.fromfile(store / chunk_file(i), manifest.code_dtype) for i in range(manifest.n_chunks)
    ]
    codes = np.concatenate(files).reshape(-1, manifest.n_rows)[: manifest.n_features]
    small = {name: read_array(store, manifest, name) for name in sorted(manifest.small_arrays)}
    return {
        "fingerprint": manifest.fingerprint,
        "codes": digest_of_array(codes),
        "values": {name: digest_of_array(a) for name, a in _values_of(store, manifest)},
        "small arrays": {name: _exact_digest(array) for name, array in small.items()},
    }


def _columns_of(table):
    return {name: table[name] for name in table.dtype.names}


def _exact_digest(array):
    array = np.asarray(array)
    return f"{array.dtype.name} {array.shape} {sha256(array.tobytes())}"


def _values_of(store, manifest):
    names = ("values",) if manifest.values_dtype else ("code_lows", "code_highs")
    for name in names:
        reader = ValuesReader(store, manifest, name)
        whole = np.zeros((manifest.n_features, reader.n_items), manifest.values_dtype or "float64")
        for i, first, part in reader.columns(np.arange(manifest.n_features)):
            whole[i, first : first + len(part)] = part
        yield name, whole


def digests_of_run(run, store):
    """Of a run: its tallies, kept features, verdict and trees, as of the last commit."""
    ledger = Run(run, writable=False)
    spec, n_features = ledger.spec, read_manifest(store).n_features
    tally = Tally(n_features, wins=not spec.concludes)
    kept = KeptSet(n_features)
    progress = ledger.load({"tally": tally, "kept": kept})
    found = {
        "iterations": progress.iteration,
        "tallies": {
            name: digest_of_array(pages.array) for name, pages in tally.state().pages.items()
        },
        "kept": {
            "features": digest_of_array(kept.features),
            "entered": digest_of_array(kept.entered),
        },
    }
    arrays = ledger.read_arrays("verdict")
    if arrays is not None:
        columns = arrays | _columns_of(arrays.pop("table"))
        found["verdict"] = {key: digest_of_array(array) for key, array in sorted(columns.items())}
        facts = ledger.meta("conclusion")
        found["conclusion"] = {k: rounded(v) for k, v in facts.items() if k not in _OF_THE_MACHINE}
    valid = ledger.meta(VALID)
    if valid is not None:
        found["trees"] = sha256((run / TREES_FILE).read_bytes()[:valid])
    ledger.close()
    return found


def features_of_run(run, store):
    """The whole ranking as a hash; the names of the selected features, and of the first ten."""
    records = [
        {
            "group" if key == "cluster" else key: value  # as pinned
            for key, value in record.items()
            if key != "beside" or value  # came after the pins
        }
        for record in json_of("features", run, "--store", store, "--json")
    ]
    return {
        "records": len(records),
        "sha256": digest_of_json(records),
        "first": [record["name"] for record in records[:10]],
        "selected": [record["name"] for record in records if record["selected"]],
    }


def status_of_run(run):
    """The status without times, sizes of memory and places."""
    machine = {
        "seconds", "seconds_per_iteration", "planned_seconds_per_iteration",
        "memory_mb", "peak_rss_mb", "memory_is_growth", "store",
    }  # fmt: skip
    status = json_of("status", run, "--json")
    return {
        name: rounded(value)
        for name, value in status.items()
        if name != "closing" or value not in (None, "impurity")  # came after the pins
        if name not in machine
    }


def begin_run(store, run, iterations, keep_going, *, save_trees=None, **options):
    """Create a run and work on it until ``keep_going`` says no."""
    request = Request(
        options=options, iterations=iterations, memory_mb=512, threads=1, save_trees=save_trees
    )
    ledger = open_or_create(Store.open(store), run, request)
    try:
        work_on(ledger, Store.open(store), request, keep_going)
    finally:
        ledger.close()


def needs_of(shape, options, memory_mb, *, saves):
    """Settle a run on a table that is only numbers; return q and the smallest cap, in bytes."""
    form = TrainingShape(n_stored_rows=shape["n_rows"], **shape)
    found = {}
    for what, size in (("default", {}), ("largest", {"subspace_size": "max"})):
        asked = Request(options=options | size, memory_mb=memory_mb, save_trees=saves)
        spec = settle(asked, form, {})
        found[f"{what} q"] = spec.subspace_size
        leases = Plan(asked, spec, form).leases()
        found[f"smallest cap at {what} q"] = PROCESS_NBYTES + total_nbytes(leases)
    return found


def commands():
    """Every command and subcommand by its words, the program first."""
    found = {"srs-ooc": cli}
    for name in cli.list_commands(None):
        found[name] = command = cli.get_command(None, name)
        if isinstance(command, click.Group):
            for sub in command.list_commands(None):
                found[f"{name} {sub}"] = command.get_command(None, sub)
    return found


PUBLIC_MODULES = {
    module.__name__: module
    for module in (srs_ooc, srs_ooc.testing, srs_ooc.estimators, srs_ooc.extend)
}
EXTENDED = {kind.__name__: kind for kind in (Comparison, Sensitivity, Network)}
"""What the reference names beyond the public modules."""
GROUPS = {"formats": FORMATS_GROUP, "samplers": SAMPLERS_GROUP}
