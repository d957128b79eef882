//! Shapes of objects' names: what names of one kind have in common.

/// Stands for a number in a shape.
const NUMBER: char = '#';

/// Returns an object's name with each number replaced by `#`. All sockets have one shape, and so have all pipes, since
/// their names say nothing but which one it is.
///
/// ```
/// use systoll_model::shape;
/// assert_eq!(shape("/var/spool/job-17/part.3"), "/var/spool/job-#/part.#");
/// assert_eq!(shape("TCP:[127.0.0.1:80->127.0.0.1:4711]"), shape("socket:[815]"));
/// assert_ne!(shape("pipe:[7]"), shape("socket:[7]"));
/// ```
#[must_use]
pub fn shape(object: &str) -> String {
    match object.split_once(":[") {
        Some(("anon_inode", _)) => object.to_owned(),
        Some(("pipe", _)) => format!("pipe:[{NUMBER}]"),
        Some(_) if !object.starts_with('/') => format!("socket:[{NUMBER}]"),
        _ => numberless(object),
    }
}

fn numberless(name: &str) -> String {
    let mut shape = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if shape.ends_with(NUMBER) => {}
            '0'..='9' => shape.push(NUMBER),
            other => shape.push(other),
        }
    }
    shape
}
