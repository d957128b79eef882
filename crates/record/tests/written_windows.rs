//! Compares windows that threads write with those that the launcher observes.

mod window_data;

use window_data::written_and_asked;

#[test]
fn windows_written_by_threads_equal_the_launchers() {
    let [written, asked] = written_and_asked(&["cat", "/etc/passwd", "/etc/of/nobody", "/etc/group"], "/etc");
    // The calls that are in windows depend on the number of calls before them, so each way may show some that the other
    // does not.
    for (call, seen) in &written {
        let alike = asked.get(call).is_none_or(|others| seen.is_subset(others) || others.is_subset(seen));
        assert!(alike, "{call:?}: {seen:?}, but {:?}", asked.get(call));
    }
    let has = |name: &str, object: &str| written.keys().any(|(call, of, _)| call == name && of == object);
    assert!(has("openat", "/etc/of/nobody") && has("read", "/etc/group") && has("close", "/etc/passwd"), "{written:?}");
    assert!(asked.keys().filter(|call| written.contains_key(*call)).count() >= 6, "{asked:?}");
}
