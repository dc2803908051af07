//! What becomes of a word before a command sees it: variables, outputs, sums, and names of files.

use super::super::files::clean;
use super::parse::{Word, WordPiece};
use super::{Io, Shell, sum};

/// More words than this come from no command that a person writes.
const MOST_WORDS: usize = 10_000;

/// A word while it is made: its text, and the same as a pattern for names of files.
#[derive(Default)]
struct ExpandedWord {
    text: String,
    pattern: Vec<WordPart>,
    /// Whether it is a word although it is empty: it was quoted.
    kept: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WordPart {
    Plain(char),
    /// `?`
    One,
    /// `*`
    Any,
}

impl ExpandedWord {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.pattern.extend(text.chars().map(WordPart::Plain));
    }

    fn is_pattern(&self) -> bool {
        self.pattern.iter().any(|part| !matches!(part, WordPart::Plain(_)))
    }
}

impl Shell {
    /// The word as one text, as for a redirection or an assignment.
    pub(super) async fn expand(&mut self, word: &Word) -> String {
        let mut text = String::new();
        for piece in word {
            match piece {
                WordPiece::Pattern(sign) => text.push(*sign),
                piece => text.push_str(&self.value(piece).await),
            }
        }
        text
    }

    /// The words that a word becomes.
    pub(super) async fn expand_all(&mut self, word: &Word) -> Vec<String> {
        let mut made = vec![ExpandedWord::default()];
        for piece in word {
            let splits =
                matches!(piece, WordPiece::Variable { quoted: false, .. } | WordPiece::Output { quoted: false, .. });
            let last = made.len() - 1;
            match piece {
                WordPiece::Pattern(sign) => {
                    made[last].text.push(*sign);
                    made[last].pattern.push(match sign {
                        '*' => WordPart::Any,
                        '?' => WordPart::One,
                        other => WordPart::Plain(*other),
                    });
                }
                WordPiece::Text(text) => {
                    made[last].kept = true;
                    made[last].add(text);
                }
                piece if !splits => {
                    let value = self.value(piece).await;
                    made[last].kept = true;
                    made[last].add(&value);
                }
                piece => {
                    let value = self.value(piece).await;
                    // White space at either end separates from what stands beside it.
                    let mut parts = value.split_whitespace();
                    if !value.starts_with(char::is_whitespace)
                        && let Some(first) = parts.next()
                    {
                        made[last].add(first);
                    }
                    for part in parts.take(MOST_WORDS) {
                        let mut next = ExpandedWord::default();
                        next.add(part);
                        made.push(next);
                    }
                    if value.ends_with(char::is_whitespace) {
                        made.push(ExpandedWord::default());
                    }
                }
            }
        }
        made.retain(|made| made.kept || !made.text.is_empty());
        made.into_iter().flat_map(|made| self.names(made)).take(MOST_WORDS).collect()
    }

    async fn value(&mut self, piece: &WordPiece) -> String {
        match piece {
            WordPiece::Text(text) => text.clone(),
            WordPiece::Pattern(sign) => sign.to_string(),
            WordPiece::Variable { name, .. } => self.variable(name),
            WordPiece::Arithmetic(text) => {
                let value = sum::value(text, &|name| self.variable(name));
                value.map_or_else(|trouble| format!("{text}: {trouble}"), |value| value.to_string())
            }
            WordPiece::Output { list, .. } => {
                let mut inner = Io::quiet(Some(Vec::new()));
                let _ = self.list(list, &mut inner).await;
                String::from_utf8_lossy(&inner.out).trim_end_matches('\n').to_owned()
            }
        }
    }

    fn variable(&self, name: &str) -> String {
        match name {
            "?" => self.last.to_string(),
            "$" => "4711".to_owned(),
            name => self.variables.get(name).cloned().unwrap_or_default(),
        }
    }

    /// The files that a pattern means; the word itself where there are none.
    fn names(&self, made: ExpandedWord) -> Vec<String> {
        if !made.is_pattern() {
            return vec![made.text];
        }
        let (folder, shown) = match made.text.rsplit_once('/') {
            Some((folder, _)) => (format!("{folder}/"), format!("{folder}/")),
            None => (self.path("."), String::new()),
        };
        let from = made.pattern.iter().rposition(|part| *part == WordPart::Plain('/')).map_or(0, |at| at + 1);
        let pattern = &made.pattern[from..];
        let names = self.files().list(&clean(&self.path(&folder))).unwrap_or_default();
        let is_hidden = |name: &String| name.starts_with('.') && pattern.first() != Some(&WordPart::Plain('.'));
        let fits = names.into_iter().filter(|name| !is_hidden(name) && fits(pattern, name));
        let found: Vec<String> = fits.map(|name| format!("{shown}{name}")).collect();
        if found.is_empty() { vec![made.text] } else { found }
    }
}

/// Whether a pattern that was quoted, as for `find -name`, means a name.
pub(super) fn glob_fits(pattern: &str, name: &str) -> bool {
    let part = |ch: char| match ch {
        '*' => WordPart::Any,
        '?' => WordPart::One,
        other => WordPart::Plain(other),
    };
    fits(&pattern.chars().map(part).collect::<Vec<_>>(), name)
}

/// Whether a pattern means a name: the usual walk back to the last `*`.
fn fits(pattern: &[WordPart], name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut here) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while here < name.len() {
        match pattern.get(at) {
            Some(WordPart::Any) => {
                star = Some((at, here));
                at += 1;
            }
            Some(WordPart::One) => (at, here) = (at + 1, here + 1),
            Some(WordPart::Plain(ch)) if *ch == name[here] => (at, here) = (at + 1, here + 1),
            _ => match star {
                Some((back, from)) => {
                    star = Some((back, from + 1));
                    (at, here) = (back + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|part| *part == WordPart::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_names() {
        for (pattern, name, expect) in [
            ("*.txt", "a.txt", true),
            ("*.txt", "a.txt.gz", false),
            ("a?c*", "abcdef", true),
            ("*b*b*", "abab", true),
            ("", "a", false),
            ("*", "", true),
        ] {
            assert_eq!(glob_fits(pattern, name), expect, "{pattern} {name}");
        }
    }
}
