"""What makes Snakemake's planning cheaper without changing what is planned.

Every call plans before it does anything, and tests call hundreds of times.
"""

import functools
import gc


def set_aside() -> None:
    """Take everything that is loaded so far out of the search for garbage.

    Modules stay until the process ends, and Snakemake's plugins load pandas: going through all of it again
    and again while jobs are made took a quarter of a plan's time.
    """
    gc.freeze()


def remember_signatures() -> None:
    """Let Snakemake look once at the parameters of a function of wildcards, not several times for every job.

    Snakemake finds out 18,000 times what 600 jobs of the paper's run want to know of their functions.
    ``get_function_params`` is no public interface: where a Snakemake has none, it plans as it always does.
    """
    from snakemake import common, rules

    plain = getattr(common, "get_function_params", None)
    if plain is None or getattr(rules, "get_function_params", None) is not plain:
        return
    remembered = functools.lru_cache(maxsize=10_000)(plain)
    common.get_function_params = rules.get_function_params = remembered
