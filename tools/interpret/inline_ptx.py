"""Inline PTX as C++: an asm statement becomes a block that calls what the interpreter has for each instruction.

Registers are variables of their size, labels and predicates what C++ has for them. common/interpreter/cuda_runtime/inline_ptx.h
has the rest. Who asks for an instruction that is not here is told its name.
"""

import re

from tokens import tokens

_PTX = "::interpreter::ptx::"
_REGISTERS = {"h": "uint16_t", "r": "uint32_t", "l": "uint64_t", "f": "float", "d": "double", "n": None, "C": None}
_ASM, _BEFORE_TEXT = ("asm", "__asm", "__asm__"), ("(", "volatile", "__volatile__")
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
    **{f"clusterid.{i}": f"::__clusterIdx().{i}" for i in "xyz"},
}


class NotHere(Exception):
    """What the interpreter does not have, as the reader knows it."""


class Statement:
    """One asm statement: the tokens of its text, outputs and inputs as pairs (constraint, expression)."""

    def __init__(self, text, outputs, inputs):
        self.text, self.outputs, self.inputs = text, outputs, inputs


def find(visible, partner, i):
    """Index of the ')' that ends the asm statement which begins with token `i`, or None if none does. An asm statement without text
    only keeps the compiler from moving accesses: g++ has that too."""
    if visible[i].text not in _ASM:
        return None
    j = i + 1
    while j < len(visible) and visible[j].text in _BEFORE_TEXT[1:]:
        j += 1
    if j not in partner or visible[j].text != "(":
        return None
    return None if all(t.text == '""' for t in visible[j + 1 : j + 2]) else partner[j]


def _parse(visible, partner, i, source):
    """The statement that begins at token `i`; `source(first, last)` is the text of some tokens."""
    j = i
    while visible[j].text != "(":
        j += 1
    end = partner[j]
    sections, begin, k = [], j + 1, j + 1
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
        raise NotHere("with a text that a macro makes")
    operands = [_operands(visible, partner, *s, source) if s[0] < s[1] else [] for s in (sections[1:3] + [(0, 0), (0, 0)])[:2]]
    return Statement("".join(_unquoted(t.text) for t in text), *operands)


def _unquoted(literal):
    if literal.startswith("R"):
        return re.sub(r'\AR"(\w*)\((.*)\)\1"\Z', r"\2", literal, flags=re.DOTALL)
    return re.sub(r"\\(\r?\n|.)", lambda m: {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}.get(m[1], " "), literal[1:-1], flags=re.DOTALL)


def _operands(visible, partner, begin, end, source):
    found, k = [], begin
    while k < end:
        if visible[k].kind != "string" or visible[k + 1].text != "(":
            raise NotHere("with operands that a macro makes")
        constraint = _unquoted(visible[k].text)
        if constraint.lstrip("=+&") not in _REGISTERS:
            raise NotHere(f'with an operand of the constraint "{constraint}"')
        found.append((constraint, source(k + 2, partner[k + 1] - 1)))
        k = partner[k + 1] + 2
    return found


def translate(visible, partner, i, source):
    """C++ for the asm statement that begins with token `i`, on one line. Raises NotHere."""
    return _Block(_parse(visible, partner, i, source)).text()


class _Block:
    def __init__(self, statement):
        self.outputs = len(statement.outputs)
        self.operands = statement.outputs + statement.inputs
        self.body = statement.text
        self.registers = [{}]  # of each scope: PTX name -> C++ name
        self.predicates = set()  # C++ names
        self.count = 0
        self.has_carry = False
        self.late = set()  # operands that an instruction writes after the statement

    def text(self):
        body = self._scope(_Cursor(self._statements()), top=True)
        before, behind = ["uint32_t ptx_carry = 0;"] if self.has_carry else [], []
        for n, (constraint, expression) in enumerate(self.operands):
            register = _REGISTERS[constraint.lstrip("=+&")]
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
        text = re.sub(r"%(\d+)", self._operand_mark, text).replace("\0", "%")
        found = []
        while text := text.strip():
            # Braces of a vector follow an operand's comma or the instruction's name.
            if text[0] in "{}":
                found.append(text[0])
                text = text[1:]
            elif label := re.match(r"([\w$%.]+)\s*:(?!:)", text):
                found.append(label[1] + ":")
                text = text[label.end() :]
            elif text[0] == ";":
                text = text[1:]
            else:
                instruction, _, text = text.partition(";")
                # The last instruction's ';' may lack where '}' ends the scope, but not inside of a vector.
                found.append(" ".join(instruction.split()))
        return found

    def _operand_mark(self, match):
        if int(match[1]) >= len(self.operands):
            raise NotHere(f"with an operand {match[0]} that the statement does not have")
        return f"@{match[1]}"

    def _scope(self, cursor, top=False):
        parts, labels = [], []
        while cursor.left():
            item = cursor.take()
            if item == "{":
                self.registers.append({})
                parts.append("{ " + self._scope(cursor) + " }")
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
        bits = {"__half": "uint16_t", "__half2": "uint32_t", "__nv_bfloat16": "uint16_t", "__nv_bfloat162": "uint32_t"}
        for name in match[2].split(","):
            several = re.fullmatch(r"([\w$%]+)<(\d+)>", name.strip())
            for each in [f"{several[1]}{n}" for n in range(int(several[2]))] if several else [name.strip()]:
                self.count += 1
                self.registers[-1][each] = f"{_name(each)}_{self.count}"
                names.append(self.registers[-1][each])
        if match[1] == "pred":
            self.predicates.update(names)
        return f"[[maybe_unused]] {bits.get(type_, type_)} {', '.join(names)};"

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
        raise NotHere(f"with a register {name} that nobody declares")

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
            if type_ in ("float", "double") and not operand.startswith("0x"):
                return f"{type_}({operand})"
            return f"static_cast<{type_}>({operand})" if type_ and not type_.startswith("__") else f"{_PTX}as<{type_}>(uint32_t({operand}))" if type_ else operand
        elif hexadecimal := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            value = f"std::bit_cast<float>(0x{hexadecimal[1]}u)"
        elif hexadecimal := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
            value = f"std::bit_cast<double>(0x{hexadecimal[1]}ull)"
        elif re.fullmatch(r"-?\d+\.\d*(e[-+]?\d+)?", operand):
            value = operand
        elif operand.startswith("%") and operand[1:] in _SPECIAL:
            value = f"({_SPECIAL[operand[1:]]})"
        elif operand.startswith("%") and not any(operand in scope for scope in self.registers):
            raise NotHere(f"({operand})")
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
        match = re.fullmatch(r"\[\s*([@\w$%]+)\s*(?:\+\s*(-?[@\w$%]+))?\s*\]", operand)
        if not match:
            raise NotHere(f"with an address {operand}")
        offset = f" + ({self.read(match[2])})" if match[2] else ""
        if space == "shared":
            return f"static_cast<{type_}*>({_PTX}shared_at(uint32_t({self.read(match[1])}){offset}))"
        return f"reinterpret_cast<{type_}*>(uint64_t({self.read(match[1])}){offset})"


class _Cursor:
    def __init__(self, items):
        self.items, self.at = items, 0

    def left(self):
        return self.at < len(self.items)

    def take(self):
        self.at += 1
        return self.items[self.at - 1]


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
# Each takes the match of its name, the operands and the block, and gives C++.
_INSTRUCTIONS = []


def _instruction(pattern):
    def register(function):
        _INSTRUCTIONS.append((re.compile(pattern), function))
        return function

    return register


def _in_order(name):
    """PTX takes a load's order, scope and space in any order."""
    operation, *parts = name.split(".")
    if operation not in ("ld", "st", "atom", "red"):
        return name
    kinds = (("weak", "volatile", "relaxed", "acquire", "release", "acq_rel"), ("cta", "cluster", "gpu", "sys"), ("global", "shared", "shared::cta", "shared::cluster", "const"))
    sorted_ = [p for kind in kinds for p in parts if p in kind]
    return ".".join([operation, *sorted_, *(p for p in parts if p not in sorted_)])


def _code(name, operands, block):
    for pattern, function in _INSTRUCTIONS:
        if match := pattern.fullmatch(_in_order(name)):
            try:
                return function(match, operands, block)
            except (IndexError, ValueError):
                break
    raise NotHere(f"({name})")


def _call(function, *arguments):
    return f"{function}({', '.join(arguments)});"


_INT = r"[usb](?:8|16|32|64)"
_NUMBER = rf"{_INT}|f16x2|bf16x2|f16|bf16|f32|f64"


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


def _unknown():
    raise ValueError


@_instruction(r"cvta(\.to)?\.(shared|global|const|local)(?:::cta|::cluster)?\.u(32|64)")
def _cvta(m, o, b):
    if m[2] != "shared":
        return b.write(o[0], b.read(o[1], "uint64_t"))
    if m[1]:
        return b.write(o[0], f"uint{m[3]}_t(::interpreter::shared_address(reinterpret_cast<void*>({b.read(o[1], 'uint64_t')})))")
    return b.write(o[0], f"reinterpret_cast<uint64_t>({_PTX}shared_at({b.read(o[1], 'uint32_t')}))")


_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^", "div": "/", "rem": "%"}


@_instruction(rf"(add|sub|mul|div|rem|min|max|and|or|xor)(?:\.(?:rn|rz|rm|rp|ftz|sat|approx|full|NaN|lo|xorsign|abs))*\.({_NUMBER}|pred)")
def _arithmetic(m, o, b):
    if re.search(r"\.(rz|rm|rp|sat|NaN|xorsign|abs)\b", m[0]):
        _unknown()
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


@_instruction(r"(sad|dp4a|copysign|set)\.(\S+)")
def _by_function(m, o, b):
    if m[1] == "copysign" and m[2] == "f32":
        return b.write(o[0], f"::copysignf({b.read(o[2], 'float')}, {b.read(o[1], 'float')})")
    if m[1] == "sad" and m[2] in ("u32", "s32"):
        return b.write(o[0], f"{_PTX}sad({', '.join(b.read(x, _TYPES[m[2]]) for x in o[1:3])}) + {b.read(o[3], 'uint32_t')}")
    if m[1] == "dp4a" and m[2] in ("u32.u32", "s32.s32"):
        return b.write(o[0], f"{_PTX}dp4a<{_TYPES[m[2][0] + '8']}>({', '.join(b.read(x, 'uint32_t') for x in o[1:4])})")
    return _unknown()


@_instruction(rf"(mad\.lo|fma\.rn|mad\.rn|fma\.rn\.ftz)\.({_NUMBER})")
def _mad(m, o, b):
    return b.write(o[0], f"{_PTX}multiply_add({', '.join(b.read(operand, _TYPES[m[2]]) for operand in o[1:4])})")


@_instruction(rf"(not|neg|abs|cnot)(?:\.ftz)?\.({_NUMBER}|pred)")
def _unary(m, o, b):
    value = b.read(o[1], _TYPES[m[2]])
    of_type = _TYPES[m[2]]
    code = {"not": f"!{value}" if of_type == "bool" else f"~{value}", "neg": f"-{value}", "abs": f"{_PTX}absolute({value})", "cnot": f"!{value}"}
    return b.write(o[0], f"{of_type}({code[m[1]]})")


@_instruction(r"(shl|shr)\.([usb])(16|32|64)")
def _shift(m, o, b):
    return b.write(o[0], f"{_PTX}{m[1]}({b.read(o[1], _TYPES[m[2] + m[3]])}, {b.read(o[2], 'uint32_t')})")


_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}


@_instruction(rf"setp\.({'|'.join(_COMPARISONS)})(?:\.(and|or|xor))?(?:\.ftz)?\.({_NUMBER})")
def _setp(m, o, b):
    result = f"({b.read(o[1], _TYPES[m[3]])} {_COMPARISONS[m[1]]} {b.read(o[2], _TYPES[m[3]])})"
    with_ = {"and": "&&", "or": "||", "xor": "!=", None: ""}[m[2]]
    other = f" {with_} {b.read(o[3], 'bool')}" if m[2] else ""
    to = o[0].split("|")
    return b.write(to[0], result + other) + (" " + b.write(to[1], f"!{result}{other}") if len(to) > 1 else "")


@_instruction(rf"selp\.({_NUMBER})")
def _selp(m, o, b):
    return b.write(o[0], f"{b.read(o[3], 'bool')} ? {b.read(o[1], _TYPES[m[1]])} : {b.read(o[2], _TYPES[m[1]])}")


@_instruction(r"bra(?:\.uni)?")
def _bra(_, o, b):
    return f"goto {_name(o[0])};"


@_instruction(r"trap|brkpt|exit|ret")
def _trap(m, _, b):
    return {"trap": "::__trap();", "brkpt": "::__brkpt();"}.get(m[0]) or _unknown()


@_instruction(r"lop3\.b32")
def _lop3(_, o, b):
    return b.write(o[0], f"{_PTX}lop3({', '.join(b.read(x, 'uint32_t') for x in o[1:5])})")


@_instruction(r"prmt\.b32")
def _prmt(_, o, b):
    return b.write(o[0], f"{_PTX}prmt({', '.join(b.read(x, 'uint32_t') for x in o[1:4])})")


@_instruction(r"(popc|clz|brev)\.b(32|64)")
def _bits(m, o, b):
    function = {"popc": "__popc", "clz": "__clz", "brev": "__brev"}[m[1]] + ("ll" if m[2] == "64" else "")
    return b.write(o[0], f"::{function}({b.read(o[1], f'uint{m[2]}_t')})")


@_instruction(r"shf\.([lr])\.wrap\.b32")
def _shf(m, o, b):
    return b.write(o[0], f"::__funnelshift_{m[1]}({', '.join(b.read(x, 'uint32_t') for x in o[1:4])})")


@_instruction(r"bfe\.u32|bfe\.s32|bfi\.b32")
def _bit_field(m, o, b):
    function = {"bfe.u32": "bfe", "bfe.s32": "bfe_signed", "bfi.b32": "bfi"}[m[0]]
    return b.write(o[0], f"{_PTX}{function}({', '.join(b.read(x, 'uint32_t') for x in o[1:])})")


@_instruction(r"(ex2|lg2|rcp|rsqrt|sqrt|sin|cos|tanh)(?:\.approx|\.rn)(?:\.ftz)?\.f32")
def _function(m, o, b):
    function = {"ex2": "exp2f", "lg2": "log2f", "rcp": "1.0f / ", "rsqrt": "rsqrtf"}.get(m[1], m[1] + "f")
    return b.write(o[0], f"{'' if function.startswith('1') else '::'}{function}({b.read(o[1], 'float')})")


@_instruction(r"cvt\.rn(?:\.relu)?(?:\.satfinite)?\.(f16x2|bf16x2)\.f32")
def _pack(m, o, b):
    if "relu" in m[0] or "satfinite" in m[0]:
        _unknown()
    function = "__floats2half2_rn" if m[1] == "f16x2" else "__floats2bfloat162_rn"
    return b.write(o[0], f"::{function}({b.read(o[2], 'float')}, {b.read(o[1], 'float')})")


@_instruction(r"cvt\.rna\.tf32\.f32")
def _tf32(_, o, b):
    return b.write(o[0], f"{_PTX}to_tf32({b.read(o[1], 'float')})")


@_instruction(rf"cvt(?:\.(rn|rni|rz|rzi|rmi|rpi))?(?:\.ftz)?\.({_NUMBER})\.({_NUMBER})")
def _cvt(m, o, b):
    if "x2" in m[0] or (m[1] == "rz" and m[2] in ("f16", "bf16", "f32")):
        _unknown()
    rounding = {"rni": "kNearest", "rzi": "kZero", "rmi": "kDown", "rpi": "kUp"}.get(m[1], "kZero")
    return b.write(o[0], f"{_PTX}convert<{_TYPES[m[2]]}>({b.read(o[1], _TYPES[m[3]])}, {_PTX}Rounding::{rounding})")


# --- memory ---

_SPACE = r"(?:\.(global|shared|const)(?:::cta|::cluster)?)?"
_HINTS = r"(?:\.(?:ca|cg|cs|lu|cv|wb|wt|L1::\w+|L2::\w+|level::\w+))*"


@_instruction(rf"ld(?:\.weak)?(\.volatile|\.relaxed\.\w+|\.acquire\.\w+)?{_SPACE}(\.nc)?{_HINTS}(?:\.v([24]))?\.({_NUMBER})")
def _ld(m, o, b):
    type_, parts = _TYPES[m[5]], b.elements(o[0])
    if len(parts) != int(m[4] or 1):
        _unknown()
    how = "kReadOnly" if m[3] else "kRelaxed" if m[1] else "kWeak"
    values = f"{_PTX}load<{type_}, {len(parts)}, {_PTX}Access::{how}>({b.address(o[1], m[2])})"
    fence = " ::__threadfence();" if (m[1] or "").startswith(".acquire") else ""
    return f"{{ const auto ptx_loaded = {values};{fence} " + " ".join(b.write(p, f"ptx_loaded.at[{i}]") for i, p in enumerate(parts)) + " }"


@_instruction(rf"st(?:\.weak)?(\.volatile|\.relaxed\.\w+|\.release\.\w+)?{_SPACE}{_HINTS}(?:\.v([24]))?\.({_NUMBER})")
def _st(m, o, b):
    type_, parts = _TYPES[m[4]], b.elements(o[1])
    if len(parts) != int(m[3] or 1):
        _unknown()
    fence = "::__threadfence(); " if (m[1] or "").startswith(".release") else ""
    values = ", ".join(b.read(p, type_) for p in parts)
    return f"{fence}{_PTX}store<{type_}, {len(parts)}, {_PTX}Access::{'kRelaxed' if m[1] else 'kWeak'}>({b.address(o[0], m[2])}, {{{{{values}}}}});"


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


@_instruction(r"membar\.(cta|gl|sys)|fence\.(?:acq_rel|sc)\.(cta|cluster|gpu|sys)")
def _fence(m, _, b):
    return {"cta": "::__threadfence_block();", "sys": "::__threadfence_system();"}.get(m[1] or m[2], "::__threadfence();")


@_instruction(r"fence\.proxy\.async(?:\.global|\.shared::cta|\.shared::cluster|\.shared)?")
def _fence_proxy(_, o, b):
    return "::interpreter::fence_proxy_async();"


@_instruction(r"fence\.proxy\.alias")
def _fence_alias(_, o, b):
    return "::__threadfence();"


@_instruction(r"fence\.mbarrier_init\.release\.cluster")
def _fence_init(_, o, b):
    return "::interpreter::fence_mbarrier_init();"


@_instruction(r"prefetch(?:u)?(?:\.global|\.local)?\.(?:L1|L2)(?:::\w+)?|prefetch\.tensormap|cp\.async\.bulk\.prefetch\.\S+|createpolicy\.\S+|discard\S*|applypriority\S*")
def _prefetch(m, o, b):
    return b.write(o[0], "uint64_t(0)") if m[0].startswith("createpolicy") else _unknown() if m[0].startswith("discard") else ";"


@_instruction(r"nanosleep\.u32")
def _nanosleep(_, o, b):
    return f"::__nanosleep({b.read(o[0], 'uint32_t')});"


# --- threads of a warp and of a block ---


@_instruction(r"(?:bar|barrier)(?:\.cta)?\.(sync|arrive)(?:\.aligned)?")
def _bar(m, o, b):
    if len(o) == 1:
        return f"::__barrier_sync({b.read(o[0], 'uint32_t')});" if m[1] == "sync" else _unknown()
    return f"::interpreter::named_barrier({b.read(o[0], 'uint32_t')}, {b.read(o[1], 'uint32_t')}, {'true' if m[1] == 'sync' else 'false'});"


@_instruction(r"bar\.warp\.sync")
def _syncwarp(_, o, b):
    return f"::__syncwarp({b.read(o[0], 'uint32_t')});"


@_instruction(r"barrier\.cluster\.(arrive|wait)(?:\.(release|acquire|relaxed))?(?:\.aligned)?")
def _cluster_barrier(m, _, b):
    return f"::interpreter::cluster_barrier_{m[1]}();"


@_instruction(r"shfl\.sync\.(idx|up|down|bfly)\.b32")
def _shfl(m, o, b):
    to = o[0].split("|")
    call = f"{_PTX}shuffle({_PTX}Shuffle::k{m[1].capitalize()}, {', '.join(b.read(x, 'uint32_t') for x in (o[4], o[1], o[2], o[3]))}, ptx_inside)"
    inside = " " + b.write(to[1], "ptx_inside") if len(to) > 1 else ""
    return f"{{ bool ptx_inside; {b.write(to[0], call)}{inside} }}"


@_instruction(r"vote\.sync\.(ballot\.b32|any\.pred|all\.pred)")
def _vote(m, o, b):
    return b.write(o[0], f"::__{m[1].split('.')[0]}_sync({b.read(o[2], 'uint32_t')}, {b.read(o[1], 'bool')})")


@_instruction(r"match\.any\.sync\.b(32|64)")
def _match(m, o, b):
    return b.write(o[0], f"::__match_any_sync({b.read(o[2], 'uint32_t')}, {b.read(o[1], f'uint{m[1]}_t')})")


@_instruction(r"redux\.sync\.(add|min|max|and|or|xor)\.([usb]32)")
def _redux(m, o, b):
    return b.write(o[0], f"::__reduce_{m[1]}_sync({b.read(o[2], 'uint32_t')}, {b.read(o[1], _TYPES[m[2]])})")


@_instruction(r"activemask\.b32")
def _activemask(_, o, b):
    return b.write(o[0], "::__activemask()")


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


@_instruction(r"cp\.async\.(commit_group|wait_all|wait_group)")
def _cp_async_groups(m, o, b):
    return f"::interpreter::cp_async_{m[1]}({b.read(o[0], 'int32_t') if m[1] == 'wait_group' else ''});"


@_instruction(r"cp\.async\.mbarrier\.arrive(?:\.shared(?:::cta)?)?\.b64")
def _cp_async_arrive(_, o, b):
    return f"::interpreter::cp_async_mbarrier_arrive({b.address(o[0], 'shared', 'uint64_t')});"


@_instruction(r"cp\.async\.bulk\.shared::(?:cluster|cta)\.global\.mbarrier::complete_tx::bytes(?:\.L2::cache_hint)?")
def _bulk_load(_, o, b):
    return f"::interpreter::cp_async_bulk_load({b.address(o[0], 'shared')}, {b.address(o[1], 'global')}, {b.read(o[2], 'uint32_t')}, {b.address(o[3], 'shared', 'uint64_t')});"


@_instruction(r"cp\.async\.bulk\.global\.shared::cta\.bulk_group(?:\.L2::cache_hint)?")
def _bulk_store(_, o, b):
    return f"::interpreter::cp_async_bulk_store({b.address(o[0], 'global')}, {b.address(o[1], 'shared')}, {b.read(o[2], 'uint32_t')});"


def _box(operand, dimensions, block):
    """Of '[map, {x, y}]', the map's address and an array of the coordinates."""
    map_, coordinates = _split(operand.strip()[1:-1])
    numbers = [block.read(c, "int32_t") for c in block.elements(coordinates.strip())]
    if len(numbers) != dimensions:
        _unknown()
    return block.address(f"[{map_.strip()}]", "global", "const ::interpreter::TensorMap"), f"const int ptx_at[] = {{{', '.join(numbers)}}};"


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


@_instruction(r"cp\.async\.bulk\.commit_group")
def _bulk_commit(_, o, b):
    return "::interpreter::cp_async_bulk_commit_group();"


@_instruction(r"cp\.async\.bulk\.wait_group(\.read)?")
def _bulk_wait(m, o, b):
    return f"::interpreter::cp_async_bulk_wait_group({b.read(o[0], 'uint32_t')}, {'true' if m[1] else 'false'});"


_ORDER = r"(?:\.(release|acquire|relaxed))?(?:\.(cta|cluster))?"


@_instruction(r"mbarrier\.(init|inval)(?:\.shared(?:::cta)?)?\.b64")
def _mbarrier_init(m, o, b):
    return _call(f"::interpreter::mbarrier_{m[1]}", b.address(o[0], "shared", "uint64_t"), *([b.read(o[1], "uint32_t")] if m[1] == "init" else []))


@_instruction(rf"mbarrier\.arrive(\.expect_tx)?{_ORDER}(?:\.shared(?:::cta|(::cluster))?)?\.b64")
def _mbarrier_arrive(m, o, b):
    if o[0] != "_" and not o[0].startswith("[") and not m[1] and not m[4]:
        return b.write(o[0], f"uint64_t(::interpreter::block_barrier_arrive({b.address(o[1], 'shared', 'uint64_t')}, {b.read(o[2], 'uint32_t') if len(o) > 2 else '1'}))")
    if o[0] != "_" and not o[0].startswith("["):
        raise NotHere(f"({m[0]} that gives the phase's state)")
    address, count = (o[1], o[2:]) if o[0] == "_" else (o[0], o[1:])
    if m[1]:
        return _call("::interpreter::mbarrier_arrive_expect_tx", b.address(address, "shared", "uint64_t"), b.read(count[0], "uint32_t"))
    if m[4]:
        place = re.fullmatch(r"\[\s*([@\w$%]+)\s*\]", address)
        return _call(f"{_PTX}arrive_in_cluster", b.read(place[1], "uint32_t"), "true" if m[2] == "release" and m[3] == "cluster" else "false") if place and not count else _unknown()
    return _call("::interpreter::mbarrier_arrive", b.address(address, "shared", "uint64_t"), b.read(count[0], "uint32_t") if count else "1")


@_instruction(r"mbarrier\.expect_tx(?:\.relaxed)?(?:\.cta|\.cluster)?(?:\.shared(?:::cta)?)?\.b64")
def _mbarrier_expect(_, o, b):
    return _call("::interpreter::mbarrier_expect_tx", b.address(o[0], "shared", "uint64_t"), b.read(o[1], "uint32_t"))


@_instruction(rf"mbarrier\.(test_wait|try_wait)(?:\.parity)?{_ORDER}(?:\.shared(?:::cta)?)?\.b64")
def _mbarrier_wait(m, o, b):
    scope = "_acquire_cluster" if m[3] == "cluster" else ""
    function = "try_wait" if scope else m[1]
    return b.write(o[0], f"::interpreter::mbarrier_{function}_parity{scope}({b.address(o[1], 'shared', 'uint64_t')}, {b.read(o[2], 'uint32_t')})")


@_instruction(r"mapa(\.shared::cluster)?\.u(32|64)")
def _mapa(m, o, b):
    if m[1]:
        return b.write(o[0], f"{_PTX}shared_in({b.read(o[1], 'uint32_t')}, {b.read(o[2], 'uint32_t')})")
    return b.write(o[0], f"reinterpret_cast<uint64_t>(::interpreter::mapa(reinterpret_cast<void*>({b.read(o[1], 'uint64_t')}), {b.read(o[2], 'uint32_t')}))")


# --- matrices ---


@_instruction(r"ldmatrix\.sync\.aligned\.(?:m8n8\.)?x([124])(?:\.m8n8)?(\.trans)?(?:\.shared(?:::cta)?)?\.b16")
def _ldmatrix(m, o, b):
    to = b.elements(o[0])
    if len(to) != int(m[1]):
        _unknown()
    return f"{{ uint32_t ptx_r[{m[1]}]; ::interpreter::ldmatrix(ptx_r, {b.address(o[1], 'shared')}, {m[1]}, {'true' if m[2] else 'false'}); " + " ".join(b.write(t, f"ptx_r[{i}]") for i, t in enumerate(to)) + " }"


@_instruction(r"stmatrix\.sync\.aligned\.(?:m8n8\.)?x([124])(?:\.m8n8)?(\.trans)?(?:\.shared(?:::cta)?)?\.b16")
def _stmatrix(m, o, b):
    return f"{{ const uint32_t ptx_r[] = {{{', '.join(b.read(r, 'uint32_t') for r in b.elements(o[1]))}}}; ::interpreter::stmatrix({b.address(o[0], 'shared')}, ptx_r, {m[1]}, {'true' if m[2] else 'false'}); }}"


@_instruction(r"mma\.sync\.aligned\.m16n8k(8|16)\.row\.col\.(f32|f16)\.(f16|bf16)\.(f16|bf16)\.(f32|f16)")
def _mma(m, o, b):
    if m[3] != m[4] or m[2] != m[5] or (m[2] == "f16" and m[3] != "f16"):
        _unknown()
    d, a, second, c = (b.elements(x) for x in o)
    halves = int(m[1]) // 8
    if (len(a), len(second), len(c)) != (2 * halves, halves, 4 if m[2] == "f32" else 2):
        _unknown()
    zeros = ["0"] * (4 - len(a)), ["0"] * (2 - len(second))
    is_half = "true" if m[3] == "f16" else "false"
    arrays = f"const uint32_t ptx_a[] = {{{', '.join([b.read(x, 'uint32_t') for x in a] + zeros[0])}}}, ptx_b[] = {{{', '.join([b.read(x, 'uint32_t') for x in second] + zeros[1])}}};"
    if m[2] == "f32":
        sums = f"float ptx_c[] = {{{', '.join(b.read(x, 'float') for x in c)}}};"
        results = " ".join(b.write(x, f"ptx_c[{i}]") for i, x in enumerate(d))
    else:
        sums = f"float ptx_c[4]; {_PTX}unpack(ptx_c, {b.read(c[0], 'uint32_t')}, {b.read(c[1], 'uint32_t')});"
        results = " ".join(b.write(x, f"::__floats2half2_rn(ptx_c[{2 * i}], ptx_c[{2 * i + 1}])") for i, x in enumerate(d))
    return f"{{ {arrays} {sums} ::interpreter::mma_m16n8k16(ptx_c, ptx_a, ptx_b, {is_half}); {results} }}"


@_instruction(r"wgmma\.(fence|commit_group|wait_group)\.sync\.aligned")
def _wgmma_order(m, o, b):
    return f"::interpreter::wgmma_{m[1]}({b.read(o[0], 'uint32_t') if m[1] == 'wait_group' else ''});"


@_instruction(r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k16\.f32\.(f16|bf16)\.(f16|bf16)")
def _wgmma(m, o, b):
    sums = b.elements(o[0])
    if m[2] != m[3] or o[1].startswith("{") or len(sums) != int(m[1]) // 2:
        raise NotHere(f"({m[0]} with A in registers)" if o[1].startswith("{") else f"({m[0]})")
    signs = " ".join(f'static_assert({b.read(x, "int32_t")} == 1, "of wgmma\'s scales for a and b the interpreter has 1 alone");' for x in o[4:6])
    transposed = ", ".join(b.read(x, "bool") for x in o[6:8])
    registers = ", ".join(f"&{b.reference(x)}" for x in sums)
    return f"{{ {signs} float* const ptx_sums[] = {{{registers}}}; ::interpreter::wgmma_m64k16({_PTX}in_a_row(ptx_sums), {m[1]}, {b.read(o[1], 'uint64_t')}, {b.read(o[2], 'uint64_t')}, {b.read(o[3], 'bool')}, {'true' if m[2] == 'f16' else 'false'}, {transposed}); }}"


@_instruction(r"setmaxnreg\.(inc|dec)\.sync\.aligned\.u32")
def _setmaxnreg(m, o, b):
    return f"::interpreter::setmaxnreg({b.read(o[0], 'uint32_t')}, {'true' if m[1] == 'inc' else 'false'});"


@_instruction(r"griddepcontrol\.(wait|launch_dependents)")
def _griddepcontrol(m, _, b):
    return f"::interpreter::griddepcontrol_{m[1]}();"
