"""Parametric Random Subspace with the fused penalty on noisy digits (the paper's Section 3.3).

    python benchmarks/prs_smoothness.py [--smoothness 0 0.0001 0.001 0.01] [--seeds 3]

The fives and sixes of scikit-learn's bundled digits, 8 x 8 pixels of 0 to 16, with normal noise
added to each pixel; 120 images to train on, 60 held out for validation, the others to test. Each
seed has its own split and noise, the same for all strengths. Two folds, as in the paper.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import srs_ooc
from srs_ooc.samplers.prs_math import grid_of, roughness

N_TRAIN, N_VALID, SIZE = 120, 60, (8, 8)


def images_of(seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Return noisy fives and sixes, shuffled: (n, 64), and which are sixes."""
    rng = np.random.default_rng(seed)
    data = load_digits()
    chosen = rng.permutation(np.flatnonzero(np.isin(data.target, (5, 6))))
    pixels = data.data[chosen] + rng.normal(scale=noise, size=(len(chosen), 64))
    return pixels, data.target[chosen] == 6


def run_once(
    folder: Path, seed: int, noise: float, strength: float, epochs: int
) -> tuple[float, float, float]:
    """Return the accuracy on the test images, and the sums of |differences| and probabilities."""
    pixels, is_six = images_of(seed, noise)
    n_seen, store = N_TRAIN + N_VALID, folder / f"{seed}.zarr"
    if not store.exists():
        srs_ooc.ingest(pixels[:n_seen], store, target=is_six[:n_seen].astype(int))
    found = srs_ooc.run(
        store,
        out=folder / f"{seed}_{strength}.run",
        method="prs",
        folds=2,
        epochs=epochs,
        smoothness=strength,
        grid="x".join(map(str, SIZE)),
        validation_rows=[str(i + 1) for i in range(N_TRAIN, n_seen)],
        seed=seed,
        save_trees=True,
    )
    said = found.predict(pixels[n_seen:], kind="records")
    sixes = is_six[n_seen:]
    right = [row["prediction"] == str(int(six)) for row, six in zip(said, sixes, strict=True)]
    beta = np.zeros(64)
    for row in found.features("records"):
        beta[int(row["name"].lstrip("fx"))] = row["score"]
    return (
        float(np.mean(right)),
        roughness(beta, grid_of(SIZE, np.arange(64), None)),
        float(beta.sum()),
    )


def main() -> None:
    """Run every strength on every seed; print a line for each strength."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoothness", type=float, nargs="+", default=[0.0, 1e-4, 1e-3, 1e-2])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=500)
    parser.add_argument("--noise", type=float, default=8.0, help="standard deviation")
    given = parser.parse_args()
    print("smoothness  accuracy (each seed)  sum of |differences|  sum  processor seconds")
    with tempfile.TemporaryDirectory() as name:
        for strength in given.smoothness:
            begun = time.process_time()
            seeds = range(given.seeds)
            runs = [run_once(Path(name), s, given.noise, strength, given.epochs) for s in seeds]
            accuracy, rough, total = np.mean(runs, axis=0)
            each = " ".join(f"{run[0]:.3f}" for run in runs)
            print(
                f"{strength:10g}  {accuracy:.3f} ({each})  {rough:.2f}  {total:.2f}  "
                f"{time.process_time() - begun:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
