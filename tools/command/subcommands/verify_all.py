"""course verify-all: whether the exercises themselves are right."""

from ..cli import options
from ..cli.arguments import Command
from ..exercises import answers, checking
from ..exercises.exercise import all_exercises, named, require_exercises
from ..exercises.judging import Workshop
from ..machine.gpu import choose_backend
from ..messages import say


def run(given):
    require_exercises()
    exercises = list(dict.fromkeys(map(named, given.everything))) or list(all_exercises())
    backend = choose_backend(given.on or "interpreter")
    exercises = checking.able(exercises, backend, bool(given.everything))
    workshop = Workshop(backend, given.seed or 1, is_own=True)
    workshop.prepare(exercises)

    def told(name, is_fine):
        print(f"{name:<60} {'as it should be' if is_fine else 'WRONG'}", flush=True)

    problems, count = answers.problems(workshop, exercises, given.sample, told)
    for problem in problems:
        say(problem)
    print(f"{len(exercises)} exercises, {count} answers judged, {len(problems)} problems.")
    return 1 if problems else 0


COMMAND = Command(
    name="verify-all",
    usage="[EXERCISE...] [OPTION...]",
    intro="""
    Tests the exercises themselves: each stub compiles and fails, differs from its solution in the holes alone, and has three hints; each
    solution passes; answers that are known to be wrong are rejected with the intended message, other right ones are accepted. Learners'
    files have no part in it. On a GPU, solutions and other right answers are run and timed, and what is wrong is left out.
    """,
    options=(options.SAMPLE, options.EXERCISES_ON, options.SEED.but(default="1")),
    outro="Exit code: 0 all is as it should be, 1 something is not, 2 refused input, 130 interrupted.",
    run=run,
)
