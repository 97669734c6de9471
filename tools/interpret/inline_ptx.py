"""Inline PTX as C++: an asm statement becomes a block that calls what the interpreter has for each instruction.

Registers are variables of their size, labels and predicates what C++ has for them. common/interpreter/cuda_runtime/inline_ptx.h
has the rest. Who asks for an instruction that is not here is told its name.
"""

import re

_INTERPRETER, _PTX = "::interpreter::", "::interpreter::ptx::"
_REGISTERS = {"h": "uint16_t", "r": "uint32_t", "l": "uint64_t", "f": "float", "d": "double", "n": None, "C": None}
LATER = "course_asm"  # an asm statement that only the preprocessor knows wholly
ASM, _QUALIFIERS = ("asm", "__asm", "__asm__", LATER), ("volatile", "__volatile__")
_TYPES = {
    **{f"{kind}{bits}": f"{name}{bits}_t" for bits in (8, 16, 32, 64) for kind, name in (("u", "uint"), ("s", "int"), ("b", "uint"))},
    "f32": "float",
    "f64": "double",
    "f16": "__half",
    "f16x2": "__half2",
    "bf16": "__nv_bfloat16",
    "bf16x2": "__nv_bfloat162",
    "pred": "bool",
}
# What holds a register of these types: instructions read its bits as what they are about.
_HELD_AS = {"__half": "uint16_t", "__half2": "uint32_t", "__nv_bfloat16": "uint16_t", "__nv_bfloat162": "uint32_t"}
_SPECIAL = {
    "laneid": "::interpreter::lane_index()",
    "warpid": f"{_PTX}thread_number() / 32",
    "clock": "::clock64()",
    "clock_hi": "::clock64() >> 32",
    "clock64": "::clock64()",
    "globaltimer": "::clock64()",
    "globaltimer_lo": "::clock64()",
    "nsmid": "::interpreter::find_gpu(::interpreter::options().gpu).multiprocessors",
    "WARP_SZ": "32",
    "lanemask_eq": "1u << ::interpreter::lane_index()",
    "lanemask_lt": "(1u << ::interpreter::lane_index()) - 1",
    "lanemask_le": "2u * (1u << ::interpreter::lane_index()) - 1",
    "lanemask_gt": "~(2u * (1u << ::interpreter::lane_index()) - 1)",
    "lanemask_ge": "~((1u << ::interpreter::lane_index()) - 1)",
    "smid": f"{_PTX}sm_number()",
    "cluster_ctarank": "::interpreter::cluster_rank()",
    "cluster_nctarank": "::interpreter::cluster_size()",
    **{f"{ptx}.{i}": f"{cpp}.{i}" for i in "xyz" for ptx, cpp in (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim"))},
    **{f"cluster_ctaid.{i}": f"::__clusterRelativeBlockIdx().{i}" for i in "xyz"},
    **{f"cluster_nctaid.{i}": f"::__clusterDim().{i}" for i in "xyz"},
    **{f"nclusterid.{i}": f"gridDim.{i} / ::__clusterDim().{i}" for i in "xyz"},
    **{f"clusterid.{i}": f"::__clusterIdx().{i}" for i in "xyz"},
}


class NotHere(Exception):
    """What the interpreter does not have, as the reader knows it."""


class OfMacro(NotHere):
    """What only the preprocessor knows."""


def _opening(visible, i):
    """Index of what follows the word at `i` and its qualifiers."""
    i += 1
    while i < len(visible) and visible[i].text in _QUALIFIERS:
        i += 1
    return i


def is_empty(visible, i):
    """Whether the asm statement that begins with token `i` has no text."""
    opening = _opening(visible, i)
    return [t.text for t in visible[opening : opening + 2]] == ["(", '""']


def find(visible, partner, i):
    """Index of the ')' that ends the asm statement which begins with token `i`, or None if none does. An asm statement without text
    only keeps the compiler from moving accesses: g++ has that too, but for PTX's names of some registers."""
    if visible[i].text not in ASM:
        return None
    opening = _opening(visible, i)
    if opening not in partner or visible[opening].text != "(":
        return None
    if is_empty(visible, i) and not any(re.fullmatch(r'"[=+&]*[fh]"', t.text) for t in visible[opening : partner[opening]]):
        return None
    return partner[opening]


def _parse(visible, partner, i, source):
    """The text of the statement that begins at token `i`, its outputs and its inputs, which are pairs of constraint and expression."""
    k = begin = _opening(visible, i) + 1
    end, sections = partner[begin - 1], []
    while k <= end:
        mark = visible[k].text
        if k == end or mark in (":", "::"):
            sections.append((begin, k))
            if mark == "::" and k != end:
                sections.append((k + 1, k + 1))
            begin = k + 1
        k = partner[k] + 1 if mark in ("(", "[", "{") and k in partner else k + 1
    text = visible[sections[0][0] : sections[0][1]]
    if any(t.kind != "string" for t in text):
        raise OfMacro("with a text that a macro makes")
    outputs, inputs = (_operands(visible, partner, *s, source) for s in (sections[1:3] + [(0, 0), (0, 0)])[:2])
    return "".join(_unquoted(t.text) for t in text), outputs, inputs


def _unquoted(literal):
    if literal.startswith("R"):
        return re.sub(r'\AR"(\w*)\((.*)\)\1"\Z', r"\2", literal, flags=re.DOTALL)
    return re.sub(r"\\(\r?\n|.)", lambda m: {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}.get(m[1], " "), literal[1:-1], flags=re.DOTALL)


def _operands(visible, partner, begin, end, source):
    found, k = [], begin
    while k < end:
        if visible[k].kind != "string" or visible[k + 1].text != "(":
            raise OfMacro("with operands that a macro makes")
        constraint = _unquoted(visible[k].text)
        if constraint.lstrip("=+&") not in _REGISTERS:
            raise NotHere(f'with an operand of the constraint "{constraint}"')
        found.append((constraint, source(k + 2, partner[k + 1] - 1)))
        k = partner[k + 1] + 1
        k += k < end and visible[k].text == ","  # which nvcc does not miss
    return found


def translate(visible, partner, i, source):
    """C++ for the asm statement that begins with token `i`, on one line; `source(first, last)` is the text of some tokens. Raises
    NotHere."""
    body, outputs, inputs = _parse(visible, partner, i, source)
    if not body.strip():  # CUTLASS's warpgroup_fence_operand: no access
        return '__asm__ volatile("" ::: "memory")'
    return _Block(body, outputs, inputs, visible[i + 1].text in _QUALIFIERS).text()


class _Block:
    def __init__(self, body, outputs, inputs, is_volatile):
        self.is_volatile = is_volatile
        self.body = body
        self.outputs = len(outputs)
        self.operands = outputs + inputs
        self.registers = [{}]  # of each scope: PTX name -> C++ name
        self.predicates = set()  # C++ names
        self.count = 0
        self.has_carry = False
        self.late = set()  # operands that an instruction writes after the statement
        self.named = set()  # operands that stand in the text

    def text(self):
        body = self._scope(iter(self._statements()), top=True)
        before, behind = ["uint32_t ptx_carry = 0;"] if self.has_carry else [], []
        for n, (constraint, expression) in enumerate(self.operands):
            register = _REGISTERS[constraint.lstrip("=+&")]
            if n < self.outputs and n not in self.named:
                continue  # as warpgroup_fence_operand's: it only keeps the compiler from moving accesses
            if n in self.late:
                before.append(f"auto&& ptx_to{n} = ({expression});")
            elif n < self.outputs:
                before.append(f"auto&& ptx_to{n} = ({expression}); {register} ptx_{n}" + (f" = {_PTX}value<{register}>(ptx_to{n});" if "+" in constraint else ";"))
                behind.append(f"{_PTX}put(ptx_to{n}, ptx_{n});")
            elif register:
                before.append(f"[[maybe_unused]] {register} ptx_{n} = {_PTX}value<{register}>({expression});")
            else:
                before.append(f"[[maybe_unused]] constexpr auto ptx_{n} = {expression};")
        return " ".join(["do {", *before, "{", body, "}", *behind, "} while (0)"])

    # --- the text's structure ---

    def _statements(self):
        """'{', '}', 'label:' and instructions without their ';'."""
        text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", self.body, flags=re.DOTALL).replace("%%", "\0")
        text = re.sub(r"%(\d+)", self._operand_mark, text).replace("%=", "_here").replace("\0", "%")
        found = []
        while text := text.strip():
            if text[0] in "{}":
                found.append(text[0])
                text = text[1:]
            elif label := re.match(r"([\w$%.]+)\s*:(?!:)", text):
                found.append(label[1] + ":")
                text = text[label.end() :]
            elif text[0] == ";":
                text = text[1:]
            else:
                instruction, _, text = text.partition(";")  # with the braces of its vectors
                found.append(" ".join(instruction.split()))
        return found

    def _operand_mark(self, match):
        if int(match[1]) >= len(self.operands):
            raise NotHere(f"with an operand {match[0]} that the statement does not have")
        self.named.add(int(match[1]))
        return f"@{match[1]}"

    def _scope(self, items, top=False):
        """The items up to the '}' that ends the scope."""
        parts, labels = [], []
        for item in items:
            if item == "{":
                self.registers.append({})
                parts.append("{ " + self._scope(items) + " }")
                self.registers.pop()
            elif item == "}":
                if top:
                    raise NotHere("with a '}' too many")
                break
            elif item.endswith(":"):
                labels.append(_name(item[:-1]))
                parts.append(f"{labels[-1]}: ;")
            elif item.startswith(".reg"):
                parts.append(self._declare(item))
            elif item.startswith("."):
                raise NotHere(f"({item.split()[0]})")
            else:
                parts.append(self._instruction(item))
        return " ".join([f"__label__ {label};" for label in labels] + parts)

    def _declare(self, item):
        match = re.match(r"\.reg\s+\.(\w+)\s+(.*)", item)
        if not match or match[1] not in _TYPES:
            raise NotHere(f"({item})")
        type_, names = _TYPES[match[1]], []
        for name in match[2].split(","):
            several = re.fullmatch(r"([\w$%]+)<(\d+)>", name.strip())
            for each in [f"{several[1]}{n}" for n in range(int(several[2]))] if several else [name.strip()]:
                self.count += 1
                self.registers[-1][each] = f"{_name(each)}_{self.count}"
                names.append(self.registers[-1][each])
        if match[1] == "pred":
            self.predicates.update(names)
        return f"[[maybe_unused]] {_HELD_AS.get(type_, type_)} {', '.join(names)};"

    def _instruction(self, item):
        predicate = re.match(r"@(!?)([a-zA-Z_$%][\w$%]*)\s+", item)  # an operand is '@' and a number
        rest = item[predicate.end() :] if predicate else item
        name, _, arguments = rest.partition(" ")
        code = _code(name, [a.strip() for a in _split(arguments)], self)
        return f"if ({predicate[1]}{self.register(predicate[2])}) {{ {code} }}" if predicate else code

    # --- operands ---

    def register(self, name):
        for scope in reversed(self.registers):
            if name in scope:
                return scope[name]
        raise NotHere(f"({name})" if name.startswith("%") else f"with a register {name} that nobody declares")

    def is_predicate(self, operand):
        name = operand.strip().lstrip("!")
        return re.match(r"[a-zA-Z_$%]", name) is not None and self.register(name) in self.predicates

    def read(self, operand, type_=None):
        """C++ for the operand's value as `type_`, or as it is."""
        operand = operand.strip()
        if operand.startswith("!"):
            return f"!{self.read(operand[1:], type_)}"
        if number := re.fullmatch(r"@(\d+)", operand):
            value = f"ptx_{number[1]}"
        elif re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F]+|\d+)[uU]?", operand):
            if type_ in _HELD_AS:
                return f"{_PTX}as<{type_}>(uint32_t({operand}))"
            return f"static_cast<{type_}>({operand})" if type_ else operand
        elif hexadecimal := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            value = f"std::bit_cast<float>(0x{hexadecimal[1]}u)"
        elif hexadecimal := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
            value = f"std::bit_cast<double>(0x{hexadecimal[1]}ull)"
        elif re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", operand):
            value = operand
        elif operand.startswith("%") and operand[1:] in _SPECIAL:
            value = f"({_SPECIAL[operand[1:]]})"
        else:
            value = self.register(operand)
        return f"{_PTX}as<{type_}>({value})" if type_ else value

    def write(self, operand, value):
        operand = operand.strip()
        if operand == "_":
            return f"static_cast<void>({value});"
        to = f"ptx_{operand[1:]}" if operand.startswith("@") else self.register(operand)
        return f"{_PTX}put({to}, {value});"

    def reference(self, operand):
        """The user's own variable of an output: what an instruction writes later."""
        number = int(operand.strip()[1:]) if re.fullmatch(r"@\d+", operand.strip()) else self.outputs
        if number >= self.outputs:
            raise NotHere("with accumulators that are no outputs")
        self.late.add(number)
        return f"ptx_to{number}"

    def elements(self, operand):
        return [e.strip() for e in operand.strip()[1:-1].split(",")] if operand.startswith("{") else [operand]

    def address(self, operand, space, type_="char"):
        """A pointer for '[register + offset]'."""
        if space == "shared":
            return f"static_cast<{type_}*>({_PTX}shared_at({self.place(operand)}))"
        return f"reinterpret_cast<{type_}*>({self.place(operand, 'uint64_t')})"

    def place(self, operand, number="uint32_t"):
        """The number that '[register + offset]' is."""
        match = re.fullmatch(r"\[\s*([@\w$%]+)\s*(?:\+\s*(-?[@\w$%]+))?\s*\]", operand)
        if not match:
            raise NotHere(f"with an address {operand}")
        offset = f" + ({self.read(match[2])})" if match[2] else ""
        return f"{number}({self.read(match[1])}){offset}"


def _name(ptx):
    return "ptx_" + re.sub(r"\W", "_", ptx)


def _split(arguments):
    """At the commas that stand in no brackets."""
    parts, depth, part = [], 0, ""
    for c in arguments:
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return parts + [part] if part.strip() else parts


# ------------------------------------------------------------------------------------------------------------- instructions
# Pairs: a pattern for the name; a function that gives C++ for its match, the operands and the block.
_INSTRUCTIONS = []


def _instruction(pattern):
    def register(function):
        _INSTRUCTIONS.append((re.compile(pattern), function))
        return function

    return register


def _in_order(name):
    """PTX takes a load's order, scope and space in any order."""
    operation, *parts = name.split(".")
    if operation not in ("ld", "st", "atom", "red") or parts[0] == "async":
        return name
    kinds = (("weak", "volatile", "relaxed", "acquire", "release", "acq_rel"), ("cta", "cluster", "gpu", "sys"), ("global", "shared", "shared::cta", "shared::cluster", "const"))
    sorted_ = [p for kind in kinds for p in parts if p in kind]
    return ".".join([operation, *sorted_, *(p for p in parts if p not in sorted_)])


def _code(name, operands, block):
    ordered = _in_order(name)
    for pattern, function in _INSTRUCTIONS:
        if match := pattern.fullmatch(ordered):
            try:
                return function(match, operands, block)
            except (IndexError, ValueError):
                break
    raise NotHere(f"({name})")


_INT = r"[usb](?:8|16|32|64)"
_NUMBER = rf"{_INT}|f16x2|bf16x2|f16|bf16|f32|f64"


class _Operand:
    """In a format, '{1:u32}' is operand 1 read as a u32, '{1:shared}' and '{1:global}' are the address that it is, '{1:mbarrier}' too;
    '{1:place}' is the address as its register has it."""

    def __init__(self, text, block):
        self.text, self.block = text, block

    def __format__(self, kind):
        if kind == "place":
            return self.block.place(self.text)
        if kind == "mbarrier":
            return self.block.address(self.text, "shared", "uint64_t")
        return self.block.address(self.text, kind) if kind in ("shared", "global") else self.block.read(self.text, _TYPES[kind])


def _unknown():
    raise ValueError


def _call(template):
    """The function of an instruction that is one expression: `template` is its format, with the name's match as `m`."""
    code, is_result = template.removeprefix("{0} = "), template.startswith("{0} = ")

    def function(m, o, b):
        expression = code.format(*(_Operand(text, b) for text in o), m=m, I=_INTERPRETER, P=_PTX)
        return b.write(o[0], expression) if is_result else expression + ";"

    return function


_CTA = r"(?:\.shared(?:::cta)?)?"
_ACQUIRE = r"(?:\.acquire)?"
for _pattern, _template in (
    # Numbers.
    (rf"selp\.({_NUMBER})", "{0} = {3:pred} ? {1:{m[1]}} : {2:{m[1]}}"),
    (rf"(?:mad\.lo|mad\.rn|fma\.rn(?:\.ftz)?)\.({_NUMBER})", "{0} = {P}multiply_add({1:{m[1]}}, {2:{m[1]}}, {3:{m[1]}})"),
    (r"(shl|shr)\.([usb](?:16|32|64))", "{0} = {P}{m[1]}({1:{m[2]}}, {2:u32})"),
    (r"sad\.([us]32)", "{0} = {P}sad({1:{m[1]}}, {2:{m[1]}}) + {3:u32}"),
    (r"dp4a\.u32\.u32", "{0} = {P}dp4a<uint8_t>({1:u32}, {2:u32}, {3:u32})"),
    (r"dp4a\.s32\.s32", "{0} = {P}dp4a<int8_t>({1:u32}, {2:u32}, {3:u32})"),
    (r"lop3\.b32", "{0} = {P}lop3({1:u32}, {2:u32}, {3:u32}, {4:u32})"),
    (r"prmt\.b32", "{0} = {P}prmt({1:u32}, {2:u32}, {3:u32})"),
    (r"bfe\.([us])32", "{0} = {P}bfe_{m[1]}32({1:u32}, {2:u32}, {3:u32})"),
    (r"bfi\.b32", "{0} = {P}bfi({1:u32}, {2:u32}, {3:u32}, {4:u32})"),
    (r"(popc|clz|brev)\.b32", "{0} = ::__{m[1]}({1:b32})"),
    (r"(popc|clz|brev)\.b64", "{0} = ::__{m[1]}ll({1:b64})"),
    (r"shf\.([lr])\.wrap\.b32", "{0} = ::__funnelshift_{m[1]}({1:u32}, {2:u32}, {3:u32})"),
    (r"copysign\.f32", "{0} = ::copysignf({2:f32}, {1:f32})"),
    (r"ex2(?:\.approx|\.rn)(?:\.ftz)?\.f32", "{0} = ::exp2f({1:f32})"),
    (r"lg2(?:\.approx|\.rn)(?:\.ftz)?\.f32", "{0} = ::log2f({1:f32})"),
    (r"rcp(?:\.approx|\.rn)(?:\.ftz)?\.f32", "{0} = 1.0f / ({1:f32})"),
    (r"(rsqrt|sqrt|sin|cos|tanh)(?:\.approx|\.rn)(?:\.ftz)?\.f32", "{0} = ::{m[1]}f({1:f32})"),
    (r"cvt\.rn\.f16x2\.f32", "{0} = ::__floats2half2_rn({2:f32}, {1:f32})"),
    (r"cvt\.rn\.bf16x2\.f32", "{0} = ::__floats2bfloat162_rn({2:f32}, {1:f32})"),
    (r"cvt\.rna\.tf32\.f32", "{0} = {P}to_tf32({1:f32})"),
    # Addresses, and what other threads see.
    (r"cvta\.to\.shared(?:::cta|::cluster)?\.u(32|64)", "{0} = uint{m[1]}_t({I}shared_address(reinterpret_cast<void*>({1:u64})))"),
    (r"cvta\.shared(?:::cta|::cluster)?\.u(?:32|64)", "{0} = reinterpret_cast<uint64_t>({P}shared_at({1:u32}))"),
    (r"cvta(?:\.to)?\.(?:global|const|local)\.u(?:32|64)", "{0} = {1:u64}"),
    (r"mapa\.shared::cluster\.u(?:32|64)", "{0} = {P}shared_in({1:u32}, {2:u32})"),
    (r"mapa\.u(?:32|64)", "{0} = reinterpret_cast<uint64_t>({I}mapa(reinterpret_cast<void*>({1:u64}), {2:u32}))"),
    (r"membar\.cta|fence\.(?:acq_rel|sc)\.cta", "::__threadfence_block()"),
    (r"membar\.gl|fence\.(?:acq_rel|sc)\.(?:cluster|gpu)|fence\.proxy\.alias", "::__threadfence()"),
    (r"membar\.sys|fence\.(?:acq_rel|sc)\.sys", "::__threadfence_system()"),
    (r"fence\.proxy\.async\.shared(?:::cta|::cluster)?", "{I}fence_proxy_async(true, false)"),
    (r"fence\.proxy\.async\.global", "{I}fence_proxy_async(false, true)"),
    (r"fence\.proxy\.async", "{I}fence_proxy_async(true, true)"),
    (r"fence\.mbarrier_init\.release\.cluster", "{I}fence_mbarrier_init()"),
    # Hints.
    (r"prefetchu?(?:\.global|\.local)?\.L[12](?:::\w+)?|prefetch\.tensormap|cp\.async\.bulk\.prefetch\.(?!tensor)\S+|applypriority\.\S+", ""),
    (r"createpolicy\.\S+", "{0} = uint64_t(0)"),
    # Threads of a warp and of a block.
    (r"trap|brkpt", "::__{m[0]}()"),
    (r"nanosleep\.u32", "::__nanosleep({0:u32})"),
    (r"bar\.warp\.sync", "::__syncwarp({0:u32})"),
    (r"barrier\.cluster\.(arrive|wait)(?:\.(?:release|acquire))?(?:\.aligned)?", "{I}cluster_barrier_{m[1]}()"),
    (r"barrier\.cluster\.arrive\.relaxed(?:\.aligned)?", "{I}cluster_barrier_arrive_relaxed()"),
    (r"vote\.sync\.ballot\.b32", "{0} = ::__ballot_sync({2:u32}, {1:pred})"),
    (r"vote\.sync\.(any|all)\.pred", "{0} = ::__{m[1]}_sync({2:u32}, {1:pred})"),
    (r"match\.any\.sync\.(b32|b64)", "{0} = ::__match_any_sync({2:u32}, {1:{m[1]}})"),
    (r"redux\.sync\.(add|min|max|and|or|xor)\.([usb]32)", "{0} = ::__reduce_{m[1]}_sync({2:u32}, {1:{m[2]}})"),
    (r"activemask\.b32", "{0} = ::__activemask()"),
    (r"griddepcontrol\.(wait|launch_dependents)", "{I}griddepcontrol_{m[1]}()"),
    (r"setmaxnreg\.inc\.sync\.aligned\.u32", "{I}setmaxnreg({0:u32}, true)"),
    (r"setmaxnreg\.dec\.sync\.aligned\.u32", "{I}setmaxnreg({0:u32}, false)"),
    # Copies in the background, and who waits for them.
    (r"cp\.async\.(commit_group|wait_all)", "{I}cp_async_{m[1]}()"),
    (r"cp\.async\.wait_group", "{I}cp_async_wait_group({0:s32})"),
    (rf"cp\.async\.mbarrier\.arrive{_CTA}\.b64", "{I}cp_async_mbarrier_arrive({0:mbarrier}, false)"),
    (rf"cp\.async\.mbarrier\.arrive\.noinc{_CTA}\.b64", "{I}cp_async_mbarrier_arrive({0:mbarrier}, true)"),
    (
        r"cp\.async\.bulk\.shared::(?:cluster|cta)\.global\.mbarrier::complete_tx::bytes(?:\.L2::cache_hint)?",
        "{I}cp_async_bulk_load({0:shared}, {1:global}, {2:u32}, {3:mbarrier})",
    ),
    (
        r"cp\.async\.bulk\.shared::cluster\.global\.mbarrier::complete_tx::bytes\.multicast::cluster(?:\.L2::cache_hint)?",
        "{I}cp_async_bulk_load_multicast({0:shared}, {1:global}, {2:u32}, {3:mbarrier}, {4:u16})",
    ),
    (r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?", "{I}cp_async_bulk_store({0:global}, {1:shared}, {2:u32})"),
    (r"cp\.async\.bulk\.commit_group", "{I}cp_async_bulk_commit_group()"),
    (r"cp\.async\.bulk\.wait_group", "{I}cp_async_bulk_wait_group({0:u32}, false)"),
    (r"cp\.async\.bulk\.wait_group\.read", "{I}cp_async_bulk_wait_group({0:u32}, true)"),
    (rf"mbarrier\.init{_CTA}\.b64", "{I}mbarrier_init({0:mbarrier}, {1:u32})"),
    (rf"mbarrier\.inval{_CTA}\.b64", "{I}mbarrier_inval({0:mbarrier})"),
    (r"mbarrier\.expect_tx(?:\.relaxed)?(?:\.cta|\.cluster)?\.shared::cluster\.b64", "{P}expect_in_cluster({0:place}, {1:u32})"),
    (rf"mbarrier\.arrive_drop(?:\.release)?(?:\.cta)?{_CTA}\.b64", "{I}block_barrier_arrive_and_drop({1:mbarrier})"),
    (rf"mbarrier\.expect_tx(?:\.relaxed)?(?:\.cta|\.cluster)?{_CTA}\.b64", "{I}mbarrier_expect_tx({0:mbarrier}, {1:u32})"),
    (rf"mbarrier\.(test_wait|try_wait)(?:\.parity)?{_ACQUIRE}(?:\.cta)?{_CTA}\.b64", "{0} = {I}mbarrier_{m[1]}_parity({1:mbarrier}, {2:u32})"),
    (rf"mbarrier\.test_wait(?:\.parity)?\.relaxed\.(?:cta|cluster){_CTA}\.b64", "{0} = {I}mbarrier_wait_relaxed({1:mbarrier}, {2:u32}, false)"),
    (rf"mbarrier\.try_wait(?:\.parity)?\.relaxed\.(?:cta|cluster){_CTA}\.b64", "{0} = {I}mbarrier_wait_relaxed({1:mbarrier}, {2:u32}, true)"),
    (rf"mbarrier\.(?:test_wait|try_wait)(?:\.parity)?{_ACQUIRE}\.cluster{_CTA}\.b64", "{0} = {I}mbarrier_try_wait_parity_acquire_cluster({1:mbarrier}, {2:u32})"),
    (r"wgmma\.(fence|commit_group)\.sync\.aligned", "{I}wgmma_{m[1]}()"),
    (r"wgmma\.wait_group\.sync\.aligned", "{I}wgmma_wait_group({0:u32})"),
):
    _INSTRUCTIONS.append((re.compile(_pattern), _call(_template)))


@_instruction(r"mov\.(\w+)")
def _mov(m, o, b):
    if o[0].startswith("{"):
        parts = b.elements(o[0])
        bits = int(m[1][1:]) // len(parts)
        value = b.read(o[1], f"uint{m[1][1:]}_t")
        return " ".join(b.write(p, f"uint{bits}_t({value} >> {bits * i})") for i, p in enumerate(parts))
    if o[1].startswith("{"):
        parts = b.elements(o[1])
        all_bits = int(m[1][1:])
        bits = all_bits // len(parts)
        return b.write(o[0], " | ".join(f"uint{all_bits}_t({b.read(p, f'uint{bits}_t')}) << {bits * i}" for i, p in enumerate(parts)))
    return b.write(o[0], b.read(o[1], _TYPES[m[1]]) if m[1] in _TYPES else _unknown())


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "div": "/", "rem": "%"}


@_instruction(rf"(add|sub|mul|div|rem|min|max|and|or|xor)(?:\.(?:rn|ftz|approx|full|lo))*\.({_NUMBER}|pred)")
def _arithmetic(m, o, b):
    x, y = (b.read(operand, _TYPES[m[2]]) for operand in o[1:3])
    if m[1] in ("min", "max"):
        return b.write(o[0], f"{_PTX}{m[1]}imum({x}, {y})")
    return b.write(o[0], f"{_TYPES[m[2]]}({x} {_ARITHMETIC[m[1]]} {y})")


@_instruction(r"(mul|mad)\.wide\.([us])(16|32)")
def _wide(m, o, b):
    wide, narrow = (_TYPES[f"{m[2]}{bits}"] for bits in (2 * int(m[3]), int(m[3])))
    product = f"{wide}({b.read(o[1], narrow)}) * {wide}({b.read(o[2], narrow)})"
    return b.write(o[0], f"{wide}({product}" + (f" + {b.read(o[3], wide)})" if m[1] == "mad" else ")"))


@_instruction(r"mul\.hi\.([us])(32|64)")
def _mul_hi(m, o, b):
    narrow, wide = _TYPES[m[1] + m[2]], {"s": "__int128", "u": "unsigned __int128"}[m[1]]
    product = " * ".join(f"static_cast<{wide}>({b.read(x, narrow)})" for x in o[1:3])
    return b.write(o[0], f"static_cast<{narrow}>({product} >> {m[2]})")


@_instruction(r"(add|sub)(c)?(\.cc)?\.[us]32")
def _with_carry(m, o, b):
    if m[2] and not b.has_carry:
        raise NotHere(f"({m[0]} with the carry of another statement)")
    b.has_carry |= bool(m[3])
    x, y = (b.read(operand, "uint32_t") for operand in o[1:3])
    sign = {"add": "+", "sub": "-"}[m[1]]
    keep = " ptx_carry = ptx_wide >> 32 & 1;" if m[3] else ""
    carry = f" {sign} ptx_carry" if m[2] else ""
    return f"{{ const uint64_t ptx_wide = uint64_t({x}) {sign} {y}{carry}; {b.write(o[0], 'static_cast<uint32_t>(ptx_wide)')}{keep} }}"


@_instruction(rf"(not|neg|abs|cnot)(?:\.ftz)?\.({_NUMBER}|pred)")
def _unary(m, o, b):
    value = b.read(o[1], _TYPES[m[2]])
    of_type = _TYPES[m[2]]
    code = {"not": f"!{value}" if of_type == "bool" else f"~{value}", "neg": f"-{value}", "abs": f"{_PTX}absolute({value})", "cnot": f"!{value}"}
    return b.write(o[0], f"{of_type}({code[m[1]]})")


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


@_instruction(rf"setp\.({'|'.join(_COMPARISONS)})(?:\.(and|or|xor))?(?:\.ftz)?\.({_NUMBER})")
def _setp(m, o, b):
    result = f"({b.read(o[1], _TYPES[m[3]])} {_COMPARISONS[m[1]]} {b.read(o[2], _TYPES[m[3]])})"
    with_ = {"and": "&&", "or": "||", "xor": "!=", None: ""}[m[2]]
    other = f" {with_} {b.read(o[3], 'bool')}" if m[2] else ""
    to = o[0].split("|")
    return b.write(to[0], result + other) + (" " + b.write(to[1], f"!{result}{other}") if len(to) > 1 else "")


@_instruction(r"bra(?:\.uni)?")
def _bra(_, o, b):
    return f"goto {_name(o[0])};"


@_instruction(rf"cvt(?:\.(rn|rni|rz|rzi|rmi|rpi))?(?:\.ftz)?\.({_NUMBER})\.({_NUMBER})")
def _cvt(m, o, b):
    if "x2" in m[0] or (m[1] == "rz" and m[2] in ("f16", "bf16", "f32")):
        _unknown()
    rounding = {"rni": "kNearest", "rzi": "kZero", "rmi": "kDown", "rpi": "kUp"}.get(m[1], "kZero")
    return b.write(o[0], f"{_PTX}convert<{_TYPES[m[2]]}>({b.read(o[1], _TYPES[m[3]])}, {_PTX}Rounding::{rounding})")


# --- memory ---

_SPACE = r"(?:\.(global|shared|const)(?:::cta|::cluster)?)?"
_HINTS = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|L1::\w+|L2::\w+|level::\w+))*"


def _parts(operand, vector, block):
    """The operand's elements, which are as many as '.v2' or '.v4' says."""
    parts = block.elements(operand)
    return parts if len(parts) == int(vector or 1) else _unknown()


def _access(strong, parts):
    """Of '.acquire.cta' and its like: vectors are of the whole GPU, for there is no atomic of that size."""
    return "kWeak" if not strong else "kOfBlock" if strong.endswith(".cta") and len(parts) == 1 else "kRelaxed"


def _fence(strong):
    return "::__threadfence_block();" if strong.endswith(".cta") else "::__threadfence();"


@_instruction(rf"ld(?:\.weak)?(\.volatile|\.relaxed\.\w+|\.acquire\.\w+)?{_SPACE}(\.nc)?{_HINTS}(?:\.v([24]))?\.({_NUMBER})")
def _ld(m, o, b):
    type_, parts = _TYPES[m[5]], _parts(o[0], m[4], b)
    how = "kReadOnly" if m[3] else _access(m[1], parts)
    values = f"{_PTX}load<{type_}, {len(parts)}, {_PTX}Access::{how}>({b.address(o[1], m[2])})"
    fence = f" {_fence(m[1])}" if (m[1] or "").startswith(".acquire") else ""
    # What other threads change, read by an asm that nvcc may take for a function of its operands.
    note = "" if b.is_volatile or not m[1] else "::interpreter::note_not_volatile(); "
    return f"{{ {note}const auto ptx_loaded = {values};{fence} " + " ".join(b.write(p, f"ptx_loaded.at[{i}]") for i, p in enumerate(parts)) + " }"


@_instruction(rf"st(?:\.weak)?(\.volatile|\.relaxed\.\w+|\.release\.\w+)?{_SPACE}{_HINTS}(?:\.v([24]))?\.({_NUMBER})")
def _st(m, o, b):
    type_, parts = _TYPES[m[4]], _parts(o[1], m[3], b)
    fence = f"{_fence(m[1])} " if (m[1] or "").startswith(".release") else ""
    values = ", ".join(b.read(p, type_) for p in parts)
    return f"{fence}{_PTX}store<{type_}, {len(parts)}, {_PTX}Access::{_access(m[1], parts)}>({b.address(o[0], m[2])}, {{{{{values}}}}});"


@_instruction(r"st\.async(?:\.weak)?(?:\.shared::cluster)?\.mbarrier::complete_tx::bytes(?:\.v([24]))?\.([bfsu](?:32|64))")
def _st_async(m, o, b):
    type_, parts = _TYPES[m[2]], _parts(o[1], m[1], b)
    values = ", ".join(b.read(p, type_) for p in parts)
    where, barrier = b.address(o[0], "shared"), b.address(o[2], "shared", "uint64_t")
    return f"{{ const {type_} ptx_sent[] = {{{values}}}; {_INTERPRETER}st_async({where}, ptx_sent, sizeof ptx_sent, {barrier}); }}"


_ATOMICS = {"add": "atomicAdd", "min": "atomicMin", "max": "atomicMax", "and": "atomicAnd", "or": "atomicOr", "xor": "atomicXor", "exch": "atomicExch", "inc": "atomicInc", "dec": "atomicDec", "cas": "atomicCAS"}


@_instruction(rf"(atom|red)(?:\.(relaxed|acquire|release|acq_rel))?(?:\.(cta|cluster|gpu|sys))?{_SPACE}\.({'|'.join(_ATOMICS)})(?:\.noftz)?\.({_NUMBER})")
def _atom(m, o, b):
    type_ = _TYPES[m[6]]
    address, operands = (o[0], o[1:]) if m[1] == "red" else (o[1], o[2:])
    if m[5] in ("and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max") and m[6][0] == "f":
        _unknown()
    fence = "::__threadfence_block();" if m[3] == "cta" else "::__threadfence();"
    before = fence + " " if m[2] in ("release", "acq_rel") else ""
    behind = " " + fence if m[2] in ("acquire", "acq_rel") else ""
    function = f"::{_ATOMICS[m[5]]}{'_block' if m[3] == 'cta' else ''}"
    call = f"{function}({b.address(address, m[4], type_)}, {', '.join(b.read(x, type_) for x in operands[: 2 if m[5] == 'cas' else 1])})"
    return before + (b.write(o[0], call) if m[1] == "atom" else call + ";") + behind


# --- threads of a warp and of a block ---


@_instruction(r"(?:bar|barrier)(?:\.cta)?\.(sync|arrive)(?:\.aligned)?")
def _bar(m, o, b):
    if len(o) == 1:
        if m[1] != "sync":
            _unknown()
        return "::__syncthreads();" if o[0] == "0" else f"::__barrier_sync({b.read(o[0], 'uint32_t')});"
    function = "named_barrier_of_warps" if m[0].startswith("bar.") or m[0].endswith(".aligned") else "named_barrier"
    return f"{_INTERPRETER}{function}({b.read(o[0], 'uint32_t')}, {b.read(o[1], 'uint32_t')}, {'true' if m[1] == 'sync' else 'false'});"


@_instruction(r"shfl\.sync\.(idx|up|down|bfly)\.b32")
def _shfl(m, o, b):
    to = o[0].split("|")
    call = f"{_PTX}shuffle({_PTX}Shuffle::k{m[1].capitalize()}, {', '.join(b.read(x, 'uint32_t') for x in (o[4], o[1], o[2], o[3]))}, ptx_inside)"
    inside = " " + b.write(to[1], "ptx_inside") if len(to) > 1 else ""
    return f"{{ bool ptx_inside; {b.write(to[0], call)}{inside} }}"


@_instruction(r"elect\.sync")
def _elect(_, o, b):
    lane, predicate = o[0].split("|")
    elected = "const bool ptx_elected = ::interpreter::elect_sync(); " + b.write(predicate, "ptx_elected")
    if lane.strip() != "_":
        elected += " " + b.write(lane, f"::__ffs(static_cast<int>(::__ballot_sync({b.read(o[1], 'uint32_t')}, ptx_elected))) - 1")
    return f"{{ {elected} }}"


# --- copies in the background ---


@_instruction(r"cp\.async\.(ca|cg)\.shared(?:::cta)?\.global(?:\.L2::\w+)*")
def _cp_async(m, o, b):
    operands = o[:-1] if "cache_hint" in m[0] else o
    to, from_, size = b.address(operands[0], "shared"), b.address(operands[1], "global"), b.read(operands[2], "int32_t")
    if len(operands) < 4:
        return f"::interpreter::cp_async({to}, {from_}, {size});"
    if b.is_predicate(operands[3]):  # whether to ignore the source
        return f"::interpreter::cp_async_if(!({b.read(operands[3])}), {to}, {from_}, {size});"
    return f"::interpreter::cp_async({to}, {from_}, {size}, {b.read(operands[3], 'int32_t')});"


def _box(operand, dimensions, block):
    """Of '[map, {x, y}]', the map's address and an array of the coordinates."""
    map_, coordinates = _split(operand.strip()[1:-1])
    numbers = [block.read(c, "int32_t") for c in block.elements(coordinates.strip())]
    if len(numbers) != dimensions:
        _unknown()
    address = block.address(f"[{map_.strip()}]", "global", "const ::interpreter::TensorMap")
    return f"::interpreter::require_dimensions({address}, {dimensions})", f"const int ptx_at[] = {{{', '.join(numbers)}}};"


@_instruction(r"cp\.async\.bulk\.tensor\.([1-5])d\.shared::(?:cluster|cta)\.global(?:\.tile)?\.mbarrier::complete_tx::bytes(\.multicast::cluster)?(?:\.L2::cache_hint)?")
def _tensor_load(m, o, b):
    map_, at = _box(o[1], int(m[1]), b)
    mask = f", {b.read(o[3], 'uint16_t')}" if m[2] else ""
    function = "::interpreter::cp_async_bulk_tensor_load" + ("_multicast" if m[2] else "")
    return f"{{ {at} {function}({b.address(o[0], 'shared')}, {map_}, ptx_at, {b.address(o[2], 'shared', 'uint64_t')}{mask}); }}"


@_instruction(r"cp\.async\.bulk\.tensor\.([1-5])d\.global\.shared::cta(?:\.tile)?\.bulk_group(?:\.L2::cache_hint)?")
def _tensor_store(m, o, b):
    map_, at = _box(o[0], int(m[1]), b)
    return f"{{ {at} ::interpreter::cp_async_bulk_tensor_store({map_}, ptx_at, {b.address(o[1], 'shared')}); }}"


@_instruction(r"cp\.async\.bulk\.prefetch\.tensor\.([1-5])d\.L2\.global(?:\.tile)?(?:\.L2::cache_hint)?")
def _tensor_prefetch(m, o, b):
    map_, at = _box(o[0], int(m[1]), b)
    return f"{{ {at} ::interpreter::cp_async_bulk_prefetch_tensor({map_}, ptx_at); }}"


@_instruction(r"mbarrier\.arrive(\.expect_tx)?(?:\.(release|relaxed))?(?:\.(cta|cluster))?(?:\.shared(?:::cta|(::cluster))?)?\.b64")
def _mbarrier_arrive(m, o, b):
    address, *more = o if o[0].startswith("[") else o[1:]
    state = o[0] if o[0] not in ("_", address) else None
    if (m[1] and not more) or (m[4] and state):
        _unknown()
    number = b.read(more[0], "uint32_t") if more else "1"
    how = [f".expected_bytes = {number}, .expects = true" if m[1] else f".count = {number}"]
    how += [".relaxed = true"] if m[2] == "relaxed" else [".release_cluster = true"] if m[3] == "cluster" else []
    how = f"{_INTERPRETER}Arrival{{{', '.join(how)}}}"
    if m[4]:
        return f"{_PTX}arrive_in_cluster({b.place(address)}, {how});"
    call = f"{_INTERPRETER}mbarrier_arrive_as({_Operand(address, b):mbarrier}, {how})"
    return b.write(state, f"uint64_t({call})") if state else f"{call};"


# --- matrices ---


@_instruction(r"ldmatrix\.sync\.aligned\.(?:m8n8\.)?x([124])(?:\.m8n8)?(\.trans)?(?:\.m8n8)?(?:\.shared(?:::cta)?)?\.b16")
def _ldmatrix(m, o, b):
    to = b.elements(o[0])
    if len(to) != int(m[1]):
        _unknown()
    return f"{{ uint32_t ptx_r[{m[1]}]; ::interpreter::ldmatrix(ptx_r, {b.address(o[1], 'shared')}, {m[1]}, {'true' if m[2] else 'false'}); " + " ".join(b.write(t, f"ptx_r[{i}]") for i, t in enumerate(to)) + " }"


@_instruction(r"stmatrix\.sync\.aligned\.(?:m8n8\.)?x([124])(?:\.m8n8)?(\.trans)?(?:\.m8n8)?(?:\.shared(?:::cta)?)?\.b16")
def _stmatrix(m, o, b):
    return f"{{ const uint32_t ptx_r[] = {{{', '.join(b.read(r, 'uint32_t') for r in b.elements(o[1]))}}}; ::interpreter::stmatrix({b.address(o[0], 'shared')}, ptx_r, {m[1]}, {'true' if m[2] else 'false'}); }}"


@_instruction(r"movmatrix\.sync\.aligned\.m8n8\.trans\.b16")
def _movmatrix(_, o, b):
    return b.write(o[0], f"{_PTX}movmatrix({b.read(o[1], 'uint32_t')})")


_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "f64": 64}
# Types of a and b that one instruction takes, and those of their sums.
_FACTORS = [
    ({"f16"}, {"f16", "f32"}),
    ({"bf16"}, {"f32"}),
    ({"tf32"}, {"f32"}),
    ({"e4m3", "e5m2"}, {"f16", "f32"}),
    ({"s8", "u8"}, {"s32"}),
    ({"f64"}, {"f64"}),
]


def _form(a, b, sums, saturates):
    """C++ for the form of a multiplication."""
    if not any({a, b} <= factors and sums in of for factors, of in _FACTORS) or (saturates and sums != "s32"):
        _unknown()
    numbers = ", ".join(f"{_INTERPRETER}Number::k{t.capitalize()}" for t in (a, b, sums))
    return f"{_INTERPRETER}MmaForm{{{numbers}, {'true' if saturates else 'false'}}}"


def _array(name, registers, block, type_="uint32_t"):
    return f"const {type_} {name}[] = {{{', '.join(block.read(x, type_) for x in registers)}}};"


@_instruction(r"mma\.sync\.aligned\.m(8|16)n8k(4|8|16|32)\.row\.col(\.satfinite)?\.(f64|f32|f16|s32)\.(\w+)\.(\w+)\.(f64|f32|f16|s32)")
def _mma(m, o, b):
    rows, k, form = int(m[1]), int(m[2]), _form(m[5], m[6], m[4], m[3])
    is_double = m[4] == "f64"
    words = k if is_double else k * _BITS[m[5]] // 32  # of a row
    of_m = rows == 16 or (m[4], k) in (("f64", 4), ("s32", 16))
    if m[4] != m[7] or not of_m or words not in ((4, 8, 16) if is_double else (4, 8)):
        _unknown()
    d, a, second, c = (b.elements(x) for x in o)
    sums = rows // (8 if m[4] == "f16" else 4)
    if (len(d), len(a), len(second), len(c)) != (sums, rows // 8 * words // 4, words // 4, sums):
        _unknown()
    register = "double" if is_double else "uint32_t"
    arrays = f"{_array('ptx_a', a, b, register)} {_array('ptx_b', second, b, register)} {register} ptx_c[] = {{{', '.join(b.read(x, register) for x in c)}}};"
    results = " ".join(b.write(x, f"ptx_c[{i}]") for i, x in enumerate(d))
    return f"{{ {arrays} {_INTERPRETER}mma({form}, {rows}, {k}, ptx_c, ptx_a, ptx_b); {results} }}"


@_instruction(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(8|16|32)\.(f32|f16|s32)\.(\w+)\.(\w+?)(\.satfinite)?")
def _wgmma(m, o, b):
    n, sums, in_registers = int(m[1]), b.elements(o[0]), o[1].startswith("{")
    form, bits = _form(m[4], m[5], m[3], m[6]), _BITS.get(m[4])
    # Behind the predicate: signs of a and b, unless they are integers; whether they are transposed, of 16-bit numbers in shared memory.
    signs, transposed = 0 if m[3] == "s32" else 2, 0 if bits != 16 else 1 if in_registers else 2
    of_n = n % 8 == 0 and 8 <= n <= 256 and (m[3] != "s32" or n % 16 == 0 or n in (8, 24))
    words = n // (4 if m[3] == "f16" else 2)
    if bits * int(m[2]) != 256 or not of_n or len(sums) != words or len(o) != 4 + signs + transposed:
        _unknown()
    arrays, given = "", [f".descriptor_b = {b.read(o[2], 'uint64_t')}", f".accumulates = {b.read(o[3], 'bool')}"]
    if in_registers:
        a = b.elements(o[1])
        if len(a) != 4:
            _unknown()
        arrays = _array("ptx_a", a, b) + " "
        given = [given[0], ".a = ptx_a", given[1]]
    else:
        given.insert(0, f".descriptor_a = {b.read(o[1], 'uint64_t')}")
    if signs:
        given.append(f".negates = ({b.read(o[4], 'int32_t')}) * ({b.read(o[5], 'int32_t')}) < 0")
    given += [f".transposed_{x} = {b.read(t, 'bool')}" for x, t in zip("b" if transposed == 1 else "ab", o[6:])]
    registers = ", ".join(b.reference(x) for x in sums)
    return f"{{ {arrays}{_INTERPRETER}wgmma({form}, {n}, {_PTX}in_a_row({_INTERPRETER}Site::here(), {registers}), {{{', '.join(given)}}}); }}"
