//! Takes off the decorations that mails, pages, terminals and logs put around the lines of a trace.
//!
//! No list of senders is kept: [`choose`] tries each [`Step`] on the head of a file and keeps those
//! that make more of its lines readable as a tracer's. A file that is readable as it is has no
//! steps, and costs nothing.

mod choose;
mod front;
mod html;
mod join;
mod several;
mod step;

pub(crate) use choose::{Head, choose};
use step::Step;

/// The steps that a file's lines go through, in order.
#[derive(Debug, Default)]
pub(crate) struct Undress {
    steps: Vec<Step>,
}

impl Undress {
    /// Returns true if lines are taken as they are.
    pub(crate) fn is_idle(&self) -> bool {
        self.steps.is_empty()
    }

    /// Hands `to` the lines of a trace that are in `line`, or that it completes.
    pub(crate) fn line(&mut self, line: &[u8], to: &mut dyn FnMut(&[u8])) {
        run(&mut self.steps, line, to);
    }

    /// Hands `to` the text that waited for a line that never came.
    pub(crate) fn finish(&mut self, to: &mut dyn FnMut(&[u8])) {
        for first in 0..self.steps.len() {
            if let Some((step, later)) = self.steps.get_mut(first..).and_then(<[Step]>::split_first_mut) {
                step.finish(&mut |line| run(later, line, to));
            }
        }
    }

    /// Returns the same steps without a begun line.
    pub(crate) fn fresh(&self) -> Self {
        Self { steps: self.steps.iter().map(Step::fresh).collect() }
    }

    /// Returns the lines of a trace that are in these lines.
    pub(crate) fn all(mut self, lines: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut all = Vec::with_capacity(lines.len());
        lines.iter().for_each(|line| self.line(line, &mut |line| all.push(line.to_vec())));
        self.finish(&mut |line| all.push(line.to_vec()));
        all
    }

    /// Returns true if a step puts a time in front of lines that tells when they were written.
    pub(crate) fn stamps(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Front(front) if front.has_moments()))
    }

    /// Returns the names of the decorations that are taken off, for people; `None` if there are
    /// none.
    pub(crate) fn told(&self) -> Option<String> {
        let names: Vec<&str> = self.steps.iter().map(Step::name).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }
}

/// Sends a line through all steps.
fn run(steps: &mut [Step], line: &[u8], to: &mut dyn FnMut(&[u8])) {
    match steps.split_first_mut() {
        None => to(line),
        Some((first, later)) => first.line(line, &mut |line| run(later, line, to)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the lines of `text` as a reader of traces gets them, and the decorations that were
    /// taken off.
    fn undressed(text: &str) -> (Vec<String>, Option<String>) {
        let mut head = Head::default();
        for line in text.lines() {
            head.push(line.as_bytes());
        }
        let undress = choose(head.lines());
        let told = undress.told();
        let text = |line: &Vec<u8>| String::from_utf8_lossy(line).trim_end().to_owned();
        (undress.all(head.lines()).iter().map(text).collect(), told)
    }

    fn is_undone(dressed: &str, plain: &[&str], told: &str) {
        let (lines, said) = undressed(dressed);
        let wanted: Vec<&str> = lines.iter().map(String::as_str).filter(|l| l.contains(')')).collect();
        assert_eq!(wanted, plain, "{dressed}");
        assert_eq!(said.as_deref(), Some(told), "{dressed}");
    }

    const CLOSE: &str = "close(3) = 0";
    const OPEN: &str = "openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3";

    #[test]
    fn a_plain_trace_is_left_as_it_is() {
        let text = format!("$ strace ls\n{OPEN}\n{CLOSE}\nfile.txt\n{OPEN}\n{CLOSE}\n");
        let (lines, told) = undressed(&text);
        assert_eq!((lines.len(), told), (6, None));
    }

    #[test]
    fn each_decoration_is_undone() {
        let both = [OPEN, CLOSE];
        is_undone(&format!("> {OPEN}\n> {CLOSE}\n"), &both, "quote marks");
        is_undone(&format!(">> | {OPEN}\n>> | {CLOSE}\n>> bye"), &both, "quote marks");
        is_undone(&format!("\x1b[36mopenat\x1b[0m{}\n{CLOSE}\x1b[K\n", &OPEN[6..]), &both, "colours");
        is_undone(
            "close(3) = -1 EBADF &lt;0.01&gt;<br>\nclose(4) = 0<br>",
            &["close(3) = -1 EBADF <0.01>", "close(4) = 0"],
            "HTML",
        );
        is_undone(&format!("web-1  | {OPEN}\nweb-1  | {CLOSE}\n"), &both, "text before each line");
        is_undone(&format!("app.log:7:{OPEN}\napp.log:8:{CLOSE}\n"), &both, "text before each line");
        is_undone(&format!("{OPEN} {CLOSE} {OPEN} {CLOSE}"), &[OPEN, CLOSE, OPEN, CLOSE], "several calls in one line");
        is_undone(
            &format!("     7\t{CLOSE}\n     8\t{OPEN}\n     9\t{CLOSE}\n"),
            &[CLOSE, OPEN, CLOSE],
            "line numbers",
        );
    }

    #[test]
    fn a_moment_in_front_of_a_line_is_kept() {
        let stamped = |front: &str| format!("{front} {CLOSE}\n{front} {CLOSE}\n");
        let wanted = ["13:55:25.5 close(3) = 0"; 2];
        for front in ["Jul 01 13:55:25.5", "2024-02-11T13:55:25.5Z stderr F", "Jul  1 13:55:25.5 host app[77]:"] {
            is_undone(&stamped(front), &wanted, "text before each line");
        }
        // A time that the tracer wrote itself is better.
        let own = format!("2024-02-11T01:02:03Z 13:55:25.5 {CLOSE}\n").repeat(2);
        is_undone(&own, &wanted, "text before each line");
    }

    #[test]
    fn a_thread_is_no_decoration() {
        let (lines, told) = undressed(&format!("[pid    17] {CLOSE}\n[pid    18] {CLOSE}\n17 {CLOSE}\n99 {CLOSE}"));
        assert_eq!((lines.len(), told), (4, None));
    }

    #[test]
    fn wrapped_lines_are_joined() {
        let words = "> [pid 1] poll([{fd=17, events=POLLIN}, {fd=16, events=POLLIN},\n> {fd=18, events=POLLIN|POLLOUT}, {fd=18, events=POLLIN}], 3,\n> -1) = 1\n> close(3) = 0\n";
        let one = "[pid 1] poll([{fd=17, events=POLLIN}, {fd=16, events=POLLIN}, {fd=18, events=POLLIN|POLLOUT}, {fd=18, events=POLLIN}], 3, -1) = 1";
        is_undone(&words.repeat(3), &[one, CLOSE].repeat(3), "quote marks, wrapped lines");
        let long = "poll([{fd=17, events=POLLIN}, {fd=16, events=POLLIN}], 2, -1) = 1 ([{fd=17, revents=POLLIN}])";
        let (first, rest) = long.split_at(61);
        is_undone(&format!("{first}\n{rest}\n").repeat(4), &[long; 4], "wrapped lines");
    }

    #[test]
    fn quoted_printable_is_undone() {
        let mail = "openat(AT_FDCWD, \"/etc/passwd\", =\nO_RDONLY) =3D 3\nclose(3) =3D 0\n";
        is_undone(mail, &[OPEN, CLOSE], "quoted-printable");
    }

    proptest! {
        #[test]
        fn any_text_comes_to_an_end(lines in proptest::collection::vec(any::<Vec<u8>>(), 0..40)) {
            let mut head = Head::default();
            lines.iter().for_each(|line| { head.push(line); });
            choose(head.lines()).all(&lines);
        }

        #[test]
        fn marks_come_to_an_end(text in r#"[>| \n=0-9A-F:&;<a\[\](){}"]{0,400}"#, call in 0..3usize) {
            undressed(&format!("{}\n{text}\n{text}{}", [OPEN, CLOSE, "x"][call], [CLOSE, OPEN, ""][call]));
        }
    }
}
