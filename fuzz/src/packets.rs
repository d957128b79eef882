//! Perfetto traces to start from: a few packets of each kind that contains system calls.

#[path = "../../crates/import/src/perfetto/message.rs"]
mod message;

use message::{Message, file, message};

/// Returns a trace of slices on threads' tracks, as systing writes them.
fn slices() -> Vec<u8> {
    let track = |uuid, inner: Message| message().message(60, inner.number(1, uuid));
    let event = |at, event: Message| message().number(8, at).message(11, event.number(11, 3)).number(10, 7);
    let name = message().message(2, message().number(1, 9).text(2, "openat"));
    file([
        track(1, message().message(3, message().number(1, 100).text(2, "/usr/bin/app"))),
        track(2, message().message(4, message().number(1, 100).number(2, 101))),
        track(3, message().number(5, 2).text(2, "syscalls")),
        message().message(12, name).number(10, 7).number(13, 1),
        event(5_000, message().number(9, 1).text(23, "read").text(22, "syscall")),
        event(7_000, message().number(9, 2)),
        event(8_000, message().number(9, 1).number(10, 9)),
        event(9_000, message().number(9, 2)),
    ])
}

/// Returns two traces of kernel events as Perfetto's recorder writes them: plain, and in a
/// compressed packet.
fn events() -> [Vec<u8>; 2] {
    let event = |at, field, inner: Message| message().number(1, at).number(2, 101).message(field, inner);
    let enter = |id| (3..9).fold(message().number(1, id), |all, word| all.number(2, word));
    let bundle = message()
        .message(2, event(50, 330, message().number(1, 0).number(2, 12)))
        .message(2, event(40, 329, enter(0)))
        .message(2, event(60, 329, enter(3)))
        .message(2, event(70, 330, message().number(1, 3).number(2, u64::MAX - 8)));
    let tree = message().message(2, message().message(2, message().number(1, 101).number(3, 100)));
    let plain = file([tree, message().message(1, bundle)]);
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &plain).expect("a vector takes all");
    let packed = file([message().bytes(50, &packed.finish().expect("a vector takes all"))]);
    [plain, packed]
}

/// Returns all of these traces.
pub(crate) fn traces() -> Vec<Vec<u8>> {
    std::iter::once(slices()).chain(events()).collect()
}
