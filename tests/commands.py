"""Commands of the product run in the process of the tests: nothing is imported anew for each."""

import io
import subprocess
import sys
import warnings

import pytest

from gpucost.cli import main


def in_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command as its process does, but in this one: exit code, stdout and stderr."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["gpucost", *arguments])
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        with pytest.raises(SystemExit) as ended:
            main()
    said = [stream.buffer.getvalue().decode("utf-8") for stream in streams]
    return subprocess.CompletedProcess(arguments, ended.value.code or 0, *said)
