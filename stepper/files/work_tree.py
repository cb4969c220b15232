"""The files of a work tree of git that differ from a commit. git is asked, without a shell, and for a limited time."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from stepper.errors import UsageError
from stepper.wording import printable

_SECONDS = 60.0
_SAFE = ("-c", "core.fsmonitor=false", "--no-optional-locks", "--no-pager")
"""Programs that the settings of a repository name are not started, and its index is not written."""
_NO_TRANSPORT = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""git fetches nothing, because the repository could name the program that fetches."""
_FILES_ALONE = ("--no-ext-diff", "--no-textconv", "--no-renames", "--ignore-submodules", "--diff-filter=d")


def changed_files(reference: str, folder: Path) -> tuple[Path, ...]:
    """Return the files of the work tree around a folder that differ from a commit, in the order of their names.

    They are given relative to the folder. New files that git does not ignore are among them; deleted ones are not, nor
    are links that lead out of the work tree.
    Where nothing is committed yet, all files differ from HEAD. Raises UsageError where there is no work tree, no such
    commit or no git, and where git does not answer.
    """
    found = _asked(folder, "rev-parse", "--show-toplevel")
    if found.returncode:
        raise UsageError(f"--changed needs a work tree of git around {_named(folder)}; git says: {_complaint(found)}")
    top = Path(os.fsdecode(found.stdout.removesuffix(b"\n")))
    commit = _commit(reference, top)
    differing = _names(top, "diff", "--name-only", "-z", *_FILES_ALONE, commit, "--", settings=_without_filters(top))
    new = _names(top, "ls-files", "-z", "--others", "--exclude-standard")
    here, root = os.path.realpath(folder), os.path.realpath(top)
    inside = [name for name in {*differing, *new} if Path(os.path.realpath(top / name)).is_relative_to(root)]
    return tuple(Path(os.path.relpath(top / name, here)) for name in sorted(inside))


def _without_filters(top: Path) -> dict[str, str]:
    """Return variables that switch off the filters which the repository itself defines."""
    found = _asked(top, "config", "--show-scope", "--null", "--name-only", "--get-regexp", r"^filter\.")
    words = found.stdout.split(b"\0")
    scopes = zip(words[::2], words[1::2], strict=False)
    own = {os.fsdecode(name) for scope, name in scopes if scope not in (b"global", b"system")}
    filters = {name.rpartition(".")[0] for name in own}
    keys = [f"{name}.{key}" for name in sorted(filters) for key in ("clean", "process", "required")]
    values = {f"GIT_CONFIG_KEY_{number}": key for number, key in enumerate(keys)}
    return {"GIT_CONFIG_COUNT": str(len(keys)), **values, **{name.replace("KEY", "VALUE"): "" for name in values}}


def _commit(reference: str, top: Path) -> str:
    """Return the name of what to compare with as git's own digits, which no option of git looks like."""
    found = _asked(top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
    if not found.returncode:
        return found.stdout.decode("ascii").strip()
    if reference == "HEAD":  # nothing is committed yet: all is new against the tree without files
        return _asked(top, "hash-object", "-t", "tree", "--stdin").stdout.decode("ascii").strip()
    raise UsageError(f"--changed: git knows no commit '{printable(reference)}' here")


def _names(top: Path, *words: str, settings: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    found = _asked(top, *words, settings=settings)
    if found.returncode:
        raise UsageError(f"--changed: git {words[0]} failed in {_named(top)}: {_complaint(found)}")
    return [os.fsdecode(name) for name in found.stdout.split(b"\0") if name]


def _asked(
    folder: Path, *words: str, settings: Mapping[str, str] = MappingProxyType({})
) -> subprocess.CompletedProcess[bytes]:
    command = ["git", *_SAFE, "-C", str(folder), *words]
    try:
        environment = {**os.environ, **_NO_TRANSPORT, **settings}
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        raise UsageError(f"--changed: git {words[0]} did not answer within {_SECONDS:.0f} seconds") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--changed: git cannot be asked: {error}") from None


def _complaint(found: subprocess.CompletedProcess[bytes]) -> str:
    lines = found.stderr.decode("utf-8", "replace").splitlines() or [f"exit code {found.returncode}"]
    return printable(lines[0].removeprefix("fatal: "))


def _named(folder: Path) -> str:
    return printable(str(folder))
