"""course see: what the interpreter saw of a launch, as a page to step through."""

import contextlib
import json
import os
import re
import sys
import tempfile

from .. import files
from ..building import folder
from ..cli import options, steps
from ..cli.arguments import Command, require_file
from ..cli.values import ELEMENT_BYTES
from ..exercises import exercise as exercises
from ..exercises.judging import Workshop, existing
from ..machine import memory, processes
from ..machine.progress import tail
from ..messages import Failed, Refused, say, show
from ..places import BUILD, LOGS
from .interpret import program_of
from .run import end_if_over, lock_results, require_writable, shown

from see import cost, grid, grid_page, l2, page, perfetto, picture, replay

SMALL, LARGER = "256x256x256", "512x512x512"
SHAPES = {15: "8x512x4096"}  # of steps for other problems
GRID_SHAPES = {8: (64, 1024, 4096), 15: (8, 4096, 4096)}  # of steps for other problems
CHUNKS = 3  # from this step on, kernels copy 16 bytes at a time
PERSISTENT = 12  # from this step on, blocks stay for several tiles, but for 15's
FEW = 2  # SMs, then: a block has some tiles of a small problem


def step_number(step):
    return int(step.split("_")[0])


def is_persistent(step):
    return step_number(step) >= PERSISTENT and step_number(step) != 15


class Step:
    def __init__(self, given, word):
        self.step, self.tile = steps.named(word), given.tile
        steps.check_tile(self.step, given.tile)
        self.dtype, _ = steps.choose_dtype([self.step], given.dtype, True)
        if given.shape and (len(given.shape.shapes) > 1 or 0 in given.shape.shapes[0]):
            raise Refused("see shows one launch that multiplies something: name one --shape, with extents from 1 on.")
        usual = SHAPES.get(step_number(self.step), LARGER if step_number(self.step) >= 10 else SMALL)
        self.shape = "x".join(map(str, given.shape.shapes[0])) if given.shape else usual
        extents = tuple(map(int, self.shape.split("x")))
        memory.check([extents], ELEMENT_BYTES[self.dtype], "interpreter")
        if not given.force:
            steps.check_patience([self.step], self.dtype, [extents])
        self.order = given.to_pass(options.ORDER)

    @property
    def name(self):
        of_tile = "-" + re.sub(r"[^a-z0-9]+", "-", self.tile.lower()).strip("-") if self.tile else ""
        return f"{self.step}-{self.shape}-{self.dtype}{of_tile}"

    def run(self, events):
        """@return (exit code, the launched tile's name)"""
        target = self.step if self.tile else f"{self.step}_first_{self.dtype}"
        folder.prepare("interpreter", ["python3"], [target])
        words = ["--shape", self.shape, "--dtype", self.dtype, "--force", *self.order]
        words += ["--tile", self.tile] if self.tile else ["--first"]
        if is_persistent(self.step):
            words += ["--multiprocessors", str(FEW)]
        log, results = os.path.join(LOGS, f"see-{self.step}.log"), events + ".results"
        say(f"{self.step}: running {self.shape} on the interpreter ...")
        with open(log, "wb") as output:
            program = os.path.join(BUILD, "interpreter", "bin", target)
            child = processes.start([program, *words, "--json", results], stdout=output, env={**os.environ, "COURSE_EVENTS": events})
            code = processes.wait(child)
        end_if_over(code)
        if code == 2:
            raise SystemExit(code)  # it has said why
        if code:
            show(tail(log))
            return code, self.tile or ""
        with open(results, encoding="utf-8") as file:
            return code, json.load(file)["results"][0]["tile"]

    def title(self, tile):
        return f"{self.step.replace('_', ' ')}: {tile}" if tile else self.step.replace("_", " ")

    def facts(self):
        facts = [f"M×N×K = {self.shape.replace('x', '×')}, {self.dtype}."]
        if is_persistent(self.step):
            facts.append(f"Kernels are told of {FEW} SMs, so that a block has several tiles of a small problem.")
        return facts


def name_of_program(file):
    path, _ = os.path.splitext(os.path.abspath(file))  # the folder too: each lesson has a first.cu
    return re.sub(r"[^A-Za-z0-9_]+", "-", "-".join(path.split(os.sep)[-2:])).strip("-")


def title_of_program(file):
    return os.sep.join(os.path.abspath(file).split(os.sep)[-2:])


class WholeGrid:
    """A step's launch on all SMs, from some tiles that run."""

    def __init__(self, given, word):
        self.step, self.wanted, self.gpu = steps.named(word), given.tile, given.to_pass(options.AS)
        self.number = step_number(self.step)
        steps.check_tile(self.step, given.tile)
        self.dtype, _ = steps.choose_dtype([self.step], given.dtype, True)
        shapes = given.shape.shapes if given.shape else [GRID_SHAPES.get(self.number, (4096, 4096, 4096))]
        if len(shapes) > 1 or 0 in shapes[0]:
            raise Refused("see shows one launch that multiplies something: name one --shape, with extents from 1 on.")
        self.shape = tuple(shapes[0])
        if self.number >= CHUNKS and any(extent * ELEMENT_BYTES[self.dtype] % 16 for extent in self.shape[1:]):
            raise Refused("--grid: with rows of A or B that are no multiple of 16 bytes, the step launches another kernel. Choose N and K that are: multiples of 8, of f16.")
        for option in (options.LAUNCH, options.PERFETTO, options.ORDER, options.SHOW_BLOCK):
            if getattr(given, option.key):
                raise Refused(f"{option.name} is for the timeline of a block. Leave it out, or --grid.")
        self.blocks = given.blocks

    def run(self, scratch, *words):
        """@return (the results, of --tune what it has printed; launches)"""
        events, results = os.path.join(scratch, "events"), os.path.join(scratch, "results")
        for file in (events, results):
            if os.path.exists(file):
                os.remove(file)
        program = os.path.join(BUILD, "interpreter", "bin", self.step)
        log = os.path.join(LOGS, f"see-{self.step}.log")
        with open(log, "wb") as output:
            more = [] if "--tune" in words else ["--json", results, "--force"]
            command = [program, "--dtype", self.dtype, *self.gpu, *words, *more]
            code = processes.wait(processes.start(command, stdout=output, env={**os.environ, "COURSE_EVENTS": events}))
        end_if_over(code)
        if code == 2:
            raise SystemExit(code)  # it has said why
        if code:
            show(tail(log))
            raise SystemExit(code)
        launches = replay.read(events) if os.path.exists(events) else []
        if "--tune" in words:
            return files.text(log), launches
        with open(results, encoding="utf-8") as file:
            return json.load(file), launches

    def choose_tile(self, scratch):
        """(Its name: the one that was asked for, or what tuning expects, or the step's first; the GPU as results name it)."""
        words = ["--tile", self.wanted] if self.wanted else ["--first"]
        if not self.wanted and self.step in steps.tuned_steps():
            text, _ = self.run(scratch, "--tune", "--shape", "x".join(map(str, self.shape)))
            words = ["--tile", re.search(r"^(.*): the model expects", text, re.MULTILINE)[1]]
        document, _ = self.run(scratch, *words, "--shape", "16x16x16")
        return document["results"][0]["tile"], document["gpu"]

    def show(self, out):
        folder.prepare("interpreter", ["python3"], [self.step])
        costs, launches = cost.h200(all_busy=True), []
        with tempfile.TemporaryDirectory() as scratch:
            tile, gpu = self.choose_tile(scratch)
            say(f"{self.step}: running {'some tiles' if grid.Plan(self.number, tile, self.shape, 1).stays else 'a block'} of {tile} on the interpreter ...")

            def record(shape, sms):
                _, found = self.run(scratch, "--tile", tile, "--shape", "x".join(map(str, shape)), "--multiprocessors", str(sms))
                launches.append(max(found, key=lambda each: len(each.events)))
                if not launches[-1].is_whole:
                    raise Refused(f"{self.step}: a block does more than is recorded at k = {self.shape[2]}. Choose a smaller k in --shape.")
                return launches[-1]

            def resident(launch):
                known, room = grid.measured(self.step, tile, self.dtype), most_resident(launch)
                if self.blocks and self.blocks > room:
                    raise Refused(f"--blocks {self.blocks}: an SM of an H200 has room for {room} of these.")
                return self.blocks or (known[1]["launch"]["blocks_per_sm"] if known else room)

            plan = grid.Plan(self.number, tile, self.shape, gpu["multiprocessors"])
            try:
                drawn = grid.timed(plan, self.shape[2], record, costs, resident)
            except grid.Unlike as reason:
                raise Refused(f"{self.step}: {reason}. Choose another --shape.") from None
        shape = "x".join(map(str, self.shape))
        facts = [f"M×N×K = {shape.replace('x', '×')}, {self.dtype}, on {gpu['multiprocessors']} SMs of an {gpu['name']}."]
        missed = l2.misses(drawn, self.shape[2], ELEMENT_BYTES[self.dtype], l2.room(gpu)) if l2.is_known(plan) else None
        facts += grid_page.facts(drawn, launches[0], grid.measured(self.step, tile, self.dtype, self.shape), missed, l2.room(gpu))
        path = os.path.join(out, f"{self.step}-{shape}-{self.dtype}-{re.sub(r'[^a-z0-9]+', '-', tile.lower())}-grid.html")
        files.write(path, grid_page.page_of(drawn, f"{self.step.replace('_', ' ')}: {tile}", facts, costs, missed))
        sys.stdout.write(f"{facts[-1]}\npage: {shown(path)}\n")
        return 0


class Program:
    """interpret's FILE.cu."""

    def __init__(self, given, file, arguments):
        require_file(file, "name a step, or a CUDA program such as docs/examples/saxpy.cu.")
        refuse(given, file, "what stands behind -- is the program's")
        self.file, self.arguments = file, arguments
        self.words = given.to_pass(options.ORDER, options.INCLUDE, options.DEFINE)

    @property
    def name(self):
        return name_of_program(self.file)

    def run(self, events):
        folder.prepare("interpreter", ["python3"], ["interpreter", "interpret_prelude"])
        child = processes.start(program_of(self.words, self.file, self.arguments), env={**os.environ, "COURSE_EVENTS": events})
        code = processes.wait(child)
        end_if_over(code)
        return code, ""

    def title(self, _):
        return title_of_program(self.file)

    def facts(self):
        return []


class Answer:
    """A learner's file, or a solution: the largest problem of its test."""

    def __init__(self, given, word, is_solution):
        refuse(given, word, "an exercise's test says what its function is called with")
        self.exercise = exercises.named(word)
        self.file = existing(self.exercise, self.exercise.solution if is_solution else self.exercise.current)
        self.kind = "solution" if is_solution else "exercise"

    @property
    def name(self):
        return f"{self.kind}_{self.exercise.name}"

    def run(self, events):
        workshop = Workshop("interpreter")
        workshop.prepare([self.exercise])
        say(f"{self.title('')}: running its test on the interpreter ...")
        if workshop.see(self.exercise, self.file, events):
            check = f"'tools/course check {self.exercise.name[:2]}' says why"
            raise Failed(f"{shown(self.file)} does not compile, so there is nothing to see: {check}.")
        return 0, ""

    def title(self, _):
        return f"{self.kind} {self.exercise.title}"

    def facts(self):
        return []


def refuse(given, word, why):
    for option in (options.SHAPE, options.DTYPE, options.TILE):
        if getattr(given, option.key):
            raise Refused(f"{option.name} is for steps, not for {word}: {why}. Leave it out.")


def choose(launches, wanted):
    """The one that was asked for; else the first that a check has ended, or that with the most events."""
    if not wanted:
        for number, launch in enumerate(launches):
            if launch.diagnosis:
                return number
        return max(range(len(launches)), key=lambda i: len(launches[i].events))
    if wanted > len(launches):
        raise Refused(f"--launch {wanted}: there {'was' if len(launches) == 1 else 'were'} {len(launches)}.")
    return wanted - 1


def most_resident(launch):
    """Blocks for which an H200's SM has warps and shared memory; registers are not known."""
    shared, warps = 228 << 10, 64
    return max(1, min(32, warps // launch.warps, shared // (launch.shared_bytes + 1024)))


def which_of(launch):
    """In the beginning of a sentence: another one than the first may have been asked for, or ended by a check."""
    if not any(launch.first):
        return "The first"
    (x, y, z), (wide, high, _) = launch.first, launch.grid
    return f"{'The one with block' if launch.cluster_size > 1 else 'Block'} {x + wide * (y + high * z):,}, at ({x}, {y}, {z}),"


def facts_of(launch, number, count, resident):
    threads = launch.block[0] * launch.block[1] * launch.block[2]
    which = f"Launch {number + 1} of {count}. " if count > 1 else ""
    clusters, more = launch.blocks // launch.cluster_size, f"with {resident - 1} more that {'does' if resident == 2 else 'do'} the same"
    if launch.cluster_size > 1:
        block = "The one cluster" if clusters == 1 else f"{which_of(launch)} of {clusters:,} clusters"
        beside = f"{launch.cluster_size} blocks, each {'alone on its SM' if resident == 1 else f'on an SM {more}'}; of a block"
    else:
        block = "The one block" if clusters == 1 else f"{which_of(launch)} of {clusters:,} blocks"
        beside = "alone on its SM" if resident == 1 else f"on an SM {more}"
    shared = f", {launch.shared_bytes:,} bytes of shared memory" if launch.shared_bytes else ""
    return f"{which}{block}, {beside}: {threads} threads, {picture.several(launch.warps, 'warp')}{shared}."


def draw(launches, of_file=None, *, title, facts, wanted=None, resident=1):
    """@param of_file (which of how many launches it is), where the rest of them were not read
    @return (the picture of one of the launches, FACTS and what is said of it in numbers)"""
    if not any(launch.events or launch.diagnosis for launch in launches):
        raise Failed(f"{title}: no kernel has done anything that could be shown.")
    number = choose(launches, wanted)
    launch = launches[number]
    room = most_resident(launch)
    if resident > room:
        raise Refused(f"--blocks {resident}: an SM of an H200 has room for {room} of these.")
    try:
        drawn = picture.Picture(launch, replay.Replay(launch, cost.h200(), resident), title)
    except replay.Unable as reason:
        raise Refused(f"{title}: {reason}.") from None
    return drawn, [*facts, facts_of(launch, *(of_file or (number, len(launches))), resident), time_of(drawn)]


def read(events):
    """The launches; a program that has launched nothing has written none."""
    return replay.read(events) if os.path.exists(events) else []


def read_chosen(events):
    """([the launch that a page shows unless another one is asked for], (its number, how many there are)): a test of an exercise has many, and to
    read them all takes longer than the test."""
    if not os.path.exists(events):
        return [], None
    with open(events, encoding="utf-8") as file:
        lines = file.readlines()
    ended = (number for number, line in enumerate(lines) if ',"diagnosis":{' in line)  # in a string, its quotes would be escaped
    number = next(ended, None)
    if number is None:
        number = max(range(len(lines)), key=lambda i: len(lines[i]))
    return [replay.Launch(json.loads(lines[number]))], (number, len(lines))


def path_of(asked, name):
    """Where the page of a command's --see goes, which cannot fail when it is too late. @param asked '' where no file was named"""
    path = asked or os.path.join(BUILD, "see", f"{name}.html")
    if os.path.isdir(path):
        raise Refused(f"cannot write to {path}: it is a folder. Name a file with --see.")
    require_writable(os.path.dirname(os.path.abspath(path)), "--see")
    return path


@contextlib.contextmanager
def page_of(path, title, facts=()):
    """What --see adds to a command: what runs meanwhile with COURSE_EVENTS as this yields it is a page afterwards, and a line says where.
    Nothing else is changed: what cannot be drawn is said there."""
    with tempfile.TemporaryDirectory() as scratch:
        events = os.path.join(scratch, "events")
        yield events
        try:
            drawn, facts = draw(*read_chosen(events), title=title, facts=facts)
            files.write(path, page.page(drawn, drawn.replay.costs, facts))
        except (Failed, Refused) as reason:
            return say(f"no page of it: {reason}")
        except OSError as error:
            return say(f"no page of it: cannot write to {path}: {error.strerror}. Name another file with --see.")
        return say(f"page: {shown(path)}")


def time_of(drawn):
    clocks = f"{round(drawn.replay.clocks):,} clocks"
    if drawn.launch.diagnosis:
        if drawn.stopped_at is None:
            return f"{clocks} until all that is left waits for ever." if drawn.is_stuck() else f"{clocks} until a check ended it."
        return f"A check ends it at clock {picture.number(drawn.stopped_at)} of the warp that it stops; what others have begun by then is over at {picture.number(drawn.replay.clocks)}."
    clocks += " until all is written"
    if not drawn.replay.tensor_busy:
        return f"{clocks}."
    whom = "these blocks" if drawn.launch.cluster_size > 1 else "this block"
    share = f"{clocks}. The tensor cores work {100 * drawn.tensor_share():.0f} % of these for {whom}"
    if drawn.replay.resident > 1:
        return f"{share}."
    before, between, after = (f"{100 * share:.0f} %" for share in drawn.tensor_idle())
    return f"{share}; they idle {before} before the first product, {between} between products, {after} after the last one."


def show_grid(given, word, rest):
    if rest or word.endswith((".cu", ".cpp")) or re.match(r"(?:.*/)?(exercises|solutions)/", word):
        raise Refused("--grid is for a step, such as tools/course see 6 --grid: of other programs see does not know which blocks there are.")
    subject, out = WholeGrid(given, word), given.out or os.path.join(BUILD, "see")
    require_writable(out)
    lock_results(out)
    return subject.show(out)


def is_of_several_gpus(word):
    if word.endswith((".cu", ".cpp")) or re.match(r"(?:.*/)?(exercises|solutions)/", word):
        return False
    with contextlib.suppress(Refused):
        return steps.any_named(word) in steps.of_several_gpus()
    return False


def run(given):
    if not given.everything:
        raise Refused("see needs a step or a file, for example: tools/course see 4")
    word, *rest = given.everything
    if step_words := [each for each in given.everything if is_of_several_gpus(each)]:
        from .. import ranks  # it needs this package's run

        return ranks.see(given, [steps.any_named(each) if each in step_words else each for each in given.everything], COMMAND)
    if given.ranks:
        raise Refused(f"--ranks is about {' or '.join(steps.of_several_gpus())}: name it, or leave --ranks out.")
    if given.grid:
        return show_grid(given, word, rest)
    if given.to_pass(options.AS):
        raise Refused("--as chooses the GPU for --grid; a block's clock is an H200's. Leave it out, or add --grid.")
    if word.endswith((".cu", ".cpp")):
        subject = Program(given, word, rest)
    elif rest:
        raise Refused(f"see shows one thing at a time: {' and '.join(given.everything)} are several.")
    elif found := re.match(r"(?:.*/)?(exercises|solutions)/", word):
        subject = Answer(given, word, is_solution=found[1] == "solutions")
    else:
        subject = Step(given, word)
    out = given.out or os.path.join(BUILD, "see")
    require_writable(out)
    lock_results(out)
    os.environ["COURSE_EVENTS_BLOCK"] = str(given.show_block or 0)
    with tempfile.TemporaryDirectory() as scratch:
        events = os.path.join(scratch, "events")
        code, tile = subject.run(events)
        launches = read(events)
    if code and not any(launch.events or launch.diagnosis for launch in launches):
        return code
    if given.show_block and all(launch.blocks <= given.show_block for launch in launches):
        raise Refused(f"--show-block {given.show_block}: no launch has so many blocks; the first is 0, and the last of the largest launch {max(launch.blocks for launch in launches) - 1}.")
    drawn, facts = draw(launches, title=subject.title(tile), facts=subject.facts(), wanted=given.launch, resident=given.blocks or 1)
    path = os.path.join(out, f"{subject.name}.html")
    files.write(path, page.page(drawn, drawn.replay.costs, facts))
    sys.stdout.write(f"{facts[-1]}\npage: {shown(path)}\n")
    if given.perfetto:
        try:
            files.write(given.perfetto, json.dumps(perfetto.trace(drawn)))
        except OSError as error:
            raise Refused(f"cannot write to {given.perfetto}: {error.strerror}. Name a file with --perfetto.") from None
        sys.stdout.write(f"trace: {shown(os.path.abspath(given.perfetto))}\n")
    return code


COMMAND = Command(
    name="see",
    usage="STEP|exercises/NAME|solutions/NAME|FILE.cu [OPTION...]",
    intro="""
    Runs a kernel on the interpreter and writes a page that shows what the first block did, or all blocks of the first cluster:
    copies that are issued, land and are waited for, products, barriers, mbarriers with their phases, arrivals and bytes, the stages
    of the ring, each beside its line of the kernel. Open it in a browser and step through it with the arrow keys. Times are those of a cost model, which the page states.

    STEP is a number or a word of a folder's name below steps/; exercises/5 is your own file, solutions/5 the course's: the launch of
    its test in which most happens. FILE.cu is a program as 'tools/course interpret' takes it, whose own
    arguments stand behind --. docs/see.md says what is seen, and what to look for.

    Of tensor_parallel it shows what each GPU copies and multiplies, plan by plan. That takes --ranks, --shape TOKENSxMODELxHIDDEN and
    --out, computes nothing, and ends with 1 where nothing orders what uses the same memory.
    """,
    options=(
        options.SHAPE.but(help="MxNxK: A is MxK, B is KxN, C is MxN", metavar="MxNxK", default=f"{SMALL}, from 10 on {LARGER}, for 15 {SHAPES[15]}"),
        options.RANKS.but(help="of tensor_parallel: how many GPUs share the work, 2 to 64", default="2"),
        options.DTYPE,
        options.TILE,
        options.ORDER,
        options.INCLUDE,
        options.DEFINE,
        options.SHOW_BLOCK,
        options.BLOCKS,
        options.GRID,
        options.AS.but(help="with --grid, the number of SMs: h200, a100, h100 or 4090", default="h200"),
        options.LAUNCH,
        options.FORCE,
        options.PERFETTO,
        options.OUT.but(help="for the page", default="build/see"),
    ),
    outro="Exit code: 0 shown, 1 a wrong result, a failed check or a failed build, 2 refused input, 130 interrupted.",
    run=run,
)
