"""Executors for machines that have none of their own: Ray's tasks as those of `concurrent.futures`."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from gpucost.errors import UsageError


class RayExecutor(Executor):
    """Runs what is submitted as tasks of Ray: of the cluster that `ray.init` connected to, else of this machine.

    Tasks whose worker dies are done again by another one, three times at most. `options` are those of `ray.remote`,
    such as `num_cpus=1` or `resources={"spot": 1}`.

        ray.init("auto")
        gpucost.sweep(model="8b,70b", gpus="8:512:x2", tokens="100b", executor=RayExecutor())
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ImportError:
            raise UsageError("RayExecutor needs Ray: pip install ray, here and on the workers.") from None
        if not ray.is_initialized():
            ray.init()
        self._run: Any = ray.remote(max_retries=_RETRIES, **options)(_called)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have Ray run a function and return its future."""
        future: Future[Any] = self._run.remote(fn, args, kwargs).future()
        return future


_RETRIES = 3


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
