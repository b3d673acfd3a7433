"""One test for many files: it fails once, and names all that are at fault."""


def assert_none(faults):
    """Fail with a line for each key of ``faults`` that has any."""
    found = {key: found for key, found in faults.items() if found}
    assert not found, "\n" + "\n".join(f"{key}: {found[key]}" for key in sorted(found))
