//! Tests that calls which windows of earlier programs of a file have shown get no further windows.

use std::time::Duration;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

#[test]
fn a_later_program_of_a_file_opens_fewer_windows() {
    let opened = |programs: u32| {
        let files = "/etc/group ".repeat(40);
        let script = format!("i=0; while [ $i -lt {programs} ]; do cat {files}; i=$((i+1)); done");
        let mut launch = Launch {
            command: ["sh", "-c", &script].map(Into::into).to_vec(),
            discard_output: true,
            ..Launch::default()
        };
        launch.how.windows.allowance = Duration::from_secs(10);
        InprocBackend::new().run(&launch, &mut Quiet).unwrap().header.windows_opened
    };
    // Each program would open twelve windows if nobody noted the windows that threads of earlier
    // ones have written.
    let (some, more) = (opened(60), opened(100));
    assert!(some > 100 && more - some < 160, "{some}, then {more}");
}
