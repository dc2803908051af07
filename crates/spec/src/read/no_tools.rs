//! Recognising documents that say that they have no tools.
//!
//! The denial must be a whole statement: "This module defines no tools" is one, "No tools are dangerous" and "It needs
//! no tools" speak of something else.

/// What modules do with tools, as written after a subject.
const VERBS: [&str; 15] = [
    "expose",
    "define",
    "provide",
    "offer",
    "have",
    "contain",
    "implement",
    "register",
    "publish",
    "include",
    "declare",
    "ship",
    "support",
    "export",
    "add",
];
/// What is done with tools: "no tools are *registered*".
const PARTICIPLES: [&str; 19] = [
    "exposed",
    "defined",
    "provided",
    "offered",
    "contained",
    "implemented",
    "registered",
    "published",
    "included",
    "declared",
    "shipped",
    "supported",
    "exported",
    "added",
    "documented",
    "specified",
    "listed",
    "available",
    "present",
];
const ADVERBS: [&str; 16] = [
    "currently",
    "presently",
    "yet",
    "here",
    "now",
    "today",
    "itself",
    "directly",
    "also",
    "still",
    "deliberately",
    "intentionally",
    "so",
    "publicly",
    "ever",
    "only",
];
const AUXILIARIES: [&str; 15] =
    ["are", "is", "were", "was", "be", "been", "have", "has", "may", "can", "must", "will", "should", "do", "does"];
/// Words that go on after a complete statement: "no tools *in* this release".
const CONTINUATIONS: [&str; 11] = ["in", "at", "by", "from", "as", "because", "since", "and", "or", "any", "see"];
const CONDITIONS: [&str; 9] = ["if", "when", "where", "unless", "while", "until", "whether", "once", "why"];
/// Words that leave other tools: "does not expose *all* tools".
const SELECTIONS: [&str; 18] = [
    "all", "every", "each", "these", "those", "some", "both", "other", "more", "further", "the", "such", "this",
    "that", "which", "how", "what", "except",
];
/// What has tools or not: "a library without tools".
const MODULES: [&str; 8] = ["module", "package", "server", "library", "plugin", "crate", "component", "project"];

/// Whether a line says that the module has no tools. Asked only of documents in which no tool was found.
pub(crate) fn says_no_tools(line: &str) -> bool {
    let line = line.replace(['*', '_', '`'], "").replace("n't ", " not ").replace("n’t ", " not ").to_lowercase();
    let is_fixed = ["specification is n/a", "status: not applicable", "not applicable for mcp"]
        .iter()
        .any(|says| line.contains(says));
    is_fixed || line.split_inclusive(['.', ';', '!', '?', '。', '！', '？']).any(denies)
}

fn denies(sentence: &str) -> bool {
    if sentence.ends_with(['?', '？']) {
        return false;
    }
    if labelled_none(sentence) || says_so_elsewhere(sentence) {
        return true;
    }
    let is_break = |c: char| matches!(c, ',' | ':' | '(' | ')' | '—' | '–');
    let mut is_conditional = false;
    sentence.split(is_break).flat_map(|part| part.split(" - ")).any(|clause| {
        let words = words(clause);
        is_conditional |= words.iter().any(|word| CONDITIONS.contains(word));
        !is_conditional && clause_denies(&words)
    })
}

fn words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

fn is_tool(word: &str) -> bool {
    matches!(word, "tool" | "tools")
}

/// "MCP tools: none", "Tools: 0", and "As for tools, there are none".
fn labelled_none(sentence: &str) -> bool {
    let all = words(sentence);
    if let Some((label, answer)) = sentence.split_once(':') {
        let answer = words(answer);
        let is_label = words(label).last().is_some_and(|word| is_tool(word));
        if is_label && matches!(answer.as_slice(), ["none" | "0" | "zero" | "no"] | ["none", "yet"] | ["n", "a"]) {
            return true;
        }
    }
    all.iter().any(|word| is_tool(word)) && all.ends_with(&["there", "are", "none"])
}

fn clause_denies(words: &[&str]) -> bool {
    let tool_within = |from: usize, most: usize| {
        let near = words.iter().skip(from).take(most);
        near.take_while(|word| !SELECTIONS.contains(word)).position(|word| is_tool(word)).map(|offset| from + offset)
    };
    words.iter().enumerate().any(|(index, word)| match *word {
        "no" if words.get(index + 1) == Some(&"longer") => verb_denies(words, index + 2),
        "no" | "zero" | "0" => tool_within(index + 1, 4)
            .is_some_and(|tool| may_precede(&words[..index]) && is_complete(words, tool, index == 0)),
        "not" | "never" | "neither" => verb_denies(words, index + 1),
        "without" => {
            let is_of_module = words[..index].iter().any(|word| is_verb(word) || MODULES.contains(word));
            is_of_module && tool_within(index + 1, 4).is_some_and(|tool| is_complete(words, tool, false))
        }
        "nothing" => {
            let done = words[index..].iter().position(|word| PARTICIPLES.contains(word));
            done.is_some_and(|done| {
                tool_within(index + done + 1, 4).is_some_and(|tool| is_complete(words, tool, false))
            })
        }
        _ => false,
    })
}

fn is_verb(word: &str) -> bool {
    word == "has" || VERBS.contains(&word.strip_suffix('s').unwrap_or(word)) || word == "publishes"
}

/// "(does not) expose any functions as MCP tools".
fn verb_denies(words: &[&str], from: usize) -> bool {
    let Some(verb) = words.iter().skip(from).take(7).position(|word| is_verb(word)) else { return false };
    let after = from + verb + 1;
    let near = words.iter().skip(after).take(8).take_while(|word| !SELECTIONS.contains(word));
    near.into_iter().position(|word| is_tool(word)).is_some_and(|offset| is_complete(words, after + offset, false))
}

/// Whether "no tools" after these words is what the sentence says: at its beginning, after a verb, or after "there are".
fn may_precede(before: &[&str]) -> bool {
    let last = before.iter().rev().find(|word| !ADVERBS.contains(word));
    last.is_none_or(|word| {
        is_verb(word)
            || matches!(*word, "are" | "is" | "were" | "and" | "but" | "status" | "note")
            || *word == "with" && before.iter().any(|word| MODULES.contains(word))
    })
}

/// Whether nothing after the word `tool` says something else of it: "no tools *that write*", "no tools *are
/// dangerous*". One that begins a sentence is its subject.
fn is_complete(words: &[&str], tool: usize, is_subject: bool) -> bool {
    let after = &words[tool + 1..];
    if let Some(at) = after.iter().position(|word| AUXILIARIES.contains(word)) {
        let rest = after[at..].iter().find(|word| !AUXILIARIES.contains(word) && !ADVERBS.contains(word));
        return rest.is_none_or(|word| PARTICIPLES.contains(word));
    }
    let Some(first) = after.first() else { return true };
    let is_early = ADVERBS.contains(first) || PARTICIPLES.contains(first);
    let goes_on = CONTINUATIONS.contains(first)
        || *first == "of" && after.ends_with(&["own"])
        || *first == "for" && after.get(1).is_some_and(|word| matches!(*word, "this" | "the" | "now" | "it"));
    is_early || goes_on && !(is_subject && words[tool] == "tool")
}

/// The same in the languages of other authors: a word for "no" before a word for "tools".
fn says_so_elsewhere(sentence: &str) -> bool {
    const WORDS: [(&[&str], &[&str]); 6] = [
        (&["keine", "kein", "keinerlei"], &["werkzeuge", "werkzeug", "tools", "tool", "mcp"]),
        (&["aucun", "aucune", "pas", "sans"], &["outil", "outils", "tools"]),
        (&["ningún", "ninguna", "sin", "no"], &["herramienta", "herramientas"]),
        (&["nenhuma", "sem", "não"], &["ferramenta", "ferramentas"]),
        (&["nessuno", "nessun", "non", "senza"], &["strumento", "strumenti"]),
        (&["geen"], &["tools", "gereedschappen", "hulpmiddelen"]),
    ];
    /// Conditions, and words that mean one tool or some of them.
    const OTHERS: [&str; 29] = [
        "wenn", "falls", "diese", "diesen", "dieses", "alle", "die", "das", "si", "quand", "ce", "cet", "cette", "ces",
        "les", "tous", "cuando", "esta", "este", "las", "todas", "se", "quando", "questo", "gli", "als", "deze",
        "alla", "todos",
    ];
    /// Scripts without spaces say it in one phrase.
    const PHRASES: [&str; 10] = [
        "没有工具",
        "无工具",
        "没有mcp工具",
        "不提供任何工具",
        "ツールはありません",
        "ツールはない",
        "도구가 없습니다",
        "도구가 없다",
        "도구가 없음",
        "нет инструментов",
    ];
    /// "as an MCP tool ready to use": more would be another statement.
    const MOST_AFTER: usize = 3;
    let ends = |rest: &str| !rest.starts_with(char::is_alphanumeric);
    if PHRASES.iter().any(|phrase| sentence.split_once(phrase).is_some_and(|(_, rest)| ends(rest))) {
        return true;
    }
    sentence.split([',', ':', '(', ')', '—', '–']).any(|clause| {
        let words = words(clause);
        WORDS.iter().any(|(none, tools)| {
            let denied = words.iter().position(|word| none.contains(word));
            let tool = denied.and_then(|at| {
                let near = words[at + 1..].iter().take(8);
                near.take_while(|word| !OTHERS.contains(word))
                    .position(|word| tools.contains(word))
                    .map(|next| at + next)
            });
            let is_condition = words.iter().take(denied.unwrap_or_default()).any(|word| OTHERS[..2].contains(word));
            tool.is_some_and(|tool| words.len() - tool - 2 <= MOST_AFTER && !is_condition)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_may_say_in_many_ways_that_it_has_no_tools() {
        for line in [
            "## Current Status: No MCP Tools Defined",
            "This module does not currently expose any functions as MCP tools.",
            "The package doesn't define tools; see `auth` instead.",
            "**No public tools** are registered here.",
            "MCP tools: none",
            "Tools: None.",
            "There are no tools in this release.",
            "It ships without any MCP tools.",
            "Nothing here is exposed as an MCP tool.",
            "This module has zero tools.",
            "Status: Not applicable",
            "Neither the library nor its plugins provide tools.",
            "It never registers a tool of its own.",
            "Dieses Modul stellt keine Werkzeuge bereit.",
            "Ce module n'expose aucun outil MCP.",
            "Este módulo no expone herramientas.",
            "本模块没有工具。",
            "Tools: 0",
            "This server offers no tools",
            "No tools.",
            "No tools yet, only prompts.",
            "There are currently no MCP tools for this module.",
            "As for tools, there are none.",
            "This module no longer exposes tools.",
            "A library with no tools.",
            "No tool is available.",
            "It has prompts and no tools.",
            "No MCP tools have been implemented (see the roadmap).",
        ] {
            assert!(says_no_tools(line), "{line}");
        }
    }

    #[test]
    fn a_denial_of_something_else_is_not_taken_for_one_of_tools() {
        for line in [
            "The tools below read and write files.",
            "If no tools are found, the loader stops.",
            "When no MCP tool matches, an error is returned.",
            "This tool does not raise errors.",
            "No parameters.",
            "Does not require a network.",
            "No tools are dangerous.",
            "No tools are needed to build it.",
            "It needs no tools.",
            "None of the tools write files.",
            "This module exposes no tools that write files.",
            "It does not expose all tools of the library.",
            "There are no tools other than those below.",
            "No tool may be called twice.",
            "No tool in this module writes files.",
            "Does it have no tools?",
            "Where the server has no tools, nothing is listed.",
            "The server works without tools of the system.",
            "It does not include tools documentation.",
            "The list is empty until the module registers: then no tools are missing.",
            "Nothing is written by these tools.",
            "Es werden keine Daten mit diesen Tools an Dritte gegeben.",
            "No use esta herramienta sin permiso.",
            "没有工具是危险的。",
            "The command prints `no tools` and stops.",
        ] {
            assert!(!says_no_tools(line), "{line}");
        }
    }
}
