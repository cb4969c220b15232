"""Listening to the calls of OpenVINO's Python interface: what goes into each at the moment of the call, what comes out.

The classes of `openvino` get other methods while somebody listens, and their own back when nobody does. All ways into a
call prepare its inputs with one function, `_data_dispatch`: behind it the tensors are there that the call will see,
also those that a request was given before, and they are copied before the application can fill its arrays again.
What comes out is looked at where the application learns that it is there: `infer` and `wait` return, all of a queue is
done, before a callback of the application runs; at the latest before the request is used again. Where there is no
callback, none is set: then nothing of Python need run for a call in `AsyncInferQueue`. No request is kept alive: one of
a queue must not outlive it.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from stepper.cases.replacing import ReplacedMethods
from stepper.cases.request_values import memory_of, names_of, outputs_of, states_of, tensors_of
from stepper.cases.sources import ModelSource
from stepper.element_types import Array, have_same_bits
from stepper.errors import UsageError
from stepper.openvino.tensors import to_array

if TYPE_CHECKING:
    import openvino

_SEAM: Final = "_data_dispatch"


class ObservedCall(NamedTuple):
    """A call that has begun: copies of its inputs, and of the variables with which it began, by name.

    A variable is left out where the request has what a new one has: then the model says with what it begins. `number`
    counts the calls of the process from 1, `request_call` those of the request. Of a `stream` they follow each other.
    """

    number: int
    request_call: int
    inputs: Mapping[str, Array]
    states: Mapping[str, Array]
    source: ModelSource | None
    stream: int = 0


class CallObserver(Protocol):
    """Hears of calls, from any thread. What it raises is told to `failed`; nothing of it reaches the application."""

    @property
    def wants_calls(self) -> bool:
        """True if calls are to be copied."""

    def counted(self) -> int:
        """A call begins: return its number, from 1."""

    def begun(self, call: ObservedCall) -> None:
        """A call has its inputs, and is about to run."""

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None, error: str) -> None:
        """A call has come to its end, with outputs by name, which are valid until this returns, or with an error."""

    def failed(self, error: Exception) -> None:
        """Something went wrong in here."""


class _Preparation(threading.local):
    """The request or queue that prepares inputs at the moment, in this thread."""

    owner: Any = None


class _Pending(NamedTuple):
    """A call that is under way, and in a queue where in memory its inputs are."""

    call: ObservedCall
    memory: tuple[int, ...]


class _Known:
    """Facts of a compiled model, a request or a queue.

    `pending` are calls by the position of their request in the queue, 0 without one.
    """

    def __init__(self, source: ModelSource | None, fresh: Mapping[str, Array] | None, owner: weakref.ref[Any]) -> None:
        self.source, self.fresh, self.owner = source, fresh, owner
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.calls: dict[int, int] = {}
        self.pending: dict[int, _Pending] = {}
        self.streams: dict[int, int] = {}


class CallHooks:
    """The methods of `openvino` in place of which others stand while there is an observer."""

    def __init__(self, observer: CallObserver, model: Any = None) -> None:
        """Prepare; `model` is that of compiled models of which nobody knows from what they were made."""
        self._observer, self._model = observer, model
        self._scope = _Preparation()
        self._known: dict[int, _Known] = {}  # by the id of what is alive
        self._origins: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._methods = ReplacedMethods()
        self._streams = itertools.count()
        self.read_model: Callable[..., Any] | None = None

    # --- in place of what ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Listen. UsageError where this OpenVINO is built in another way."""
        from openvino import _ov_api as api

        if not hasattr(api, _SEAM):
            import openvino

            raise UsageError(
                f"calls of OpenVINO {openvino.get_version()} cannot be captured: it prepares inputs otherwise"
            )
        self.read_model = api.Core.read_model
        self._request, self._queue = api.InferRequest, api.AsyncInferQueue
        self._wait, self._wait_for = api.InferRequest.wait, api.InferRequest.wait_for
        replace = self._methods.replace
        try:
            replace(api, _SEAM, self._dispatched)
            replace(api.InferRequest, "infer", self._inferred)
            replace(api.InferRequest, "start_async", self._started)
            replace(api.InferRequest, "wait", self._waited)
            replace(api.InferRequest, "wait_for", self._waited)
            replace(api.AsyncInferQueue, "__init__", self._queue_made)
            replace(api.AsyncInferQueue, "start_async", self._started)
            replace(api.InferRequest, "set_callback", self._callback_set)
            replace(api.AsyncInferQueue, "wait_all", self._all_waited)
            replace(api.AsyncInferQueue, "set_callback", self._callback_set)
            replace(api.Core, "read_model", self._read)
            replace(api.Core, "compile_model", self._compiled)
            replace(api.CompiledModel, "create_infer_request", self._request_made)
            replace(api.InferRequest, "get_compiled_model", self._compiled_of)
        except BaseException:
            self._methods.put_back()
            raise

    def end(self) -> None:
        """Look at what is done and was not looked at yet, and listen no more."""
        with self._lock:
            found = list(self._known.values())
        for known in found:
            for place in list(known.pending):
                with self._quietly():
                    request = self._request_of(known, place)
                    if request is not None and self._wait_for(request, 0):
                        self._settle(known, place)
        self._methods.put_back()
        with self._lock:
            self._known.clear()

    def forked(self) -> None:
        """Begin anew in a process that was forked: the calls that are under way are those of the other one."""
        self._lock = threading.RLock()
        for known in self._known.values():
            known.pending.clear()

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        """Whatever goes wrong in here is nothing of the application's."""
        try:
            yield
        except Exception as error:
            self._observer.failed(error)

    # --- models, requests, queues --------------------------------------------------------------------------------

    def _read(self, old: Callable[..., Any], core: Any, model: Any, *rest: Any, **options: Any) -> Any:
        found = old(core, model, *rest, **options)
        with self._quietly(), self._lock:
            if isinstance(model, str | PathLike):
                self._origins[found] = model
        return found

    def _compiled(self, old: Callable[..., Any], core: Any, model: Any, *rest: Any, **options: Any) -> Any:
        from openvino import Model

        source = None
        with self._quietly():
            if isinstance(model, Model):
                source = ModelSource(model, self._origins.get(model))
            elif hasattr(model, "clone"):  # what `openvino.compile_model` hands on
                source = ModelSource(Model(model), None)
            else:
                source = ModelSource(None, model, options.get("weights"))
        compiled = old(core, model, *rest, **options)
        with self._quietly():
            if source is not None:
                device = rest[0] if rest else options.get("device_name")
                source.compiled(compiled, device)
            self._know(compiled, source, None)
        return compiled

    def _compiled_of(self, old: Callable[..., Any], request: Any) -> Any:
        compiled = old(request)
        with self._quietly():
            self._know(compiled, self._source(request), None)
        return compiled

    def _request_made(self, old: Callable[..., Any], compiled: Any) -> Any:
        request = old(compiled)
        with self._quietly():
            self._know(request, self._source(compiled), states_of(request))
        return request

    def _queue_made(self, old: Callable[..., Any], queue: Any, model: Any, *rest: Any, **options: Any) -> None:
        old(queue, model, *rest, **options)
        with self._quietly():
            self._know(queue, self._source(model), states_of(queue[0]))

    def _know(self, owner: Any, source: ModelSource | None, fresh: Mapping[str, Array] | None) -> _Known:
        key = id(owner)
        known = _Known(source, fresh, weakref.ref(owner, lambda _gone: self._forget(key)))
        with self._lock:
            self._known[key] = known
        return known

    def _forget(self, key: int) -> None:
        with self._lock:
            self._known.pop(key, None)

    def _of(self, owner: Any) -> _Known:
        known = self._found(owner)
        return self._know(owner, self._source(owner), None) if known is None else known

    def _found(self, owner: Any) -> _Known | None:
        with self._lock:
            known = self._known.get(id(owner))
        return known if known is not None and known.owner() is owner else None

    def _source(self, owner: Any) -> ModelSource | None:
        with self._lock:
            known = self._found(owner)
            if known is None and self._model is not None and not isinstance(self._model, ModelSource):
                self._model = _source_of(self._model)
        source = None if known is None else known.source
        return self._model if source is None else source

    # --- calls ---------------------------------------------------------------------------------------------------

    def _inferred(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        with self._prepared_by(request):
            found = old(request, *arguments, **options)
        with self._quietly():
            self._settle(self._of(request), 0, is_done=True)
        return found

    def _started(self, old: Callable[..., Any], owner: Any, *arguments: Any, **options: Any) -> None:
        with self._prepared_by(owner):
            old(owner, *arguments, **options)

    @contextmanager
    def _prepared_by(self, owner: Any) -> Iterator[None]:
        """Know who prepares inputs. A request that fails where it is called has come to its end."""
        outer, self._scope.owner = self._scope.owner, owner
        try:
            yield
        except Exception as error:
            with self._quietly():
                if not isinstance(owner, self._queue):
                    self._close(self._of(owner), 0, None, str(error))
            raise
        finally:
            self._scope.owner = outer

    def _dispatched(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        owner, place = self._scope.owner, 0
        with self._quietly():
            if owner is None:
                owner = request
            elif isinstance(owner, self._queue):
                place = owner.get_idle_request_id()  # the one that was chosen: it is taken when it starts
            self._settle(self._of(owner), place)
        given = old(request, *arguments, **options)
        with self._quietly():
            self._begun(owner, place, request, given)
        return given

    def _begun(self, owner: Any, place: int, request: Any, given: Any) -> None:
        known = self._of(owner)
        number, request_call = self._observer.counted(), known.calls.get(place, 0) + 1
        known.calls[place] = request_call
        if not self._observer.wants_calls:
            return
        if not known.inputs:
            known.inputs, known.outputs = names_of(request.model_inputs), names_of(request.model_outputs)
        states, fresh = states_of(request), known.fresh or {}
        changed = {
            name: value for name, value in states.items() if name not in fresh or not have_same_bits(value, fresh[name])
        }
        way = place if states else 0  # variables are of one request; without any a queue is one stream
        if way not in known.streams:
            known.streams[way] = next(self._streams)
        tensors = tensors_of(request, given)
        inputs = {name: to_array(tensor) for name, tensor in zip(known.inputs, tensors, strict=True)}
        call = ObservedCall(number, request_call, inputs, changed, known.source, known.streams[way])
        known.pending[place] = _Pending(call, memory_of(tensors) if isinstance(owner, self._queue) else ())
        self._observer.begun(call)

    def _waited(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        try:
            is_done = old(request, *arguments, **options)
        except Exception as error:
            with self._quietly():
                self._close(self._of(request), 0, None, str(error))
            raise
        with self._quietly():
            if is_done is not False:
                self._settle(self._of(request), 0, is_done=True)
        return is_done

    def _all_waited(self, old: Callable[..., Any], queue: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return old(queue, *arguments, **options)
        finally:
            with self._quietly():
                known = self._of(queue)
                for place in sorted(known.pending):
                    self._settle(known, place)

    def _callback_set(self, old: Callable[..., Any], owner: Any, *arguments: Any, **options: Any) -> Any:
        if arguments:
            arguments = (self._behind_a_look(owner, arguments[0]), *arguments[1:])
        elif "callback" in options:
            options["callback"] = self._behind_a_look(owner, options["callback"])
        return old(owner, *arguments, **options)

    def _behind_a_look(self, owner: Any, callback: Any) -> Any:
        """Return a callback that looks at what came out before that of the application can change it."""
        if not callable(callback):
            return callback
        known, is_queue = self._of(owner), isinstance(owner, self._queue)

        @functools.wraps(callback)
        def looked_and_called(*given: Any) -> Any:
            with self._quietly():
                request = given[0] if is_queue else known.owner()
                place = _place_of(known, request) if is_queue else 0
                if self._methods.are_in_place and request is not None and place is not None:
                    self._close(known, place, request, "")
            return callback(*given)

        return looked_and_called

    def _request_of(self, known: _Known, place: int) -> Any:
        """Return a request that has not gone yet; else None."""
        owner = known.owner()
        return owner[place] if isinstance(owner, self._queue) else owner

    def _settle(self, known: _Known, place: int, *, is_done: bool = False) -> None:
        """Look at what the last call of a request gave, which is done; where it failed, waiting says so."""
        request, error = self._request_of(known, place) if place in known.pending else None, ""
        if request is None:
            return
        if not is_done:
            try:
                self._wait(request)
            except RuntimeError as failure:
                error = str(failure)
        self._close(known, place, None if error else request, error)

    def _close(self, known: _Known, place: int, request: Any, error: str) -> None:
        pending = known.pending.pop(place, None)
        if pending is not None:
            self._observer.ended(pending.call, None if request is None else outputs_of(request, known.outputs), error)


def _source_of(model: Any) -> ModelSource:
    """Return the source for a model that the user names: a path, or an openvino.Model."""
    return ModelSource(model if hasattr(model, "clone") else None, None if hasattr(model, "clone") else model)


def _place_of(known: _Known, request: openvino.InferRequest) -> int | None:
    """Return the position in its queue of a request that has ended; None where it cannot be told.

    A callback is given another object than the queue has. Both have the same inputs, and no other request has these,
    but for calls that share all their arrays.
    """
    memory = memory_of(tensors_of(request, {}))
    places = [place for place, pending in list(known.pending.items()) if pending.memory == memory]
    return places[0] if len(places) == 1 else None
