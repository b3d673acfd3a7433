"""Libraries held to one thread, so that sums do not depend on the cores of a machine."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

_own = threading.local()


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold the libraries that are loaded to one thread each in the block; hush their warnings.

    BLAS counts its threads for the whole process, OpenMP for each thread that calls it: workers
    call :func:`pin_worker` besides. Warnings of models, such as of steps that did not converge,
    would come once a subspace.
    """
    # Not around each fit: filters and BLAS are the process's, and workers would undo each other's.
    with ThreadpoolController().limit(limits=1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(sklearn|scipy|numpy)(\.|$)")
        from sklearn.exceptions import ConvergenceWarning

        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def pin_worker() -> None:
    """Hold OpenMP to one thread where this thread calls it; once a thread."""
    if not getattr(_own, "is_pinned", False):
        ThreadpoolController().select(user_api="openmp").limit(limits=1)
        _own.is_pinned = True
