"""Makes Perfetto traces by its own messages (PyPI's perfetto), for `systoll import`. The suite `imports` runs it by the Python of readers.formats().

  perfetto_traces.py slices STRACE OUT    as systing writes the calls of a strace -f -ttt -T -o STRACE: names and times
  perfetto_traces.py events SCRIPT OUT    as Perfetto's own recorder writes the events of perf script of raw_syscalls:*
"""
import re
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent


def slices(text):
    """Writes a track for each thread, below its process or thread, and the threads' slices in the order of their ends.
    Returns the trace, and how many slices."""
    calls, trace, tracks = [], Trace(), {}
    for tid, seconds, us, name, *elapsed in re.findall(r"^(\d+) +(\d+)\.(\d{6}) (\w+)\(.*\) += .*<(\d+)\.(\d{6})>$", text, re.M):
        began = int(seconds) * 10**9 + int(us) * 1000
        calls.append((int(tid), name, began, began + int(elapsed[0]) * 10**9 + int(elapsed[1]) * 1000))
    root = calls[0][0]
    for number, tid in enumerate(dict.fromkeys(tid for tid, *_ in calls), 1):
        descriptor = trace.packet.add().track_descriptor
        descriptor.uuid = number
        if tid == root:
            descriptor.process.pid, descriptor.process.process_name = tid, "comm"
            descriptor.process.cmdline.extend(["program", "argument"])
        else:
            descriptor.thread.pid, descriptor.thread.tid, descriptor.thread.thread_name = root, tid, "comm"
        track = trace.packet.add().track_descriptor
        track.uuid, track.parent_uuid, track.name = 1000 + number, number, "syscalls"
        tracks[tid] = track.uuid
    for tid, name, began, ended in sorted(calls, key=lambda call: call[3]):
        for at, kind in ((began, TrackEvent.TYPE_SLICE_BEGIN), (ended, TrackEvent.TYPE_SLICE_END)):
            packet = trace.packet.add(timestamp=at, trusted_packet_sequence_id=2)
            packet.track_event.type, packet.track_event.track_uuid = kind, tracks[tid]
            if kind == TrackEvent.TYPE_SLICE_BEGIN:
                packet.track_event.name = name
                packet.track_event.categories.append("syscall")
                packet.track_event.debug_annotations.add(name="nr", int_value=0)
    return trace, len(calls)


def events(text):
    """Writes a bundle for each processor, one after the other. Returns the trace, and how many calls returned."""
    trace, bundles, returned = Trace(), {}, 0
    trace.packet.add().system_info.utsname.machine = "x86_64"
    line = r"^.*? (\d+) +\[(\d+)\] +(\d+)\.(\d{6}): +raw_syscalls:sys_(enter|exit): NR (-?\d+) (?:\((.*)\)|= (-?\d+))$"
    for tid, cpu, seconds, us, what, number, args, result in re.findall(line, text, re.M):
        if cpu not in bundles:
            bundles[cpu] = TracePacket(trusted_packet_sequence_id=3)
        event = bundles[cpu].ftrace_events.event.add(timestamp=int(seconds) * 10**9 + int(us) * 1000, pid=int(tid))
        if what == "enter":
            event.sys_enter.id = int(number)
            event.sys_enter.args.extend(int(word, 16) for word in args.split(", "))
        else:
            event.sys_exit.id, event.sys_exit.ret = int(number), int(result)
            returned += 1
    trace.packet.extend(bundles.values())
    return trace, returned


if __name__ == "__main__":
    [kind, source, out] = sys.argv[1:]
    with open(source, errors="replace") as f:
        made, count = {"slices": slices, "events": events}[kind](f.read())
    with open(out, "wb") as f:
        f.write(made.SerializeToString())
    print(count)
