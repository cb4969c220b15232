"""The samples of Loop-5 with each finite pair of trip count and condition, and of TensorIterator-1 in reverse."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from building import Body, constant, loop, model, parameter, result, row, tensor_iterator
from sample import Array, Sample


def reverse() -> Sample:
    """Discounted returns: each is its reward and a part of the return that follows, so time runs from the end."""
    rewards = parameter("rewards", [1, 8, 1])
    reward, later_return = parameter("reward", [1, 1, 1]), parameter("later_return", [1, 1, 1])
    discounted = ops.multiply(later_return, constant("discount", 0.9), name="discounted")
    total = ops.add(reward, discounted, name="return")
    nothing_follows = constant("nothing_follows", np.zeros((1, 1, 1)))
    body = Body(carried=[(later_return, nothing_follows, total)], sliced=[(reward, rewards)])
    body.last, body.concatenated = [total], [total]
    first, all_returns = tensor_iterator("from_the_end", body, axis=1, step=-1)
    values = np.array([0, 0, 1, 0, -2, 0, 0, 10], np.float32).reshape(1, 8, 1)
    formula = discounted_returns(values)
    return Sample(
        model("reverse", [rewards], {"returns": all_returns, "return_of_first_step": first}),
        {"rewards": values},
        {"returns": formula, "return_of_first_step": formula[:, :1]},
    )


def discounted_returns(rewards: Array) -> Array:
    """Each step's sum of its own and all later rewards, each weighted with 0.9 to the power of its distance."""
    steps = np.arange(rewards.shape[1])
    distance = steps - steps[:, None]
    weights = np.where(distance >= 0, 0.9 ** np.abs(distance), 0)
    return np.asarray((weights @ rewards).astype(np.float32))


def for_loop() -> Sample:
    """Compound interest on three accounts over ten years: (trip count, true)."""
    principal, rate = parameter("principal", [3]), parameter("rate", [3])
    year_index, balance = parameter("year_index", [], np.int64), parameter("balance", [3])
    rate_inside = parameter("rate", [3])
    interest = ops.multiply(balance, rate_inside, name="interest")
    balance_next = ops.add(balance, interest, name="balance_next")
    year = ops.add(year_index, constant("one", 1, np.int64), name="year")
    body = Body(carried=[(balance, principal, balance_next)], invariant=[(rate_inside, rate)], iteration=year_index)
    body.keep_going = constant("keep_going", True, np.bool_)
    body.last, body.concatenated = [balance_next], [row(balance_next, "balance_row"), year]
    trip_count, condition = constant("trip_count", 10, np.int64), constant("true", True, np.bool_)
    final, by_year, years = loop("years", trip_count, condition, body)
    values = {"principal": np.array([1000, 1000, 250], np.float32), "rate": np.array([0.01, 0.05, 0.12], np.float32)}
    formula = compound_interest(values["principal"], values["rate"], years=10)
    return Sample(
        model("for_loop", [principal, rate], {"final_balance": final, "balance_by_year": by_year, "year": years}),
        values,
        {"final_balance": formula[-1], "balance_by_year": formula, "year": np.arange(1, 11, dtype=np.int64)},
    )


def compound_interest(principal: Array, rate: Array, years: int) -> Array:
    """The balances at the end of each year, one row each."""
    growth = 1 + rate.astype(np.float64)
    return np.asarray((principal * growth ** np.arange(1, years + 1)[:, None]).astype(np.float32))


def while_loop() -> Sample:
    """Collatz: halve an even number, else triple it and add one, until it is 1: (-1, condition)."""
    sequence = collatz(27)
    return Sample(
        until_one(),
        {"start": np.array(27, np.int64)},
        {"steps_taken": np.array(len(sequence)), "highest": np.array(max(sequence)), "numbers": np.array(sequence)},
        stale=until_one(stale=True),
    )


def until_one(*, stale: bool = False) -> ov.Model:
    """The loop; `stale`: the condition reads the number before, so that it runs once too often."""
    start = parameter("start", [], np.int64)
    one, none_yet = constant("one", 1, np.int64), constant("none_yet", 0, np.int64)
    not_one = ops.not_equal(start, one, name="start_is_not_one")
    number, steps, peak = (parameter(name, [], np.int64) for name in ("number", "steps", "peak"))
    number_next = collatz_next(number)
    steps_next = ops.add(steps, constant("one", 1, np.int64), name="steps_next")
    peak_next = ops.maximum(peak, number_next, name="peak_next")
    body = Body(carried=[(number, start, number_next), (steps, none_yet, steps_next), (peak, start, peak_next)])
    body.keep_going = ops.not_equal(number if stale else number_next, constant("goal", 1, np.int64), name="keep_going")
    body.last, body.concatenated = [steps_next, peak_next], [number_next]
    count, highest, numbers = loop("until_one", constant("no_limit", -1, np.int64), not_one, body)
    return model("while_loop", [start], {"steps_taken": count, "highest": highest, "numbers": numbers})


def collatz_next(number: ov.Node) -> ov.Node:
    """An If layer: its then branch halves an even number, its else branch takes an odd one upwards."""
    two, zero = constant("two", 2, np.int64), constant("zero", 0, np.int64)
    remainder = ops.floor_mod(number, two, name="remainder")
    branch = ops.if_op(ops.equal(remainder, zero, name="is_even").output(0))
    branch.set_friendly_name("number_next")
    even, odd = parameter("even", [], np.int64), parameter("odd", [], np.int64)
    half = ops.divide(even, constant("two", 2, np.int64), name="half")
    triple = ops.multiply(odd, constant("three", 3, np.int64), name="triple")
    upwards = ops.add(triple, constant("one", 1, np.int64), name="triple_plus_one")
    half_result, upwards_result = result(half, "half_result"), result(upwards, "triple_plus_one_result")
    branch.set_then_body(ov.Model([half_result], [even], "number_is_even"))
    branch.set_else_body(ov.Model([upwards_result], [odd], "number_is_odd"))
    branch.set_input(number.output(0), even, odd)
    branch.set_output(half_result, upwards_result)
    return branch


def collatz(number: int) -> list[int]:
    """The Collatz sequence after `number`, down to 1."""
    sequence = []
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        sequence.append(number)
    return sequence


def do_while_loop() -> Sample:
    """Newton's square roots of three numbers at once, until the largest change is small: (-1, true)."""
    numbers = parameter("number", [3])
    guess, number = parameter("guess", [3]), parameter("number", [3])
    quotient = ops.divide(number, guess, name="quotient")
    mean = ops.add(guess, quotient, name="sum")
    guess_next = ops.multiply(mean, constant("half", 0.5), name="guess_next")
    change = ops.abs(ops.subtract(guess_next, guess, name="difference"), name="change")
    largest = ops.reduce_max(change, constant("axis", 0, np.int64), name="largest_change")
    body = Body(carried=[(guess, numbers, guess_next)], invariant=[(number, numbers)])
    body.keep_going = ops.greater(largest, constant("tolerance", 1e-3), name="keep_going")
    body.last, body.concatenated = [guess_next], [row(guess_next, "guess_row")]
    condition = constant("true", True, np.bool_)
    root, guesses = loop("until_converged", constant("no_limit", -1, np.int64), condition, body)
    values = np.array([612, 2, 81], np.float32)
    formula = newton(values, tolerance=1e-3)
    np.testing.assert_allclose(formula[-1], np.sqrt(values), rtol=1e-6)
    return Sample(
        model("do_while_loop", [numbers], {"root": root, "guesses": guesses}),
        {"number": values},
        {"root": formula[-1], "guesses": formula},
    )


def newton(number: Array, tolerance: float) -> Array:
    """Newton's guesses for the square root from the number itself on, one row each, in double precision."""
    guesses = [number.astype(np.float64)]
    while len(guesses) == 1 or np.abs(guesses[-1] - guesses[-2]).max() > tolerance:
        guesses.append((guesses[-1] + number / guesses[-1]) / 2)
    return np.array(guesses[1:], np.float32)


def for_with_condition() -> Sample:
    """A running sum of amounts that ends after the last, or once it is above a limit: (trip count, condition)."""
    amounts, limit = parameter("amounts", [-1]), parameter("limit", [])
    total, count = parameter("total", [1]), parameter("count", [], np.int64)
    amount, limit_inside = parameter("amount", [1]), parameter("limit", [])
    total_next = ops.add(total, amount, name="total_next")
    count_next = ops.add(count, constant("one", 1, np.int64), name="count_next")
    nothing, none_yet = constant("nothing", [0.0]), constant("none_yet", 0, np.int64)
    body = Body(carried=[(total, nothing, total_next), (count, none_yet, count_next)], sliced=[(amount, amounts)])
    body.invariant = [(limit_inside, limit)]
    body.keep_going = ops.less_equal(total_next, limit_inside, name="keep_going")
    body.last, body.concatenated = [total_next, count_next], [total_next]
    trip_count = ops.shape_of(amounts, name="number_of_amounts")
    condition = ops.greater_equal(limit, constant("zero", 0.0), name="limit_is_possible")
    final, taken, sums = loop("until_above_limit", trip_count, condition, body)
    values = {
        "amounts": np.array([12.5, 30, 7.25, 18, 22.5, 9, 41, 3], np.float32),
        "limit": np.array(80, np.float32),
    }
    running = sums_up_to(values["amounts"], limit=80)
    return Sample(
        model("for_with_condition", [amounts, limit], {"total": final, "count": taken, "running_total": sums}),
        values,
        {"total": running[-1:], "count": np.array(running.size), "running_total": running},
    )


def sums_up_to(amounts: Array, limit: float) -> Array:
    """The running sums of the amounts up to the first that is above the limit."""
    sums = np.cumsum(amounts, dtype=np.float32)
    return sums[: int(np.argmax(sums > limit)) + 1]
