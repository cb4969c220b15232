"""Observe the inputs and outputs of calls of OpenVINO's Python interface.

The hooks replace methods of the `openvino` classes while an observer exists, and restore them afterwards. Every call
prepares its inputs with one function, `_data_dispatch`. After this function the input tensors are final, including
tensors that a request got earlier. The hooks copy them before the application can refill its arrays. The hooks read
outputs as soon as the application can see them: when `infer` or `wait` returns, when a queue has finished, and before a
callback of the application runs. At the latest they read them before the request is used again. The hooks add no
callback of their own, so a call in `AsyncInferQueue` runs no extra Python. The hooks keep no request alive, because a
request of a queue must not outlive the queue.
"""

from __future__ import annotations

import functools
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import StrEnum
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stepper.cases.case import ModelSource
from stepper.element_types import Array, Ints
from stepper.errors import UsageError
from stepper.openvino.runtime import to_array

if TYPE_CHECKING:
    import openvino


# Methods of classes in place of which others stand for a while, also where several do and end in any order.


class ReplacedMethods:
    """Methods and functions that were replaced, until they are put back."""

    def __init__(self) -> None:
        self._replaced: list[_Replaced] = []

    @property
    def are_in_place(self) -> bool:
        """Return True from the first replacement until all are put back."""
        return bool(self._replaced)

    def replace(self, holder: Any, name: str, made: Callable[..., Any], part: str = "") -> None:
        """Replace a function of a class or module.

        The replacement's first argument is the original function.

        `part` is "fget" or "fset" of a property.
        """
        with _changing:
            old, was_own = getattr(holder, name), name in vars(holder)
            function = getattr(old, part) if part else old

            @functools.wraps(function)
            def method(*arguments: Any, **options: Any) -> Any:
                return made(function, *arguments, **options) if self._replaced else function(*arguments, **options)

            new: Any = method
            if part:
                parts = {"fget": old.fget, "fset": old.fset, "fdel": old.fdel, part: method}
                new = property(**parts, doc=old.__doc__)
            self._replaced.append(_Replaced(holder, name, new, old, was_own))
            setattr(holder, name, new)

    def put_back(self) -> None:
        """Put the old ones in their places."""
        replaced, self._replaced = self._replaced, []
        with _changing:
            for one in reversed(replaced):
                one.put_back()


class _Replaced(NamedTuple):
    """Hold a replacement method and the method that it replaces, own or inherited."""

    holder: Any
    name: str
    method: Any
    old: Any
    was_own: bool

    def put_back(self) -> None:
        """Put the old one in its place; where another one stands before ours now, that does it when it goes."""
        if vars(self.holder).get(self.name) is not self.method:
            _left[id(self.method)] = self
            return
        last = self
        while id(last.old) in _left:
            last = _left.pop(id(last.old))
        if last.was_own:
            setattr(self.holder, self.name, last.old)
        else:
            delattr(self.holder, self.name)


_changing = threading.Lock()
_left: dict[int, _Replaced] = {}
"""Methods by their id that are no longer in use and only call the method that they replaced."""


# Values of a request of OpenVINO: names, tensors, variables, and where in memory they are.

_PLAIN = frozenset({"f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"})
"""Element types whose numbers a tensor shows directly."""


def names_of(ports: Any) -> list[str]:
    """Return the name of each port; of one without a name, or with one that another has, its position."""
    names = [port.any_name if port.names else str(index) for index, port in enumerate(ports)]
    return [name if names.index(name) == index else str(index) for index, name in enumerate(names)]


def tensors_of(request: openvino.InferRequest, given: Any) -> list[Any]:
    """Return the inputs that a call will see: what it is `given`, and what the request has already."""
    ports = request.model_inputs
    tensors = {
        key if isinstance(key, int) else _index_of(ports, key): tensor
        for key, tensor in (given.items() if isinstance(given, Mapping) else [(0, given)])
    }
    return [tensors[index] if index in tensors else request.get_input_tensor(index) for index in range(len(ports))]


def _index_of(ports: Any, key: Any) -> int:
    """Return the position of an input that is named, or given as a port."""
    return next(index for index, port in enumerate(ports) if key in (port, *port.names))


def memory_of(tensors: Sequence[Any]) -> Ints:
    """Return where tensors are in memory; texts have no one place."""
    return tuple(one.data.ctypes.data if one.element_type.get_type_name() in _PLAIN else 0 for one in tensors)


def outputs_of(request: openvino.InferRequest, names: list[str]) -> dict[str, Array]:
    """Return the outputs of a request, as they are now: numbers share its memory where they can."""
    return {
        name: tensor.data if tensor.element_type.get_type_name() in _PLAIN else to_array(tensor)
        for name, tensor in zip(names, output_tensors_of(request), strict=True)
    }


def output_tensors_of(request: openvino.InferRequest) -> list[Any]:
    """Return the outputs of a request, in order."""
    return [request.get_output_tensor(index) for index in range(len(request.model_outputs))]


def states_of(states: Sequence[Any]) -> dict[str, Array]:
    """Return copies of the variables of a request, by name."""
    return {state.name: to_array(state.state) for state in states}


_SEAM = "_data_dispatch"


class ObservedCall(NamedTuple):
    """A call that has begun: copies of its inputs, and of the variables with which it began, by name.

    A variable is left out where the model says with what it begins: in the first call of a request, and after a reset.
    `number` counts the calls of the process from 1, `request_call` those of the request. Of a `stream` they come one
    behind the other; `follows`: this one has the variables that the one before has left.
    """

    number: int
    request_call: int
    inputs: Mapping[str, Array]
    states: Mapping[str, Array]
    source: ModelSource | None
    stream: int = 0
    follows: bool = True


class CallObserver(Protocol):
    """Receive calls from any thread.

    `failed` gets the observer's exceptions, which never reach the application.
    """

    @property
    def wants_calls(self) -> bool:
        """True if calls are to be copied."""

    def counted(self) -> int:
        """A call begins: return its number, from 1."""

    def begun(self, call: ObservedCall) -> None:
        """A call has its inputs, and is about to run."""

    def gone(self, stream: int) -> None:
        """No call will come of this stream any more: its request has gone."""

    def ended(self, call: ObservedCall, outputs: Mapping[str, Array] | None, error: str) -> None:
        """A call has come to its end, with outputs by name, which are valid until this returns, or with an error."""

    def failed(self, error: Exception) -> None:
        """Something went wrong in here."""


class _Pending(NamedTuple):
    """A call that is under way, and in a queue where in memory its inputs are."""

    call: ObservedCall
    memory: Ints


class _Touched(StrEnum):
    """Change of a variable by the application since the last call."""

    RESET = "reset"
    SET = "set"


class _Request:
    """Facts of one request: of a queue that at a position.

    `is_new`: it was made while somebody listens, and was not called yet. `touched` are the variables that the
    application reset or set since the last call; of "" all others.
    """

    def __init__(self, *, is_new: bool) -> None:
        self.is_new = is_new
        self.has_failed = False
        self.calls = 0
        self.pending: _Pending | None = None
        self.stream: int | None = None
        self.touched: dict[str, _Touched] = {}

    def reset(self) -> None:
        """All variables were reset."""
        self.touched = {"": _Touched.RESET}

    def begun_with(self, states: Mapping[str, Array]) -> tuple[dict[str, Array], bool]:
        """A call begins: return the variables with which it does, and whether they are those of the call before."""
        touched, self.touched = self.touched, {}
        untouched = _Touched.RESET if self.is_new else _Touched.SET
        kept = {
            name: value
            for name, value in states.items()
            if touched.get(name, touched.get("", untouched)) is _Touched.SET
        }
        follows = not states or (self.calls > 0 and not touched and not self.has_failed)
        self.is_new = self.has_failed = False
        self.calls += 1
        return kept, follows


class _Known:
    """Facts of a compiled model, a request or a queue; `places` are those of its requests, 0 without a queue."""

    def __init__(self, source: ModelSource | None, owner: weakref.ref[Any], *, is_new: bool) -> None:
        self.source, self.owner, self._is_new = source, owner, is_new
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.places: dict[int, _Request] = {}
        self.stream: int | None = None
        self.has_states = False

    def place(self, number: int) -> _Request:
        """Return what is known of a request."""
        return self.places.setdefault(number, _Request(is_new=self._is_new))

    @property
    def streams(self) -> list[int | None]:
        """Return the streams of calls that go through it."""
        return [self.stream, *(place.stream for place in list(self.places.values()))]

    @property
    def pending(self) -> list[int]:
        """Return the requests with a call that is under way."""
        return sorted(number for number, place in list(self.places.items()) if place.pending is not None)


class _GoneStream(NamedTuple):
    """Hold a stream whose request is gone.

    With a `source` the next new request of that model continues the stream.
    """

    stream: int
    source: ModelSource | None


class _Begun(NamedTuple):
    """A call that has its inputs, the one that was under way before it, and what to put back if it never runs.

    `call` is None where nothing is copied.
    """

    known: _Known
    number: int
    call: ObservedCall | None
    before: _Pending | None
    touched: dict[str, _Touched]


class _Preparation(threading.local):
    """The request or queue that prepares inputs at the moment, in this thread, and the call that it has begun.

    `looks`: the outputs of a request are looked at, which is nothing of the application's.
    """

    owner: Any = None
    begun: _Begun | None = None
    looks = False


class CallHooks:
    """Replace methods of `openvino` while there is an observer."""

    def __init__(self, observer: CallObserver, model: Any = None) -> None:
        """Prepare the hooks; `model` is the source of compiled models whose source is unknown."""
        self._observer, self._model = observer, model
        self._scope = _Preparation()
        self._known: dict[int, _Known] = {}  # by the id of what is alive
        self._origins: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._aliases: weakref.WeakKeyDictionary[Any, tuple[_Known, int]] = weakref.WeakKeyDictionary()
        self._variables: weakref.WeakKeyDictionary[Any, tuple[_Known, int]] = weakref.WeakKeyDictionary()
        self._lock = threading.RLock()
        self._methods = ReplacedMethods()
        self._streams = itertools.count()
        self._gone: deque[_GoneStream] = deque()  # until the next call: a request may go at any moment
        self._free: weakref.WeakKeyDictionary[ModelSource, list[int]] = weakref.WeakKeyDictionary()
        self.read_model: Callable[..., Any] | None = None

    # --- in place of what ----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Listen. UsageError where this OpenVINO is built in another way."""
        from openvino import _ov_api as api
        from openvino._pyopenvino import InferRequest as PlainRequest
        from openvino._pyopenvino import VariableState

        if not hasattr(api, _SEAM):
            import openvino

            raise UsageError(
                f"calls of OpenVINO {openvino.get_version()} cannot be captured: it prepares inputs in another way"
            )
        self.read_model = api.Core.read_model
        self._request, self._queue = api.InferRequest, api.AsyncInferQueue
        self._wait, self._wait_for = api.InferRequest.wait, api.InferRequest.wait_for
        self._query_state, self._queued = api.InferRequest.query_state, api.AsyncInferQueue.__getitem__
        methods: dict[Any, dict[str, Callable[..., Any]]] = {
            api: {_SEAM: self._dispatched},
            api.InferRequest: {
                "infer": self._inferred,
                "start_async": self._started,
                "wait": self._waited,
                "wait_for": self._waited,
                "set_callback": self._callback_set,
                "get_compiled_model": self._compiled_of,
                "query_state": self._states_asked,
                "reset_state": self._states_reset,
            },
            api.AsyncInferQueue: {
                "__init__": self._queue_made,
                "start_async": self._started,
                "wait_all": self._all_waited,
                "set_callback": self._callback_set,
                "__getitem__": self._request_taken,
                "__iter__": self._requests_taken,
            },
            api.Core: {"read_model": self._read, "compile_model": self._compiled},
            api.CompiledModel: {"create_infer_request": self._request_made},
            VariableState: {"reset": self._variable_reset},
        }
        try:
            for holder, of_holder in methods.items():
                for name, made in of_holder.items():
                    self._methods.replace(holder, name, made)
            self._methods.replace(VariableState, "state", self._variable_set, "fset")
            if self._model is not None:  # else nothing is wanted of requests that were there before
                for name in ("get_output_tensor", "get_tensor"):
                    self._methods.replace(PlainRequest, name, self._outputs_asked)
                for name in ("output_tensors", "results"):
                    self._methods.replace(PlainRequest, name, self._outputs_asked, "fget")
        except BaseException:
            self._methods.put_back()
            raise

    def end(self) -> None:
        """Look at what is done and was not looked at yet, and listen no more."""
        with self._lock:
            found = list(self._known.values())
        for known in found:
            for place in known.pending:
                with self._quietly():
                    self._settle(known, place)
        self._methods.put_back()
        with self._lock:
            self._known.clear()

    def forked(self) -> None:
        """Begin anew in a process that was forked: the calls that are under way are those of the other one."""
        self._lock = threading.RLock()
        for known in self._known.values():
            for place in known.places.values():
                place.pending = None

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
            self._know(compiled, source)
        return compiled

    def _compiled_of(self, old: Callable[..., Any], request: Any) -> Any:
        compiled = old(request)
        with self._quietly():
            self._know(compiled, self._source(request))
        return compiled

    def _request_made(self, old: Callable[..., Any], compiled: Any) -> Any:
        request = old(compiled)
        with self._quietly():
            self._know(request, self._source(compiled), is_new=True)
        return request

    def _queue_made(self, old: Callable[..., Any], queue: Any, model: Any, *rest: Any, **options: Any) -> None:
        old(queue, model, *rest, **options)
        with self._quietly():
            self._know(queue, self._source(model), is_new=True)

    def _request_taken(self, old: Callable[..., Any], queue: Any, place: int) -> Any:
        request = old(queue, place)
        with self._quietly():
            self._aliases[request] = self._of(queue), range(len(queue))[place]
        return request

    def _requests_taken(self, old: Callable[..., Any], queue: Any) -> Iterator[Any]:
        for place, request in enumerate(old(queue)):
            with self._quietly():
                self._aliases[request] = self._of(queue), place
            yield request

    def _know(self, owner: Any, source: ModelSource | None, *, is_new: bool = False) -> _Known:
        key = id(owner)
        known = _Known(source, weakref.ref(owner, lambda _gone: self._forget(key)), is_new=is_new)
        with self._lock:
            self._known[key] = known
        return known

    def _forget(self, key: int) -> None:
        with self._lock:
            known = self._known.pop(key, None)
        if known is not None:
            source = None if known.has_states else known.source
            self._gone += [_GoneStream(stream, source) for stream in known.streams if stream is not None]

    def _of(self, owner: Any) -> _Known:
        known = self._found(owner)
        return self._know(owner, self._source(owner)) if known is None else known

    def _at(self, owner: Any) -> tuple[_Known, int]:
        """Return the record and position of a request; a queue's request has the queue's record."""
        alias = self._aliases.get(owner)
        return (self._of(owner), 0) if alias is None or alias[0].owner() is None else alias

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

    # --- variables -----------------------------------------------------------------------------------------------

    def _states_asked(self, old: Callable[..., Any], request: Any) -> Any:
        states = old(request)
        with self._quietly():
            at = self._at(request)
            for state in states:
                self._variables[state] = at
        return states

    def _states_reset(self, old: Callable[..., Any], request: Any) -> Any:
        done = old(request)
        with self._quietly():
            known, number = self._at(request)
            known.place(number).reset()
        return done

    def _variable_reset(self, old: Callable[..., Any], state: Any) -> Any:
        done = old(state)
        with self._quietly():
            self._touch(state, _Touched.RESET)
        return done

    def _variable_set(self, old: Callable[..., Any], state: Any, value: Any) -> None:
        old(state, value)
        with self._quietly():
            self._touch(state, _Touched.SET)

    def _touch(self, state: Any, how: _Touched) -> None:
        """Note what became of a variable; of one that was asked for before the capture, in every request."""
        at = self._variables.get(state)
        with self._lock:
            every = [place for known in self._known.values() for place in known.places.values()]
        for place in every if at is None else [at[0].place(at[1])]:
            place.touched[state.name] = how

    # --- calls ---------------------------------------------------------------------------------------------------

    def _inferred(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        with self._prepared_by(request, runs=True):
            found = old(request, *arguments, **options)
        with self._quietly():
            self._settle(*self._at(request), is_done=True)
        return found

    def _started(self, old: Callable[..., Any], owner: Any, *arguments: Any, **options: Any) -> None:
        with self._prepared_by(owner):
            old(owner, *arguments, **options)

    @contextmanager
    def _prepared_by(self, owner: Any, *, runs: bool = False) -> Iterator[None]:
        """Know who prepares inputs. A call that fails within has come to its end; `runs`: perhaps while it ran."""
        scope = self._scope
        outer, scope.owner, scope.begun = (scope.owner, scope.begun), owner, None
        try:
            yield
        except Exception as error:
            with self._quietly():
                self._refused(owner, str(error), ran=runs)
            raise
        finally:
            scope.owner, scope.begun = outer

    def _refused(self, owner: Any, error: str, *, ran: bool) -> None:
        """A call has raised an error: while its inputs were prepared, or because the request has another one."""
        begun = self._scope.begun
        if begun is None:
            known, number = (self._of(owner), 0) if isinstance(owner, self._queue) else self._at(owner)
            call = ObservedCall(self._observer.counted(), known.place(number).calls + 1, {}, {}, known.source, -1)
            self._observer.ended(call, None, error)
            return
        place = begun.known.place(begun.number)
        place.pending = begun.before
        if begun.before is not None or not ran:  # the other one goes on, with the variables that this one did not get
            place.touched, place.calls = begun.touched, place.calls - 1
            place.is_new = place.is_new or not place.calls
        else:
            place.has_failed = True
        if begun.call is not None:
            self._observer.ended(begun.call, None, error)

    def _dispatched(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        owner = self._scope.owner
        at: tuple[_Known, int] | None = None
        with self._quietly():
            if isinstance(owner, self._queue):
                at = self._of(owner), owner.get_idle_request_id()  # the one that was chosen: it is taken when it starts
            else:
                at = self._at(request if owner is None else owner)
            self._settle(*at)
        given = old(request, *arguments, **options)
        with self._quietly():
            if at is not None:
                self._begun(*at, request, given)
        return given

    def _begun(self, known: _Known, number: int, request: Any, given: Any) -> None:
        place, is_queue = known.place(number), isinstance(known.owner(), self._queue)
        before, touched = place.pending, dict(place.touched)
        call_number = self._observer.counted()
        if not self._observer.wants_calls:
            place.begun_with({})
            self._scope.begun = _Begun(known, number, None, before, touched)
            return
        if not known.inputs:
            known.inputs, known.outputs = names_of(request.model_inputs), names_of(request.model_outputs)
        states = states_of(self._query_state(request))
        kept, follows = place.begun_with(states)
        tensors = tensors_of(request, given)
        inputs = {name: to_array(tensor) for name, tensor in zip(known.inputs, tensors, strict=True)}
        stream = self._stream_of(known, place, has_states=bool(states))
        call = ObservedCall(call_number, place.calls, inputs, kept, known.source, stream, follows)
        place.pending = _Pending(call, memory_of(tensors) if is_queue else ())
        self._scope.begun = _Begun(known, number, call, before, touched)
        self._observer.begun(call)

    def _stream_of(self, known: _Known, place: _Request, *, has_states: bool) -> int:
        """Return the number of a stream of calls: variables are of one request; without any a queue is one stream.

        Without any, also requests that are made for one call each, one after the other, are one.
        """
        of_stream, known.has_states = place if has_states else known, has_states
        if of_stream.stream is not None:
            return of_stream.stream
        self._take_gone()
        with self._lock:
            free = None if has_states or known.source is None else self._free.get(known.source)
            of_stream.stream = found = free.pop() if free else next(self._streams)
        return found

    def _take_gone(self) -> None:
        """Note the streams of requests that have gone."""
        with suppress(IndexError):  # when all are taken, perhaps by another thread
            while True:
                stream, source = self._gone.popleft()
                if source is None:
                    self._observer.gone(stream)
                else:
                    with self._lock:
                        self._free.setdefault(source, []).append(stream)

    def _waited(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        try:
            is_done = old(request, *arguments, **options)
        except Exception as error:
            with self._quietly():
                self._close(*self._at(request), None, str(error))
            raise
        with self._quietly():
            if is_done is not False:
                self._settle(*self._at(request), is_done=True)
        return is_done

    def _all_waited(self, old: Callable[..., Any], queue: Any, *arguments: Any, **options: Any) -> Any:
        try:
            return old(queue, *arguments, **options)
        finally:
            with self._quietly():
                known = self._of(queue)
                for place in known.pending:
                    self._settle(known, place)

    def _callback_set(self, old: Callable[..., Any], owner: Any, *arguments: Any, **options: Any) -> Any:
        if arguments:
            arguments = (self._behind_a_look(owner, arguments[0]), *arguments[1:])
        elif "callback" in options:
            options["callback"] = self._behind_a_look(owner, options["callback"])
        return old(owner, *arguments, **options)

    def _behind_a_look(self, owner: Any, callback: Any) -> Any:
        """Return a callback that reads the outputs before the application's callback changes them."""
        if not callable(callback):
            return callback
        is_queue = isinstance(owner, self._queue)
        known, number = (self._of(owner), 0) if is_queue else self._at(owner)

        @functools.wraps(callback)
        def looked_and_called(*given: Any) -> Any:
            with self._quietly():
                request = given[0] if is_queue else self._request_of(known, number)
                place = self._place_of(known, request) if is_queue else number
                if self._methods.are_in_place and request is not None and place is not None:
                    self._close(known, place, request, "")
            return callback(*given)

        return looked_and_called

    def _outputs_asked(self, old: Callable[..., Any], request: Any, *arguments: Any, **options: Any) -> Any:
        """Somebody wants outputs: perhaps a callback that was set before anybody listened, which may change them."""
        found = old(request, *arguments, **options)  # which OpenVINO refuses as long as the call runs
        if not self._scope.looks:
            with self._quietly():
                self._scope.looks = True
                try:
                    self._look_in_callback(request)
                finally:
                    self._scope.looks = False
        return found

    def _look_in_callback(self, request: Any) -> None:
        """Look at what a call gave whose outputs are there, though it has not come to its end for those who wait."""
        with self._lock:
            queues = [known for known in self._known.values() if isinstance(known.owner(), self._queue)]
        if request in self._aliases or self._found(request) is not None:
            known, number = self._at(request)
        else:  # a callback of a queue is given another object than the queue has
            places = [(known, place) for known in queues if (place := self._place_of(known, request)) is not None]
            if len(places) != 1:
                return
            known, number = places[0]
        if known.place(number).pending is None:
            return
        with suppress(RuntimeError):  # of a call that failed: who waits for it hears of that
            if not self._wait_for(request, 0):
                self._close(known, number, request, "")

    def _place_of(self, known: _Known, request: openvino.InferRequest) -> int | None:
        """Return the position in its queue of a request that has ended; None if it is ambiguous.

        A callback gets another request object than the queue holds. Both have the same inputs, and the same outputs if
        calls share their arrays.
        """
        memory, found = memory_of(tensors_of(request, {})), []
        for number in known.pending:
            pending = known.place(number).pending
            if pending is not None and pending.memory == memory:
                found.append(number)
        if len(found) > 1:
            outputs = memory_of(output_tensors_of(request))
            found = [number for number in found if self._has_outputs_at(known, number, outputs)]
        return found[0] if len(found) == 1 else None

    def _has_outputs_at(self, known: _Known, number: int, memory: Ints) -> bool:
        """True if a request of a queue has its outputs there; one that runs cannot be asked."""
        try:
            return memory_of(output_tensors_of(self._request_of(known, number))) == memory
        except RuntimeError:
            return False

    def _request_of(self, known: _Known, number: int) -> Any:
        """Return a request that has not gone yet; else None."""
        owner = known.owner()
        return self._queued(owner, number) if isinstance(owner, self._queue) else owner

    def _settle(self, known: _Known, number: int, *, is_done: bool = False) -> None:
        """Look at what the last call of a request gave, if it is done; where it failed, waiting says so."""
        request, error = self._request_of(known, number) if known.place(number).pending is not None else None, ""
        if request is None:
            return
        if not is_done:
            try:
                if not self._wait_for(request, 0):
                    return
            except RuntimeError as failure:
                error = str(failure)
        self._close(known, number, None if error else request, error)

    def _close(self, known: _Known, number: int, request: Any, error: str) -> None:
        place = known.place(number)
        with self._lock:
            pending, place.pending = place.pending, None
        if pending is not None:
            place.has_failed = bool(error)
            self._observer.ended(pending.call, None if request is None else outputs_of(request, known.outputs), error)


def _source_of(model: Any) -> ModelSource:
    """Return the source for a model that the user names: a path, or an openvino.Model."""
    return ModelSource(model if hasattr(model, "clone") else None, None if hasattr(model, "clone") else model)
