"""Times launches on the GPU as common/harness/measure/timing.cpp does: all contestants in alternating rounds, short launches in CUDA graphs."""

import dataclasses
import math
import time

SAMPLE_SECONDS, WARM_UP_SECONDS = 1e-3, 20e-3


@dataclasses.dataclass(frozen=True)
class Plan:
    sets: int = 1  # of matrices
    cold: bool = False  # launches take the sets in turn; otherwise rounds do
    graphs: bool = True  # otherwise a round is always one launch, started by itself
    min_rounds: int = 11
    max_rounds: int = 101
    seconds: float = 1.0  # the rounds end after that long, but not before min_rounds


@dataclasses.dataclass(frozen=True)
class Runner:
    runs: list  # what rounds call in turn
    launches: int = 1
    graph: bool = False  # else one launch


def order_of(number, contestants):
    """Who runs when in a round: forwards in even rounds, backwards in odd ones, each time beginning with another."""
    stride = contestants - 1 if number % 2 else 1
    return [(number + i * stride) % contestants for i in range(contestants)]


def launches_of(shortest, sets):
    """How many launches make a graph of about a millisecond: whole turns through the sets."""
    wanted = math.ceil(SAMPLE_SECONDS / max(shortest, 1e-6))
    return -(-wanted // sets) * sets


def alternate(runners, plan, seconds_of, while_running=None, clock=time.monotonic):
    """Seconds per launch, for each runner a list over the rounds.

    SECONDS_OF(run, then): what run() takes; calls then() while the GPU works. WHILE_RUNNING is called once, in the last round.
    """
    seconds = [[] for _ in runners]
    start = clock()
    for number in range(plan.max_rounds):
        last = number + 1 == plan.max_rounds or (number + 1 >= plan.min_rounds and clock() - start > plan.seconds)
        for place, who in enumerate(order_of(number, len(runners))):
            then = while_running if last and place == 0 else None
            runner = runners[who]
            run = runner.runs[number % len(runner.runs)]
            if runner.graph:
                run()  # as in timing.cpp, it is timed the second time
            seconds[who].append(seconds_of(run, then) / runner.launches)
        if last:
            break
    return seconds


the_stream = None


def stream_for_timing(torch):
    """One for the whole process, as in timing.cpp, which says why."""
    global the_stream
    the_stream = the_stream or torch.cuda.Stream()
    return the_stream


def time_in_rounds(torch, contestants, plan, while_running=None):
    """For each contestant, a function of the number of a set, (seconds of each round, launches per round, whether they were a graph)."""
    stream = stream_for_timing(torch)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    turn = 0
    in_turn = plan.sets if plan.cold else 1  # sets that a graph's launches take in turn

    def launch_next(contestant):
        nonlocal turn
        contestant(turn % in_turn)
        turn += 1

    def seconds_of(run, then=None):
        begin.record(stream)
        run()
        end.record(stream)
        if then:
            then()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)

    def graph_of(contestant, launches, first_set=0):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        for i in range(launches):
            contestant(first_set + i % in_turn)
        graph.capture_end()
        return graph.replay

    def shortest_launch(runner, period):
        shortest, start = math.inf, time.monotonic()
        while time.monotonic() - start < period:
            shortest = min(shortest, seconds_of(runner.runs[0]) / runner.launches)
        return shortest

    def warm(contestant):
        launch_next(contestant)  # the first one loads modules
        stream.synchronize()
        # Starting a kernel from Python takes longer than many a kernel: only a graph tells how long that takes, and long ones need
        # one too.
        runner = Runner([graph_of(contestant, in_turn)], in_turn, True) if plan.graphs else Runner([lambda: launch_next(contestant)])
        shortest_launch(runner, WARM_UP_SECONDS)
        return runner

    def in_graphs(runners):
        launches = [launches_of(shortest_launch(each, WARM_UP_SECONDS / 4), in_turn) for each in runners]
        return [
            Runner([graph_of(each, count, first) for first in range(0, plan.sets, in_turn)], count, True)
            for each, count in zip(contestants, launches)
        ]

    contestants = list(contestants)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        runners = [warm(each) for each in contestants]  # all of them, before anybody's number of launches is decided
        if plan.graphs:
            runners = in_graphs(runners)
        seconds = alternate(runners, plan, seconds_of, while_running)
    stream.synchronize()
    return [(each, runner.launches, runner.graph) for each, runner in zip(seconds, runners)]
