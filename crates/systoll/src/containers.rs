//! Finds the agent's name for a container or a pod by the name that people gave it: in files that docker, podman and kubelet keep
//! for themselves. No daemon is asked, and root alone may read most of these.

use serde_json::Value;
use std::path::Path;

/// Containers of docker: a folder for each, named by its id, with a file that has its name behind a slash.
const DOCKER: &str = "var/lib/docker/containers";
/// Containers of root's podman: a list with their ids and names.
const PODMAN: &str = "var/lib/containers/storage/overlay-containers/containers.json";
/// Pods of kubelet: a folder for each, named `NAMESPACE_POD_UID`.
const PODS: &str = "var/log/pods";
/// Containers or pods that are read, at most, and bytes of a file.
const MOST: usize = 10_000;
const BYTES: u64 = 16 << 20;
/// Digits of a container's id in the agent's name.
const SHORT_ID: usize = 12;

/// Returns the agent's names of all containers and pods with a name. A pod may be named `NAMESPACE/POD`.
pub(crate) fn services_named(name: &str) -> Vec<String> {
    named_below(Path::new("/"), name)
}

fn named_below(root: &Path, name: &str) -> Vec<String> {
    let names = |folder: &Path| systoll_files::names(folder, MOST).unwrap_or_default();
    let json = |path: &Path| -> Option<Value> { serde_json::from_slice(&systoll_files::head(path, BYTES).ok()?).ok() };
    let container = |id: &str| Some(format!("container-{}", id.get(..SHORT_ID)?));
    let mut found = Vec::new();
    for id in names(&root.join(DOCKER)) {
        let about = json(&root.join(DOCKER).join(&id).join("config.v2.json"));
        let is_it = about.is_some_and(|about| about["Name"].as_str() == Some(&format!("/{name}")));
        found.extend(id.to_str().filter(|_| is_it).and_then(container));
    }
    for of in json(&root.join(PODMAN)).as_ref().and_then(Value::as_array).into_iter().flatten() {
        let is_it = of["names"].as_array().is_some_and(|names| names.iter().any(|of| of == name));
        found.extend(of["id"].as_str().filter(|_| is_it).and_then(container));
    }
    for folder in names(&root.join(PODS)) {
        // Neither a namespace nor a pod has `_` in its name.
        let folder = folder.to_string_lossy();
        let mut parts = folder.splitn(3, '_');
        if let (Some(namespace), Some(pod), Some(uid)) = (parts.next(), parts.next(), parts.next()) {
            let is_it = name == pod || name.split_once('/') == Some((namespace, pod));
            found.extend(is_it.then(|| format!("pod-{uid}")));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn containers_and_pods_are_found_by_their_names() {
        let root = tempfile::tempdir().unwrap();
        let file = |path: &str, content: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        let id = |digit: &str| digit.repeat(64);
        file(&format!("{DOCKER}/{}/config.v2.json", id("a")), r#"{"ID":"a","Name":"/web","State":{}}"#);
        file(&format!("{DOCKER}/{}/config.v2.json", id("b")), r#"{"ID":"b","Name":"/web2"}"#);
        file(&format!("{DOCKER}/{}/config.v2.json", id("c")), "{\"Name\":");
        file(&format!("{DOCKER}/short/config.v2.json"), r#"{"Name":"/short"}"#);
        file(PODMAN, &format!(r#"[{{"id":"{}","names":["db"]}},{{"id":7}},{{"names":["db"]}}]"#, id("d")));
        let uid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
        file(&format!("{PODS}/shop_web_{uid}/app/0.log"), "");
        let named = |name| named_below(root.path(), name);
        assert_eq!(named("web"), ["container-aaaaaaaaaaaa".to_owned(), format!("pod-{uid}")]);
        assert_eq!(
            (named("web2"), named("db")),
            (vec!["container-bbbbbbbbbbbb".into()], vec!["container-dddddddddddd".into()])
        );
        assert_eq!(named("shop/web"), [format!("pod-{uid}")]);
        for other in ["", "we", "short", "other/web", "/web", "shop"] {
            assert!(named(other).is_empty(), "{other}");
        }
    }
}
