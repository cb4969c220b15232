"""Documents with figures, kept in the environment of Sphinx, for builds that read only what is out of date."""

from __future__ import annotations

from collections.abc import Iterable, Set

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from stepper import __version__


class FigureDocuments:
    """Names of documents with figures, and of those with one that could not be drawn; `version` is ours."""

    def __init__(self) -> None:
        self.version = __version__
        self.having: set[str] = set()
        self.failed: set[str] = set()


def documents_of(env: BuildEnvironment) -> FigureDocuments:
    """Return those of an environment."""
    if not hasattr(env, "stepper_documents"):
        env.stepper_documents = FigureDocuments()
    found: FigureDocuments = env.stepper_documents
    return found


def outdated(
    _app: Sphinx, env: BuildEnvironment, _added: Set[str], _changed: Set[str], _removed: Set[str]
) -> list[str]:
    """Return documents that are read again although no file of theirs changed.

    That is where a figure could not be drawn, so that each build says so; and all, where they were drawn by another
    version.
    """
    documents = documents_of(env)
    found = documents.failed if documents.version == __version__ else documents.having
    documents.version = __version__
    return sorted(found)


def purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget a document that is read again or is gone."""
    documents_of(env).having.discard(docname)
    documents_of(env).failed.discard(docname)


def merge(_app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment) -> None:
    """Take what another process has read."""
    read, names = documents_of(other), set(docnames)
    documents_of(env).having |= read.having & names
    documents_of(env).failed |= read.failed & names
