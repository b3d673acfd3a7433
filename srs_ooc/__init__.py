"""Feature selection for tables too wide for memory.

Sequential Random Subspace (Sutera et al., "Random Subspace with Trees for Feature Selection Under
Memory Constraints") over an on-disk column store, under a memory cap, in runs that can be killed
and resumed.
"""

__version__ = "0.1.0"
