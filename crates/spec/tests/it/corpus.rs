//! The real-world corpus, read in place where it is present. Nothing of it is kept in the project:
//! what is asserted are facts about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use sinew_spec::lint::{self, LintConfig};
use sinew_spec::{Document, print};
use sinew_tool::finding::{Findings, Severity};

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
        let name = path.strip_prefix(&folder).ok().and_then(Path::parent).map(|name| name.display().to_string());
        (name.unwrap_or_default(), Document::from_bytes(&std::fs::read(path).expect("a file of the corpus")))
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
    assert!(silent.len() <= 1, "{silent:?}");
    if documents.is_empty() {
        return;
    }
    // Nearly all of the tools' parameters are found, whatever the form of their description.
    let described =
        documents.iter().flat_map(|(_, document)| &document.tools).filter(|tool| tool.parameters().count() > 0);
    assert!(described.count() * 10 >= tools(&documents) * 6);
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

/// The words of a text: runs of letters and digits.
fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Words by which the canonical form says the same in its own words: other titles of sections and
/// columns, other names of types, and phrases for "nothing".
const MARKUP: &[&str] = &[
    "args",
    "objects",
    "strings",
    "cases",
    "arguments",
    "bool",
    "codes",
    "consideration",
    "dict",
    "double",
    "example",
    "float",
    "idempotence",
    "input",
    "int",
    "inputs",
    "invocation",
    "json",
    "list",
    "mandatory",
    "meaning",
    "n",
    "none",
    "notes",
    "optional",
    "output",
    "outputs",
    "param",
    "parameters",
    "params",
    "purpose",
    "response",
    "return",
    "returns",
    "schema",
    "str",
    "summary",
    "text",
    "tool",
    "usage",
    "values",
    "default",
    "false",
    "true",
    "property",
    "key",
    "any",
    "object",
];

#[test]
fn rendering_keeps_every_word_that_is_not_markup() {
    let mut failures = Vec::new();
    for (name, document) in documents("") {
        let title = document.title.clone().unwrap_or_default();
        let rendered = print::render_document(&title, &document);
        if !rendered.lost.is_empty() {
            failures.push(format!("{name} says that it loses {:?}", rendered.lost));
        }
        let printed = words(&rendered.text);
        let lost: Vec<String> = words(&document.text)
            .into_iter()
            .filter(|word| !printed.contains(word) && !MARKUP.contains(&word.as_str()))
            .collect();
        if !lost.is_empty() {
            failures.push(format!("{name} loses {lost:?}"));
        }
        let again = Document::parse(&rendered.text);
        let second = print::render_document(&title, &again).text;
        let differs = second.lines().zip(rendered.text.lines()).find(|(one, two)| one != two);
        if second != rendered.text {
            failures.push(format!("{name} is not stable: {differs:?}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn findings(document: &Document) -> Findings {
    lint::check(document, &LintConfig::default())
}

#[test]
fn the_template_of_the_corpus_says_exactly_unfilled() {
    for (name, document) in documents("").iter().filter(|(name, _)| name.contains("module_template")) {
        let rules: Vec<&str> = findings(document).iter().map(|finding| finding.rule.id).collect();
        assert_eq!(rules, ["unfilled"], "{name}");
    }
}

#[test]
fn documents_that_say_they_have_no_tools_have_no_findings() {
    for (name, document) in documents("").iter().filter(|(_, document)| document.says_no_tools.is_some()) {
        assert!(findings(document).is_empty(), "{name}: {:#?}", findings(document));
    }
}

#[test]
fn every_finding_has_a_place_and_the_known_problems_are_found() {
    let documents = documents("");
    if documents.is_empty() {
        return;
    }
    let mut found = BTreeMap::new();
    for (name, document) in &documents {
        for finding in &findings(document) {
            assert!(
                finding.place.span().unwrap().end <= document.text.len()
                    && finding.place.line().unwrap() <= document.lines.count(),
                "{name}: {finding:?}"
            );
            *found.entry(finding.rule.id).or_insert(0) += 1;
        }
    }
    // What the survey of the corpus reports: aliases, conditions, comments in JSON, other headings,
    // missing sections, words of another template for errors.
    for rule in [
        "type-alias",
        "required-unclear",
        "example-not-json",
        "section-heading",
        "section-missing",
        "error-shape",
        "version-missing",
        "version-not-semver",
        "table-shape",
        "split-tool",
        "output-status",
        "unfilled",
    ] {
        assert!(found.contains_key(rule), "{rule} is never reported; {found:?}");
    }
    // The tolerant reader must not drown a canonical document in errors of its own making.
    assert!(!found.contains_key("unclosed") && !found.contains_key("name-illegal"), "{found:?}");
    println!("{found:#?}");
}

#[test]
fn fixing_never_makes_a_document_worse() {
    for (name, document) in documents("") {
        let errors =
            |findings: &Findings| findings.iter().filter(|finding| finding.severity == Severity::Error).count();
        let fixed = lint::fix(&document.text, &LintConfig::default());
        assert!(errors(&fixed.findings) <= errors(&findings(&document)), "{name}");
        assert_eq!(Document::parse(&fixed.text).tools.len(), document.tools.len(), "{name}");
        assert!(fixed.findings.iter().all(|finding| finding.fix.is_none()), "{name}");
    }
}
