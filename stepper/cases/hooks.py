"""Listening to the calls of OpenVINO's Python interface: what goes into each at the moment of the call, what comes out.

The classes of `openvino` get other methods while somebody listens, and their own back when nobody does. All ways into a
call prepare its inputs with one function, `_data_dispatch`: behind it the tensors are there that the call will see,
also those that a request was given before, and they are copied before the application can fill its arrays again.
What comes out is looked at where the application learns that it is there (`infer` and `wait` return, all of a queue is
done), at the latest before the request is used again. In `AsyncInferQueue` nothing of Python need run for that, and no
callback is put in the place of another one.
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

from stepper.cases.sources import ModelSource
from stepper.element_types import Array
from stepper.errors import UsageError
from stepper.openvino.tensors import to_array

if TYPE_CHECKING:
    import openvino

_SEAM: Final = "_data_dispatch"
_PLAIN: Final = frozenset({"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
"""Element types of which a tensor shows its numbers as they are."""


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


class _Known:
    """Facts of a compiled model, a request or a queue."""

    def __init__(self, source: ModelSource | None, fresh: Mapping[str, Array] | None) -> None:
        self.source, self.fresh = source, fresh
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.calls: dict[int, int] = {}
        self.pending: dict[int, ObservedCall] = {}
        self.streams: dict[int, int] = {}


class CallHooks:
    """The methods of `openvino` in place of which others stand while there is an observer."""

    def __init__(self, observer: CallObserver, model: Any = None) -> None:
        """Prepare; `model` is that of compiled models of which nobody knows from what they were made."""
        self._observer, self._model = observer, model
        self._scope = _Preparation()
        self._known: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()
        self._origins: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._replaced: list[tuple[Any, str, Any, bool]] = []
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
        replace = self._replace
        replace(api, _SEAM, self._dispatched)
        replace(api.InferRequest, "infer", self._inferred)
        replace(api.InferRequest, "start_async", self._started)
        replace(api.InferRequest, "wait", self._waited)
        replace(api.InferRequest, "wait_for", self._waited)
        replace(api.AsyncInferQueue, "__init__", self._queue_made)
        replace(api.AsyncInferQueue, "start_async", self._started)
        replace(api.AsyncInferQueue, "wait_all", self._all_waited)
        replace(api.Core, "read_model", self._read)
        replace(api.Core, "compile_model", self._compiled)
        replace(api.CompiledModel, "create_infer_request", self._request_made)
        replace(api.InferRequest, "get_compiled_model", self._compiled_of)

    def end(self) -> None:
        """Look at what is done and was not looked at yet, and listen no more."""
        with self._quietly():
            with self._lock:
                owners = [(owner, known) for owner, known in self._known.items() if known.pending]
            for owner, known in owners:
                for place in list(known.pending):
                    if self._wait_for(self._request_of(owner, place), 0):
                        self._settle(owner, place)
        for holder, name, old, was_own in reversed(self._replaced):
            if was_own:
                setattr(holder, name, old)
            else:
                delattr(holder, name)
        self._replaced.clear()

    def _replace(self, holder: Any, name: str, made: Callable[..., Any]) -> None:
        old, was_own = getattr(holder, name), name in vars(holder)

        @functools.wraps(old)
        def method(*arguments: Any, **options: Any) -> Any:
            return made(old, *arguments, **options)

        self._replaced.append((holder, name, old, was_own))
        setattr(holder, name, method)

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
            self._know(request, self._source(compiled), _states(request))
        return request

    def _queue_made(self, old: Callable[..., Any], queue: Any, model: Any, *rest: Any, **options: Any) -> None:
        old(queue, model, *rest, **options)
        with self._quietly():
            self._know(queue, self._source(model), _states(queue[0]))

    def _know(self, owner: Any, source: ModelSource | None, fresh: Mapping[str, Array] | None) -> _Known:
        with self._lock:
            known = self._known[owner] = _Known(source, fresh)
        return known

    def _of(self, owner: Any) -> _Known:
        with self._lock:
            known = self._known.get(owner)
        return self._know(owner, self._source(owner), None) if known is None else known

    def _source(self, owner: Any) -> ModelSource | None:
        with self._lock:
            known = self._known.get(owner)
            if known is None and self._model is not None and not isinstance(self._model, ModelSource):
                self._model = _source_of(self._model)
        source = None if known is None else known.source
        return self._model if source is None else source

    # --- calls ---------------------------------------------------------------------------------------------------

    def _inferred(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        with self._prepared_by(request):
            found = old(request, *arguments, **options)
        with self._quietly():
            self._settle(request, 0, is_done=True)
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
                    self._close(owner, 0, None, str(error))
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
            self._settle(owner, place)
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
            known.inputs, known.outputs = _names(request.model_inputs), _names(request.model_outputs)
        states, fresh = _states(request), known.fresh or {}
        changed = {name: value for name, value in states.items() if not _are_same(value, fresh.get(name))}
        way = place if states else 0  # variables are of one request; without any a queue is one stream
        if way not in known.streams:
            known.streams[way] = next(self._streams)
        inputs = _inputs(request, given, known.inputs)
        call = ObservedCall(number, request_call, inputs, changed, known.source, known.streams[way])
        known.pending[place] = call
        self._observer.begun(call)

    def _waited(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        try:
            is_done = old(request, *arguments, **options)
        except Exception as error:
            with self._quietly():
                self._close(request, 0, None, str(error))
            raise
        with self._quietly():
            if is_done is not False:
                self._settle(request, 0, is_done=True)
        return is_done

    def _all_waited(self, old: Callable[..., Any], queue: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return old(queue, *arguments, **options)
        finally:
            with self._quietly():
                for place in sorted(self._of(queue).pending):
                    self._settle(queue, place)

    def _request_of(self, owner: Any, place: int) -> Any:
        return owner[place] if isinstance(owner, self._queue) else owner

    def _settle(self, owner: Any, place: int, *, is_done: bool = False) -> None:
        """Look at what the last call of a request gave, which is done; where it failed, waiting says so."""
        if place not in self._of(owner).pending:
            return
        request, error = self._request_of(owner, place), ""
        if not is_done:
            try:
                self._wait(request)
            except RuntimeError as failure:
                error = str(failure)
        self._close(owner, place, None if error else request, error)

    def _close(self, owner: Any, place: int, request: Any, error: str) -> None:
        known = self._of(owner)
        call = known.pending.pop(place, None)
        if call is not None:
            self._observer.ended(call, None if request is None else _outputs(request, known.outputs), error)


def _source_of(model: Any) -> ModelSource:
    """Return the source for a model that the user names: a path, or an openvino.Model."""
    return ModelSource(model if hasattr(model, "clone") else None, None if hasattr(model, "clone") else model)


def _names(ports: Any) -> list[str]:
    """Return the name of each port; of one without a name, or with one that another has, its position."""
    names = [port.any_name if port.names else str(index) for index, port in enumerate(ports)]
    return [name if names.index(name) == index else str(index) for index, name in enumerate(names)]


def _inputs(request: openvino.InferRequest, given: Any, names: list[str]) -> dict[str, Array]:
    """Return copies of the inputs that a call will see: what it is `given`, and what the request has already."""
    tensors = {
        key if isinstance(key, int) else _index_of(request.model_inputs, key): tensor
        for key, tensor in (given.items() if isinstance(given, Mapping) else [(0, given)])
    }
    return {
        name: to_array(tensors[index] if index in tensors else request.get_input_tensor(index))
        for index, name in enumerate(names)
    }


def _index_of(ports: Any, key: Any) -> int:
    """Return the position of an input that is named, or given as a port."""
    return next(index for index, port in enumerate(ports) if key in (port, *port.names))


def _outputs(request: openvino.InferRequest, names: list[str]) -> dict[str, Array]:
    """Return the outputs of a request, as they are now: numbers share its memory where they can."""
    tensors = {name: request.get_output_tensor(index) for index, name in enumerate(names)}
    return {
        name: tensor.data if tensor.element_type.get_type_name() in _PLAIN else to_array(tensor)
        for name, tensor in tensors.items()
    }


def _states(request: openvino.InferRequest) -> dict[str, Array]:
    """Return copies of the variables of a request."""
    return {state.name: to_array(state.state) for state in request.query_state()}


def _are_same(one: Array, other: Array | None) -> bool:
    if other is None or one.shape != other.shape or one.dtype != other.dtype:
        return False
    return one.tobytes() == other.tobytes()
