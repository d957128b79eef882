//! Names of programs as people really build them.

mod common;
use common::*;

const LOCALTIME: &str = r#"
#include <time.h>
#include <sys/types.h>
#include <unistd.h>
__attribute__((noinline)) int stamp(time_t t) {
    struct tm *tm = localtime(&t);
    return tm->tm_hour;
}
int main(void) {
    wait_for_us();
    volatile int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += stamp(1000000000 + i);
    sum += getppid() > 0;
    return 0;
}
"#;

#[test]
fn localtime_and_its_line_at_every_level_of_optimisation() {
    let bench = Bench::new();
    let flavours: &[&[&str]] = &[
        &["-O0", "-g"],
        &["-O1", "-g"],
        &["-O2", "-g"],
        &["-O3", "-g"],
        &["-O2", "-g", "-fno-plt"],
        &["-O2", "-g", "-fno-pie", "-no-pie"],
        &["-O2", "-g", "-fno-pie", "-no-pie", "-fno-plt"],
        &["-O2", "-g", "-Wl,-z,now"],
        &["-O2", "-g", "-Wl,-z,lazy", "-fcf-protection=none"],
        &["-O2", "-g", "-fomit-frame-pointer", "-fcf-protection=full"],
        &["-O2", "-g", "-static"],
        &["-O0", "-g", "-static"],
        &["-O2", "-g", "-static-pie"],
    ];
    for flags in flavours {
        let Some(exe) = bench.compile("gcc", flags, LOCALTIME, "prog") else { return };
        let mut run = run(&exe);
        let what = format!("{flags:?}: {:?}", run.functions(SYS_NEWFSTATAT));
        assert_eq!(run.api(SYS_NEWFSTATAT).as_deref(), Some("localtime"), "{what}");
        let user = run.user(SYS_NEWFSTATAT);
        assert_eq!((user.function(), user.location().unwrap().line), ("stamp", Some(6)), "{what}");
        assert!(user.location().unwrap().file.as_deref().unwrap().ends_with("prog.c"), "{what}");
        assert_eq!(run.api(SYS_GETPPID).as_deref(), Some("getppid"), "{what}");
        assert_eq!(run.user(SYS_GETPPID).function(), "main", "{what}");
        assert!(run.call(SYS_NEWFSTATAT).complete && run.reaches_main(SYS_NEWFSTATAT), "{what}");
        assert!(!run.reaches_main(SYS_EXIT_GROUP), "{what}: main has returned");
    }
}
