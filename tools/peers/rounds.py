"""Times launches on the GPU as common/harness/timing.cpp does: all contestants in alternating rounds, short launches in CUDA graphs."""

import dataclasses
import math
import time

SAMPLE_SECONDS, WARM_UP_SECONDS = 1e-3, 20e-3


@dataclasses.dataclass(frozen=True)
class Plan:
    sets: int = 1  # of matrices that launches take in turn
    graphs: bool = True  # otherwise a round is always one launch, started by itself
    min_rounds: int = 11
    max_rounds: int = 101
    seconds: float = 1.0  # the rounds end after that long, but not before min_rounds


@dataclasses.dataclass(frozen=True)
class Runner:
    run: object  # what a round calls
    launches: int = 1
    graph: bool = False


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
            seconds[who].append(seconds_of(runners[who].run, then) / runners[who].launches)
        if last:
            break
    return seconds


def time_in_rounds(torch, contestants, plan, while_running=None):
    """For each contestant, a function of the number of a set, (seconds of each round, launches per round, whether they were a graph)."""
    stream = torch.cuda.Stream()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    turn = 0

    def launch_next(contestant):
        nonlocal turn
        contestant(turn % plan.sets)
        turn += 1

    def seconds_of(run, then=None):
        begin.record(stream)
        run()
        end.record(stream)
        if then:
            then()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)

    def graph_of(contestant, launches):
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        for i in range(launches):
            contestant(i % plan.sets)
        graph.capture_end()
        graph.replay()
        stream.synchronize()
        return Runner(graph.replay, launches, True)

    def shortest_launch(runner, period):
        shortest, start = math.inf, time.monotonic()
        while time.monotonic() - start < period:
            shortest = min(shortest, seconds_of(runner.run) / runner.launches)
        return shortest

    def warm(contestant):
        launch_next(contestant)  # the first one loads modules
        stream.synchronize()
        # Starting a kernel from Python takes longer than many a kernel: only a graph tells how long that takes, and long ones need
        # one too.
        runner = graph_of(contestant, plan.sets) if plan.graphs else Runner(lambda: launch_next(contestant))
        shortest_launch(runner, WARM_UP_SECONDS)
        return runner

    def lengthened(contestant, runner):
        launches = launches_of(shortest_launch(runner, WARM_UP_SECONDS / 4), plan.sets)
        return graph_of(contestant, launches) if plan.graphs and launches > runner.launches else runner

    contestants = list(contestants)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        runners = [warm(each) for each in contestants]  # all of them, before anybody's number of launches is decided
        runners = [lengthened(*each) for each in zip(contestants, runners)]
        seconds = alternate(runners, plan, seconds_of, while_running)
    stream.synchronize()
    return [(each, runner.launches, runner.graph) for each, runner in zip(seconds, runners)]
