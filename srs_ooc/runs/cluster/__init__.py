"""Work on other machines: what is ordered, the work there, and the way by Dask.

Nothing of Dask is imported but in :mod:`srs_ooc.runs.cluster.dask_clients`, which is loaded only
where a cluster is asked for, and in a worker.
"""
