//! Recognising documents that say that they have no tools.

/// Whether a line says that the module has no tools. Asked only of documents in which no tool was found.
pub(crate) fn says_no_tools(line: &str) -> bool {
    const VERBS: &[&str] = &[
        "expose",
        "exposes",
        "define",
        "defines",
        "provide",
        "provides",
        "offer",
        "offers",
        "have",
        "has",
        "contain",
        "contains",
        "implement",
        "implements",
        "register",
        "registers",
        "publish",
        "publishes",
        "include",
        "includes",
        "declare",
        "declares",
        "ship",
        "ships",
        "support",
        "supports",
        "export",
        "exports",
        "add",
        "adds",
    ];
    let line = line.replace(['*', '_', '`'], "").replace("n't ", " not ").replace("n’t ", " not ").to_lowercase();
    if ["specification is n/a", "status: not applicable", "not applicable for mcp"]
        .iter()
        .any(|says| line.contains(says))
    {
        return true;
    }
    if says_so_elsewhere(&line) {
        return true;
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_tool = |word: &&str| matches!(*word, "tool" | "tools");
    let within = |start: usize, count: usize| &words[start.min(words.len())..(start + count).min(words.len())];
    words.iter().enumerate().any(|(index, word)| {
        let is_condition = index > 0 && matches!(words[index - 1], "if" | "when" | "where" | "unless" | "while");
        match *word {
            _ if is_condition => false,
            "0" | "zero" if index > 0 && is_tool(&words[index - 1]) && words.len() <= 6 => true,
            "no" | "zero" | "0" | "without" => within(index + 1, 4).iter().any(is_tool),
            "not" | "neither" | "never" => {
                let after = within(index + 1, 12);
                after.iter().take(7).any(|word| VERBS.contains(word)) && after.iter().any(is_tool)
            }
            "none" | "nothing" => {
                let nearby = &words[index.saturating_sub(5)..(index + 9).min(words.len())];
                nearby.iter().any(is_tool) && words.len() <= 12
            }
            _ => false,
        }
    })
}

/// The same in the languages of other authors: a word for "no" before a word for "tools".
fn says_so_elsewhere(line: &str) -> bool {
    const WORDS: [(&[&str], &[&str]); 6] = [
        (&["keine", "kein", "keinerlei"], &["werkzeuge", "werkzeug", "tools", "tool", "mcp"]),
        (&["aucun", "aucune", "pas", "sans"], &["outil", "outils", "tools"]),
        (&["ningún", "ninguna", "sin", "no"], &["herramienta", "herramientas"]),
        (&["nenhuma", "sem", "não"], &["ferramenta", "ferramentas"]),
        (&["nessuno", "nessun", "non", "senza"], &["strumento", "strumenti"]),
        (&["geen"], &["tools", "gereedschappen", "hulpmiddelen"]),
    ];
    /// Scripts without spaces say it in one phrase.
    const PHRASES: [&str; 8] = [
        "没有工具",
        "无工具",
        "没有mcp工具",
        "不提供任何工具",
        "ツールはありません",
        "ツールはない",
        "도구가 없",
        "нет инструментов",
    ];
    if PHRASES.iter().any(|phrase| line.contains(phrase)) {
        return true;
    }
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    WORDS.iter().any(|(none, tools)| {
        let denies = words.iter().position(|word| none.contains(word));
        denies.is_some_and(|at| words[at + 1..].iter().take(8).any(|word| tools.contains(word)))
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
        ] {
            assert!(says_no_tools(line), "{line}");
        }
        for line in [
            "The tools below read and write files.",
            "If no tools are found, the loader stops.",
            "When no MCP tool matches, an error is returned.",
            "This tool does not raise errors.",
            "No parameters.",
            "Does not require a network.",
        ] {
            assert!(!says_no_tools(line), "{line}");
        }
    }
}
