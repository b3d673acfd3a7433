"""A store with or linked to a .bed file: codes and values of the store it replaces, and damage."""

import contextlib
import math
import os
import shutil
import zlib
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from bed_files import DOSAGES, N_ROWS, N_VARIANTS, NAMES, STATUS, write_bed
from command import check_least_cap
from examples import examples, given, st
from refusals import refused
from tables import here, said_here

import srs_ooc
from srs_ooc.base.errors import InputError, StoreError, UsageError
from srs_ooc.native import _native
from srs_ooc.store.bed import OWN
from srs_ooc.store.manifest import make_group
from srs_ooc.store.opening import open_zarr
from srs_ooc.store.store import Scan, Store
from srs_ooc.trees.block import Block


def packed(folder, *args, name="p.zarr", **options):
    path = write_bed(folder, *args)
    srs_ooc.ingest(path, folder / name, **options)
    return path, Store.open(folder / name)


linked = partial(packed, name="l.zarr", link=True)


def codes_of(store, *, rows=None, mapped=False, tiled=True):
    """Codes (n_features, n_rows) in the order of the source."""
    n = store.n_rows if rows is None else len(rows)
    block = Block(store.n_features, n, 1, tiled=tiled)
    with store.columns(mapped=mapped) as columns:
        columns.gather(np.arange(store.n_features, dtype=np.uint32), block, rows)
        if not mapped:
            assert columns.advise(np.arange(store.n_features, dtype=np.uint32)) == 1
    codes = np.empty((store.n_features, n), np.uint8)
    codes[store.array("positions")] = block.as_columns(store.n_features)
    return codes


def by_name(store, name):
    array = store.array(name)
    out = np.empty_like(array)
    out[store.array("positions")] = array
    return out


@pytest.mark.slow
@examples(80)
@given(st.booleans(), st.integers(2, 21), st.integers(1, 130), st.integers(0, 2**16))
def test_it_is_the_store_that_it_replaces(tmp_path_factory, links, n_rows, n_variants, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("bed")
    few = [rng.choice([0.0, 1.0, 2.0, math.nan], rng.integers(1, 5)) for _ in range(n_variants)]
    dosages = np.stack([rng.choice(some, n_rows) for some in few], axis=1)
    status = ["1", "2", *rng.choice(["1", "2", "-9"], n_rows - 2)]
    fam = [f"F I{i} 0 0 1 {one}" for i, one in enumerate(status)]
    names = [f"rs{j}" for j in range(n_variants)]
    make = linked if links else packed
    path, store = make(folder, dosages, names, fam, min_class_rows=1)
    assert store.manifest.is_linked == links
    assert store.manifest.n_linked_rows == (n_rows if links else store.n_rows)
    srs_ooc.ingest(path, folder / "s.zarr", min_class_rows=1, code_dtype="uint8")
    twin = Store.open(folder / "s.zarr")
    for name in ("kinds", "n_codes", "n_missing", "exact"):
        np.testing.assert_array_equal(by_name(store, name), by_name(twin, name), name)
    assert store.manifest.kind_counts == twin.manifest.kind_counts
    assert store.manifest.n_missing_cells == twin.manifest.n_missing_cells
    n = store.n_rows
    some = rng.choice(n, rng.integers(1, n + 1), replace=False).astype(np.int32)
    for rows in (None, np.sort(some), some):
        expected = codes_of(twin, rows=rows)
        for mapped in (False, True):
            for tiled in (False, True):
                found = codes_of(store, rows=rows, mapped=mapped, tiled=tiled)
                np.testing.assert_array_equal(found, expected)
    chunks = [next(Scan(one, n_variants, values=True).blocks())[1] for one in (store, twin)]
    np.testing.assert_array_equal(chunks[0][np.argsort(store.array("positions"))],
                                  chunks[1][np.argsort(twin.array("positions"))])  # fmt: skip
    assert store.verify().nbytes > 0
    if not links:  # features lie as in any store
        np.testing.assert_array_equal(store.array("positions"), twin.array("positions"))


@pytest.mark.slow
@examples(8)
@given(st.integers(4, 40), st.lists(st.integers(1, 60), min_size=2, max_size=4), st.integers(0, 99))
def test_pieces_make_the_store_of_one_file(tmp_path_factory, n_rows, sizes, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("bed")
    dosages = rng.choice([0.0, 1.0, 2.0, math.nan], (n_rows, sum(sizes)))
    names = [f"rs{j}" for j in range(sum(sizes))]
    status = ["1", "2", *rng.choice(["1", "2", "-9"], n_rows - 2)]
    fam = [f"F I{i} 0 0 {i % 3} {one}" for i, one in enumerate(status)]
    (path, whole), files = packed(folder, dosages, names, fam, min_class_rows=1), []
    variants = path.with_suffix(".bim").read_text().splitlines(keepends=True)
    for stop, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        some = slice(stop - size, stop)
        files.append(write_bed(folder, dosages[:, some], names[some], fam, name=f"chr{stop}"))
        files[-1].with_suffix(".bim").write_text("".join(variants[some]))
    ingest = partial(srs_ooc.ingest, min_class_rows=1, target="phenotype")
    ingest(files, folder / "m.zarr")
    merged = Store.open(folder / "m.zarr")
    merged.verify()
    own = [(store.path / OWN).read_bytes() for store in (whole, merged)]
    assert own[0] == own[1]
    assert merged.manifest.checksums == whole.manifest.checksums
    np.testing.assert_array_equal(codes_of(merged), codes_of(whole))
    ingest(files, folder / "u.zarr", code_dtype="uint8")
    assert Store.open(folder / "u.zarr").manifest.n_linked_rows == 0
    np.testing.assert_array_equal(codes_of(Store.open(folder / "u.zarr")), codes_of(whole))


@pytest.mark.slow
def test_what_stands_beside_a_piece_is_compared_and_held_to(tmp_path):
    fam = [f"F I{i} 0 0 1 {1 + i % 2}" for i in range(N_ROWS)]
    first = write_bed(tmp_path, fam=fam)
    others = [line[:-1] + str(3 - int(line[-1])) for line in fam]
    second = write_bed(tmp_path, names=[f"x{name}" for name in NAMES], fam=others, name="x")
    store = tmp_path / "m.zarr"
    with pytest.raises(InputError, match="expected the target of"):
        srs_ooc.ingest([first, second], store, target="phenotype")
    second.with_suffix(".fam").write_text("".join(f"{line}\n" for line in fam))
    with pytest.raises(StoreError, match="a table was written to since"):
        srs_ooc.ingest([first, second], store, target="phenotype")
    shutil.rmtree(tmp_path / "m.zarr.pieces")
    srs_ooc.ingest([first, second], store, target="phenotype")
    assert Store.open(store).n_features == 2 * N_VARIANTS


def test_a_piece_of_other_codes_makes_bytes_of_all(tmp_path):
    fam = [f"F I{i} 0 0 1 {1 + i % 2}" for i in range(N_ROWS)]
    bed = write_bed(tmp_path, fam=fam)
    pd.DataFrame({"age": np.arange(N_ROWS) / 3}).to_csv(tmp_path / "age.csv", index=False)
    ages = tmp_path / "age.csv"
    srs_ooc.ingest([bed, ages], tmp_path / "m.zarr", target="phenotype", min_class_rows=1)
    store = Store.open(tmp_path / "m.zarr")
    assert (store.manifest.n_linked_rows, store.n_features) == (0, N_VARIANTS + 1)
    store.verify()


@pytest.mark.parametrize("isa", _native.isas())
def test_every_instruction_set_reads_the_same(tmp_path, isa):
    path, _ = linked(tmp_path)
    present = np.array([7] * N_VARIANTS, np.uint8)
    out = np.zeros((N_VARIANTS, N_ROWS), np.uint8)
    with path.open("rb") as file:
        every, none = np.arange(N_VARIANTS, dtype=np.uint32), np.zeros(0, np.int32)
        files = np.zeros(0, np.uint64), np.array([file.fileno()], np.int32)
        wanted = present, every, N_ROWS, none, False
        _native.gather_genotypes(*files, *wanted, out.reshape(-1), isa)
    expected = np.where(np.isnan(DOSAGES), 255, DOSAGES).T
    np.testing.assert_array_equal(out, expected)


def write_genotypes(path, dosages, names, status):
    frame = pd.DataFrame(dosages, columns=names)
    frame["phenotype"] = [{"1": "control", "2": "case"}.get(one) for one in status]
    frame.to_csv(path, index=False)


def test_a_table_of_any_format_is_packed_where_that_is_asked(tmp_path):
    names = [f"rs{j}" for j in range(N_VARIANTS)]
    status = ["2", "1", "-9"] * 8
    fam = [f"F I{i} 0 0 1 {one}" for i, one in enumerate(status[:N_ROWS])]
    _, store = packed(tmp_path, DOSAGES, names, fam)
    assert store.n_rows < N_ROWS
    write_genotypes(tmp_path / "t.csv", DOSAGES, names, status[:N_ROWS])
    srs_ooc.ingest(tmp_path / "t.csv", tmp_path / "t.zarr", code_dtype="2bit")
    files = [store.path / "genotypes.bed", tmp_path / "t.zarr" / "genotypes.bed"]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert len(files[0].read_bytes()) == 3 + N_VARIANTS * -(-store.n_rows // 4)
    other = DOSAGES.copy()
    other[7, 5] = 0.5
    write_genotypes(tmp_path / "o.csv", other, names, status[:N_ROWS])
    with pytest.raises(InputError, match=r"line 9: column 'rs5': expected 0, 1, 2 or a missing va"):
        srs_ooc.ingest(tmp_path / "o.csv", tmp_path / "o.zarr", code_dtype="2bit")
    assert not (tmp_path / "o.zarr").exists()
    (tmp_path / "n.csv").write_text("a,b\n0,1\n1,2\n2,0\n0,3.5\n")
    with pytest.raises(InputError, match=r"row 4: column 'b': expected 0, 1, 2 or a missing"):
        srs_ooc.ingest(tmp_path / "n.csv", tmp_path / "n.zarr", code_dtype="2bit", no_target=True)


@pytest.mark.parametrize(
    "options",
    [{"kinds": {"rs3": "categorical"}}, {"keep_values": False}, {"code_dtype": "uint16"}],
    ids=str,
)  # fmt: skip
def test_what_two_bits_do_not_hold_is_kept_in_bytes_or_refused(tmp_path, options):
    assert packed(tmp_path, **options)[1].manifest.n_linked_rows == 0
    if "code_dtype" not in options:
        with pytest.raises(UsageError, match="2bit: expected numbers kept as they are"):
            srs_ooc.ingest(tmp_path / "g.bed", tmp_path / "o.zarr", code_dtype="2bit", **options)


def test_variants_may_be_left_out_or_be_the_target(tmp_path):
    path, store = packed(tmp_path, ignore="rs3", target="rs4", min_class_rows=1)
    srs_ooc.ingest(path, tmp_path / "s.zarr", ignore="rs3", target="rs4", min_class_rows=1,
                   code_dtype="uint8")  # fmt: skip
    assert store.n_features == N_VARIANTS - 2
    np.testing.assert_array_equal(codes_of(store), codes_of(Store.open(tmp_path / "s.zarr")))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["append_rows", "append_features"])
@pytest.mark.parametrize("links_new", [False, True])
def test_rows_and_features_are_appended_as_to_the_store_that_it_replaces(tmp_path, how, links_new):
    rng = np.random.default_rng(5)
    names = [f"v{j}" for j in range(40)]
    dosages = rng.choice([0.0, 1.0, 2.0, math.nan], (N_ROWS, 40))
    _, store = packed(tmp_path, dosages, names)
    linked(tmp_path, dosages, names)
    srs_ooc.ingest(tmp_path / "g.bed", tmp_path / "s.zarr", code_dtype="uint8")
    (tmp_path / "more").mkdir()
    ids = "J" if (is_rows := how == "append_rows") else "I"  # the same in another order
    fam = [f"F {ids}{i} 0 0 1 {STATUS[i]}" for i in reversed(range(N_ROWS))]
    theirs = names[::-1] if is_rows else [f"x{name}" for name in names]
    more = write_bed(tmp_path / "more", dosages[::-1], theirs, fam)
    made = []
    for old in (tmp_path / "s.zarr", store.path, tmp_path / "l.zarr"):
        made.append(tmp_path / f"{how}-{old.name}")
        srs_ooc.ingest(more, made[-1], link=links_new, **{how: old})
    first, *others = map(Store.open, made)
    expected = codes_of(first)
    by_values = np.where(np.isnan(dosages), 255, dosages).T
    np.testing.assert_array_equal(expected[:40, :N_ROWS], by_values)
    new = expected[:40, N_ROWS:] if is_rows else expected[40:]
    np.testing.assert_array_equal(new, by_values[::-1, ::-1] if is_rows else by_values)
    for other in others:
        np.testing.assert_array_equal(codes_of(other), expected)
        other.verify()
        assert other.n_rows * other.n_features == 2 * N_ROWS * 40
    packs = how == "append_features" and not links_new
    assert [one.manifest.n_linked_rows for one in others] == [N_ROWS * packs, 0]


@pytest.mark.parametrize("damage", ["gone", "short", "head", "byte"])
def test_damage_of_its_own_file_is_found_and_named(tmp_path, damage):
    _, store = packed(tmp_path)
    file = store.path / "genotypes.bed"
    data = bytearray(file.read_bytes())
    data[{"head": 1, "byte": 40}.get(damage, 0)] ^= damage in ("head", "byte")
    file.unlink()
    if damage != "gone":
        file.write_bytes(data[:-1] if damage == "short" else data)
    with pytest.raises(StoreError, match=r"genotypes\.bed.* [Ii]ngest the table again"):
        Store.open(store.path).verify()


def test_its_own_file_is_watched(tmp_path):
    _, store = packed(tmp_path)
    os.utime(store.path / "genotypes.bed", (1, 1))
    refused(StoreError, r"genotypes\.bed.*written to, replaced", store.check_unchanged)
    srs_ooc.ingest(tmp_path / "g.bed", store.path, overwrite=True)
    assert Store.open(store.path).fingerprint == store.fingerprint


def test_a_run_on_it_finds_what_a_run_on_the_store_finds(tmp_path):
    rng = np.random.default_rng(3)
    dosages = rng.integers(0, 3, (120, 60)).astype(float)
    signal = dosages[:, 3] + dosages[:, 9] + rng.standard_normal(120)
    status = np.where(signal > np.median(signal), 2, 1)
    fam = [f"F I{i} 0 0 1 {one}" for i, one in enumerate(status)]
    path, _ = linked(tmp_path, dosages, [f"rs{j}" for j in range(60)], fam)
    srs_ooc.ingest(path, tmp_path / "p.zarr")
    srs_ooc.ingest(path, tmp_path / "s.zarr", code_dtype="uint8")
    found = [
        srs_ooc.run(tmp_path / store, out=tmp_path / f"{store}.run", iterations=40, alpha="0")
        for store in ("l.zarr", "p.zarr", "s.zarr")
    ]
    assert found[1].features("records", top=60) == found[2].features("records", top=60)
    one, _, other = (
        {f["name"]: (f["p_value"], f["selected"]) for f in result.features("records", top=60)}
        for result in found
    )
    assert len(one) == 60
    assert one == other
    assert one["rs3"][1]


def test_the_report_of_ingest_and_verify_say_where_the_genotypes_are(tmp_path, capsys):
    path, store = write_bed(tmp_path), tmp_path / "l.zarr"
    said = said_here(capsys, "ingest", path, store, "--link")
    assert "linked: g.bed holds the genotypes (240 bytes) and must stay" in said
    said = said_here(capsys, "ingest", path, tmp_path / "n.zarr", "--link", "--dry-run")
    assert "store: at most 6.3 kB" in said
    assert sum(f.stat().st_size for f in store.rglob("codes/*")) == 0
    said = said_here(capsys, "inspect", store)
    assert "codes        2 bits each, in a .bed file, 240 bytes\n" in said
    group = open_zarr(tmp_path / "l.zarr")
    assert "codes" not in group
    assert group["feature"].shape == (N_VARIANTS,)


def test_a_file_that_was_changed_is_refused_and_linked_again_the_store_is_the_same(tmp_path):
    path, store = linked(tmp_path)
    data = path.read_bytes()
    with store.columns(mapped=False):
        path.write_bytes(data)
        os.utime(path, (1, 1))
        refused(StoreError, r"g\.bed.*written to, replaced", store.check_unchanged)
    refused(StoreError, r"found that it was changed.*--link --overwrite", Store.open, store.path)
    srs_ooc.ingest(path, store.path, link=True, overwrite=True)
    assert Store.open(store.path).fingerprint == store.fingerprint
    path.write_bytes(data + b"more")
    refused(StoreError, "found another size", Store.open, store.path)
    path.unlink()
    refused(StoreError, r"expected the \.bed file .*, found none", Store.open, store.path)


def test_other_genotypes_under_the_old_times_are_found_by_verify_and_values(tmp_path):
    path, store = linked(tmp_path)
    before, data = path.stat(), bytearray(path.read_bytes())
    data[40] ^= 0x40
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = Store.open(store.path)
    for look in (changed.verify, lambda: changed.values().read_chunk(0)):
        refused(StoreError, "found other genotypes, in variants 1 to", look)


def test_store_and_file_may_move_together(tmp_path):
    path, store = linked(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    shutil.move(path, tmp_path / "elsewhere" / path.name)
    shutil.move(store.path, tmp_path / "elsewhere" / "l.zarr")
    moved = Store.open(tmp_path / "elsewhere" / "l.zarr")
    np.testing.assert_array_equal(codes_of(moved), codes_of(moved, mapped=True))


@pytest.mark.parametrize("name", ["linked_rows", "present"])
def test_a_changed_small_array_is_named(tmp_path, name):
    _, store = linked(tmp_path)
    file = store.path / name / "c" / "0"
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)
    refused(StoreError, f"{name}/c/0: expected CRC-32", store.columns, mapped=False)


@examples(30)
@given(st.sampled_from(["linked_rows", "present", "n_codes"]), st.data())
def test_sealed_garbage_is_a_store_error_or_can_be_read(tmp_path_factory, name, data):
    """Codes are then of no rows that there are, or of none: never of memory beyond the file."""
    _, store = linked(tmp_path_factory.mktemp("sealed"))
    file = store.path / name / "c" / "0"
    kept = file.read_bytes()
    garbage = data.draw(st.binary(min_size=len(kept), max_size=len(kept)))
    start = data.draw(st.integers(0, len(kept)))
    garbage = kept[:start] + garbage[start:]
    file.write_bytes(garbage)
    checksums = store.manifest.checksums | {f"{name}/c/0": zlib.crc32(garbage)}
    make_group(store.path, replace(store.manifest, checksums=checksums))
    with contextlib.suppress(StoreError):
        found = Store.open(store.path)
        found.verify()
        codes_of(found, mapped=True)
        Store.open(store.path).values().read_chunk(0)
        srs_ooc.run(store.path, out=store.path.parent / "s.run", iterations=3, pairs="none")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"path": 3}', '{"path": "x", "mtime_ns": "y"}'])
def test_a_damaged_link_is_named(tmp_path, text):
    _, store = linked(tmp_path)
    (store.path / "link.json").write_text(text)
    refused(StoreError, r"link\.json: expected where the \.bed file is", Store.open, store.path)


@pytest.mark.parametrize(
    "options",
    [
        {"ignore": "rs3"}, {"target": "rs3"}, {"kinds": {"rs3": "boolean"}},
        {"code_dtype": "uint16"}, {"keep_values": False},
    ],
    ids=str,
)  # fmt: skip
def test_what_would_change_the_columns_is_refused(tmp_path, options):
    with pytest.raises(UsageError, match="expected all variants as they are in the file"):
        srs_ooc.ingest(write_bed(tmp_path), tmp_path / "l.zarr", link=True, **options)


def test_other_tables_cannot_be_linked_nor_pieces_nor_at_a_url(tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("a,b,y\n1,2,0\n2,1,1\n" * 5)
    for source, store, message in (
        (table, tmp_path / "l.zarr", r"expected a \.bed file of PLINK 1, found"),
        ([table, table], tmp_path / "l.zarr", "expected one table, found pieces"),
        (write_bed(tmp_path), "memory://bucket/l.zarr", "expected a store on this disk"),
    ):
        refused(UsageError, message, srs_ooc.ingest, source, store, link=True)


def test_some_of_its_features_are_exported_as_a_store_of_its_own(tmp_path):
    _, store = linked(tmp_path)
    srs_ooc.run(store.path, out=tmp_path / "l.run", iterations=3)
    here("export", tmp_path / "l.run", tmp_path / "e.zarr", "--top", N_VARIANTS)
    made = Store.open(tmp_path / "e.zarr")
    assert made.manifest.n_linked_rows == 0
    assert made.verify().files["codes"] == 1
    order = [NAMES.index(name) for name in made.names]
    np.testing.assert_array_equal(codes_of(made), codes_of(store)[order])
    assert made.n_rows == len(STATUS)


@pytest.mark.slow
def test_ingest_and_run_stay_under_the_smallest_caps_that_they_name(tmp_path):
    """Where rows are left out, a variant takes more to read than its codes."""
    rng = np.random.default_rng(0)
    dosages = rng.integers(0, 3, (4000, 300)).astype(float)
    fam = [f"F I{i} 0 0 1 {(1, 2, -9)[i % 3]}" for i in range(4000)]
    path = write_bed(tmp_path, dosages, [f"rs{j}" for j in range(300)], fam)
    check_least_cap("ingest", path, tmp_path / "l.zarr", "--link", too_small=5)
    check_least_cap("ingest", path, tmp_path / "p.zarr", too_small=5)
    run = ("run", tmp_path / "l.zarr", "--iterations", 30, "--pairs", "none")
    check_least_cap(*run, too_small=5)
