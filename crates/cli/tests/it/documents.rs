//! The hand-written documents: links lead somewhere, and the files they name exist.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// Every Markdown file of the repository, with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !["target", "node_modules", "corpus"].contains(&name.as_str())
            {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path).expect("a text");
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 20, "only {} documents were found", found.len());
    found
}

/// The text without code blocks, in which nothing is a link.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let kept = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    kept.collect::<Vec<_>>().join("\n")
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The parts in backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn relative_links_lead_to_files() {
    let mut broken = Vec::new();
    for (path, text) in documents() {
        for link in links(&prose(&text)) {
            let target = link.split('#').next().unwrap_or_default();
            let is_relative = !target.is_empty() && !target.contains("://") && !target.contains('{');
            if is_relative && !path.parent().expect("a folder").join(target).exists() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

#[test]
fn the_readme_leads_to_every_page() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a README");
    let linked: Vec<&str> = links(&readme).filter_map(|link| link.split('#').next()).collect();
    let pages = std::fs::read_dir(root().join("docs")).expect("a folder");
    let names = pages.map(|page| page.expect("an entry").file_name().to_string_lossy().into_owned());
    let missing: Vec<_> =
        names.filter(|name| name.ends_with(".md") && !linked.contains(&format!("docs/{name}").as_str())).collect();
    assert!(missing.is_empty(), "the README does not lead to {missing:?}");
}

/// Whether a document names a file of the repository there; `None` where it names something else.
fn names_a_file(word: &str) -> Option<bool> {
    let is_path = |word: &str| {
        word.contains('/') && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
    };
    let first = word.split('/').next().unwrap_or_default();
    // Capitals stand for a name of the reader's choice.
    let is_pattern =
        word.split(['/', '.']).any(|part| part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_uppercase()));
    if !is_path(word) || is_pattern || first.is_empty() || first.starts_with('.') {
        return None;
    }
    match first {
        "crates" | "docs" | "scripts" | "examples" | "android" | "fuzz" | "template" => {
            Some(root().join(word).exists())
        }
        // `gateway/call.rs` is short for `crates/gateway/src/call.rs`.
        _ if word.ends_with(".rs") && root().join("crates").join(first).is_dir() => {
            let rest = word.strip_prefix(first).unwrap_or_default().trim_start_matches('/');
            Some(
                root().join("crates").join(first).join("src").join(rest).exists()
                    || root().join("crates").join(word).exists(),
            )
        }
        _ => None,
    }
}

#[test]
fn files_that_the_documents_name_exist() {
    let mut missing = Vec::new();
    for (path, text) in documents() {
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        for word in prose(&text).lines().flat_map(code_spans) {
            if names_a_file(word) == Some(false) {
                missing.push(format!("{}: {word}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "files that do not exist:\n{}", missing.join("\n"));
}

#[test]
fn the_code_map_starts_at_files_that_exist() {
    let map = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the architecture");
    let rows: Vec<&str> = map.lines().filter(|line| line.starts_with("| `crates/")).collect();
    assert!(rows.len() > 10, "the code map has {} crates", rows.len());
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let folder = root().join(cells[1].trim_matches('`'));
        for file in code_spans(cells[3]) {
            assert!(folder.join(file).exists(), "{} has no {file}", folder.display());
        }
    }
}

/// The names of all functions that are tests.
fn tests() -> std::collections::BTreeSet<String> {
    let mut names = std::collections::BTreeSet::new();
    let mut folders = vec![root().join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).expect("a text");
                let mut is_test = false;
                for line in text.lines().map(str::trim) {
                    let function = line.trim_start_matches("async ").strip_prefix("fn ");
                    match function.and_then(|rest| rest.split('(').next()) {
                        Some(name) if is_test => drop(names.insert(name.to_owned())),
                        _ => {}
                    }
                    is_test = line.starts_with("#[") && (is_test || line.contains("test"));
                }
            }
        }
    }
    names
}

#[test]
fn every_statement_of_the_security_page_names_tests_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/security.md")).expect("the page");
    let tests = tests();
    let (mut is_table, mut statements) = (false, 0);
    for line in page.lines() {
        is_table = line.starts_with('|') && (is_table || line.trim_end().ends_with("| tests |"));
        let is_row = is_table && !line.ends_with("| tests |") && !line.starts_with("|---");
        if !is_row {
            continue;
        }
        statements += 1;
        let cell = line.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        let named: Vec<&str> = code_spans(cell).collect();
        assert!(!named.is_empty(), "no test is named for: {line}");
        for name in named {
            assert!(tests.contains(name), "there is no test `{name}`, which docs/security.md names");
        }
    }
    assert!(statements > 20, "only {statements} statements were found");
}
