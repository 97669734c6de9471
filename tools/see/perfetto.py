"""The timeline as Trace Event JSON, which Perfetto and chrome://tracing open. A microsecond there is a clock here."""


def trace(picture):
    events = []
    for rank in range(picture.launch.cluster_size):
        of_block = f", block {rank}" if picture.launch.cluster_size > 1 else ""
        events.append({"ph": "M", "pid": rank + 1, "tid": 0, "name": "process_name", "args": {"name": picture.title + of_block}})
        events.append({"ph": "M", "pid": rank + 1, "tid": 0, "name": "process_sort_index", "args": {"sort_index": rank}})
    place = [{"pid": each.get("b", 0) + 1, "tid": lane + 1} for lane, each in enumerate(picture.lanes)]
    for lane, each in enumerate(picture.lanes):
        name = f"{each['g']}: {each['n'].strip()}"
        events.append({"ph": "M", **place[lane], "name": "thread_name", "args": {"name": name}})
        events.append({"ph": "M", **place[lane], "name": "thread_sort_index", "args": {"sort_index": lane}})
    flows = 0
    until, after = {}, {}  # what lies on one thread does not overlap there
    for segment in reversed(picture.segments):
        until[id(segment)] = min(segment["b"], after.get(segment["l"], segment["b"]))
        if segment["b"] > segment["a"]:
            after[segment["l"]] = segment["a"]
    for segment in picture.segments:
        name = segment["k"].replace("wait-", "wait: ")
        if "s" in segment:
            name += f" (stage {segment['s']})"
        event = {**place[segment["l"]], "name": name, "cat": segment["k"], "ts": segment["a"]}
        event["args"] = {"what": segment["t"], **({"lines": segment["i"]} if "i" in segment else {})}
        if segment["b"] > segment["a"]:
            event.update(ph="X", dur=round(max(until[id(segment)] - segment["a"], 0), 1))
        else:
            event.update(ph="i", s="t")
        events.append(event)
        for lane, time in segment.get("to", ()):  # an arrow to another block
            flows += 1
            arrow = {"name": "to another block", "cat": segment["k"], "id": flows}
            events.append({"ph": "s", **place[segment["l"]], "ts": segment["a"], **arrow})
            events.append({"ph": "f", "bp": "e", **place[lane], "ts": time, **arrow})
    events.sort(key=lambda event: event.get("ts", -1))  # arrows end later than they begin
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"kernel": picture.launch.kernel, "unit": "a microsecond here is a clock of the SM"}}
