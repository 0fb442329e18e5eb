"""Why a trace needs a plan, though one of the same workunits has one: what differs between them."""

from __future__ import annotations

from collections.abc import Iterable

from pyfuser.trace.shape import ArgumentShape, CallShape, RegionShape, ScalarShape, TraceShape


def what_changed(trace: TraceShape, known: Iterable[TraceShape]) -> str:
    """What differs from the first of the known traces with the same calls; "" if there is none."""
    names = [call.workunit.name for call in trace.calls]
    for other in known:
        if [call.workunit.name for call in other.calls] == names:
            return _difference(trace, other)
    return ""


def _difference(trace: TraceShape, other: TraceShape) -> str:
    for call, before in zip(trace.calls, other.calls, strict=True):
        said = _of_calls(call, before)
        if said:
            return said
    for cluster, before_it in zip(trace.clusters, other.clusters, strict=False):
        if cluster.temporary != before_it.temporary:
            return "other Views can be read after the calls"
        if cluster.fresh != before_it.fresh:
            return "other Views have no memory yet"
    return "arguments overlap elsewhere"


def _of_calls(call: CallShape, before: CallShape) -> str:
    name = call.workunit.name
    if call.space != before.space:
        return f"{name} runs over {_box(call)}, before over {_box(before)}"
    if call.workunit != before.workunit:
        return f"{name} has arguments of other types, or other values from outside"
    params = call.workunit.params
    for param, now, then in zip(params, call.arguments, before.arguments, strict=True):
        said = _of_arguments(now, then)
        if said:
            return f"{param.sym.name} of {name} {said}"
    return ""


def _box(call: CallShape) -> str:
    ranges = zip(call.space.begin, call.space.end, strict=True)
    return " x ".join(f"{begin}:{end}" for begin, end in ranges) + f" on {call.space.execution}"


def _of_arguments(now: ArgumentShape, then: ArgumentShape) -> str:
    if now == then:
        return ""
    if isinstance(now, RegionShape) and isinstance(then, RegionShape):
        if now.shape != then.shape:
            return f"has shape {now.shape}, before {then.shape}"
        if now.strides != then.strides:
            return f"has strides {now.strides}, before {then.strides}"
        return "shares memory with other arguments than before"
    if isinstance(now, ScalarShape) and isinstance(then, ScalarShape):
        return f"is {now.value}, before {then.value}, which decides on indices"
    return "is a result of another call, or none any more"
