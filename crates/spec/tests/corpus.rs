//! The real-world corpus, read in place where it is present. Nothing of it is kept in the project:
//! what is asserted are facts about it.

use std::path::{Path, PathBuf};

use sinew_spec::{Document, print};

/// Where the corpus lies beside the checkout, or where `SINEW_CORPUS` says.
fn corpus() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/codomyrmex");
    let folder = std::env::var_os("SINEW_CORPUS").map_or(beside, PathBuf::from);
    folder.is_dir().then_some(folder)
}

fn documents(part: &str) -> Vec<(String, Document)> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    let Some(folder) = corpus() else { return Vec::new() };
    let mut files = Vec::new();
    collect(&folder.join(part), &mut files);
    files.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(&folder).unwrap().parent().unwrap().display().to_string();
        (name, Document::from_bytes(&std::fs::read(path).unwrap()))
    };
    files.into_iter().map(read).collect()
}

fn tools(documents: &[(String, Document)]) -> usize {
    documents.iter().map(|(_, document)| document.tools.len()).sum()
}

#[test]
fn the_epoch_has_twenty_tools_in_canonical_form_and_the_template() {
    let documents = documents("epoch");
    if documents.is_empty() {
        return;
    }
    assert_eq!(documents.len(), 12);
    let (templates, filled): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|(name, _)| name.contains("module_template"));
    assert_eq!((tools(&templates), tools(&filled)), (1, 20));
    for (name, document) in &filled {
        for tool in &document.tools {
            // One heading was left over from the template, with nothing below it.
            let is_left_over = tool.name == "[Another Tool Name]";
            assert_eq!(document.is_canonical_tool(tool), !is_left_over, "{name}: {}", tool.name);
        }
        assert_eq!(document.says_no_tools.is_some(), document.tools.is_empty(), "{name}");
    }
    let empty: Vec<&str> =
        filled.iter().filter(|(_, document)| document.tools.is_empty()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        empty,
        ["epoch/environment_setup", "epoch/git_operations", "epoch/logging_monitoring", "epoch/model_context_protocol"]
    );
}

#[test]
fn the_middle_has_twenty_five_canonical_tools_and_four_free_forms() {
    let documents = documents("mid");
    if documents.is_empty() {
        return;
    }
    assert_eq!(documents.len(), 17);
    let filled: Vec<_> = documents.into_iter().filter(|(name, _)| !name.contains("module_template")).collect();
    let explicit = |document: &Document| document.text.lines().filter(|line| line.starts_with("## Tool: ")).count();
    let (canonical, other): (Vec<_>, Vec<_>) = filled.into_iter().partition(|(_, document)| explicit(document) > 0);
    assert_eq!(tools(&canonical), 25);
    let free: Vec<&str> =
        other.iter().filter(|(_, document)| !document.tools.is_empty()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(free.len(), 4, "{free:?}");
}

#[test]
fn nearly_every_document_of_the_head_has_tools_or_says_that_it_has_none() {
    let documents = documents("head");
    let silent: Vec<&str> = documents
        .iter()
        .filter(|(_, document)| document.tools.is_empty() && document.says_no_tools.is_none())
        .map(|(name, _)| name.as_str())
        .collect();
    for (name, document) in &documents {
        println!("{name}: {} {:?}", document.tools.len(), document.problems);
        for tool in &document.tools {
            println!("   {} {}", tool.name, tool.parameters().count());
        }
    }
    println!("{silent:?}");
    assert!(silent.len() <= 4, "{silent:?}");
}

#[test]
fn printing_and_reading_again_changes_nothing() {
    for (name, first) in documents("") {
        let title = first.title.clone().unwrap_or_default();
        let printed = print::render_markdown(&title, &first.intro, &first.tools);
        let second = Document::parse(&printed);
        assert_eq!(first.tools.len(), second.tools.len(), "{name}");
        for (one, two) in first.tools.iter().zip(&second.tools) {
            assert_eq!(one, two, "{name}: {}\n{printed}", one.name);
        }
        assert_eq!(first.intro, second.intro, "{name}");
        assert!(second.tools.is_empty() || second.is_canonical(), "{name}");
        assert_eq!(print::render_markdown(&title, &second.intro, &second.tools), printed, "{name}");
    }
}
