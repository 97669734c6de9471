"""The timeline as Trace Event JSON, which Perfetto and chrome://tracing open. A microsecond there is a clock here."""


def trace(picture):
    events = [{"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": picture.title}}]
    for lane, each in enumerate(picture.lanes):
        name = f"{each['g']}: {each['n'].strip()}"
        events.append({"ph": "M", "pid": 1, "tid": lane + 1, "name": "thread_name", "args": {"name": name}})
        events.append({"ph": "M", "pid": 1, "tid": lane + 1, "name": "thread_sort_index", "args": {"sort_index": lane}})
    until, after = {}, {}  # what lies on one thread does not overlap there
    for segment in reversed(picture.segments):
        until[id(segment)] = min(segment["b"], after.get(segment["l"], segment["b"]))
        if segment["b"] > segment["a"]:
            after[segment["l"]] = segment["a"]
    for segment in picture.segments:
        name = segment["k"].replace("wait-", "wait: ")
        if "s" in segment:
            name += f" (stage {segment['s']})"
        event = {"pid": 1, "tid": segment["l"] + 1, "name": name, "cat": segment["k"], "ts": segment["a"]}
        event["args"] = {"what": segment["t"], **({"lines": segment["i"]} if "i" in segment else {})}
        if segment["b"] > segment["a"]:
            event.update(ph="X", dur=round(max(until[id(segment)] - segment["a"], 0), 1))
        else:
            event.update(ph="i", s="t")
        events.append(event)
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"kernel": picture.launch.kernel, "unit": "a microsecond here is a clock of the SM"}}
